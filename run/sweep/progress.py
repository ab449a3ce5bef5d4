"""Progress of a sweep: a bar on a terminal, one plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TextIO

from tqdm import tqdm

from lcat_core.outcomes import Outcome
from lcat_run.sweep.cost import duration_text
from lcat_run.terminal import can_show_bar

_LINE_SECONDS = 15.0


class Progress:
    """Shows how many runs are done and failed, the rate, and the time left; ``costs`` (by run id) weigh the runs."""

    def __init__(self, total: int, done_before: int, costs: Mapping[str, float], file: TextIO | None = None):
        self._file = sys.stderr if file is None else file
        self._costs = dict(costs)
        self._all_costs = sum(self._costs.values())
        self._total = total
        self._done = done_before
        self._ended = 0
        self._not_done = 0
        self._started = self._last_end = time.monotonic()
        self._last_line = self._started
        self._bar = None
        if can_show_bar(self._file):
            layout = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
            self._bar = tqdm(total=total, initial=done_before, file=self._file, bar_format=layout, dynamic_ncols=True)

    def finished(self, run_id: str, outcome: Outcome) -> None:
        """Count a run that is done, failed or given up."""
        is_done = outcome is Outcome.DONE
        self._costs.pop(run_id, None)
        self._done += is_done
        self._not_done += not is_done
        self._ended += 1
        self._last_end = time.monotonic()
        if self._bar is not None:
            self._bar.update(is_done)

    def tick(self, running: int) -> None:
        """Refresh what is shown; call it a few times per second."""
        if self._bar is not None:
            self._bar.set_postfix_str(self._text(running), refresh=False)
            self._bar.refresh()
        elif time.monotonic() - self._last_line >= _LINE_SECONDS:
            self._last_line = time.monotonic()
            print(f"{self._done}/{self._total} done, {self._text(running)}", file=self._file, flush=True)

    def say(self, message: str) -> None:
        """Print a message without disturbing the bar."""
        if self._bar is not None:
            self._bar.write(message, file=self._file)
        else:
            print(message, file=self._file, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _text(self, running: int) -> str:
        now = time.monotonic()
        parts = [f"{self._not_done} failed", f"{running} running"]
        if self._ended:
            parts.append(f"{60 * self._ended / (now - self._started):.3g} runs/min")
            share = 1 - sum(self._costs.values()) / self._all_costs if self._all_costs else 0
            if share > 0:
                # Estimated when a run ends, then counted down: it would grow while long runs are executing.
                left = (self._last_end - self._started) * (1 - share) / share - (now - self._last_end)
                parts.append(f"ETA {duration_text(max(0.0, left))}")
        return ", ".join(parts)
