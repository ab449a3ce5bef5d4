"""How a sweep goes on: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TextIO

from tqdm import tqdm

from lcat_run.sweep.cost import duration_text
from lcat_run.terminal import can_show_bar

_LINE_SECONDS = 15.0


class Progress:
    """Shows runs done, failed, the rate and the time left; ``costs`` (run id → cost) weighs what is left."""

    def __init__(self, total: int, done_before: int, costs: Mapping[str, float], file: TextIO | None = None):
        self._file = sys.stderr if file is None else file
        self._costs = dict(costs)
        self._all_costs = sum(self._costs.values())
        self._total = total
        self._done = done_before
        self._made = 0
        self._bad = 0
        self._started = self._last_end = time.monotonic()
        self._last_line = self._started
        self._bar = None
        if can_show_bar(self._file):
            layout = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
            self._bar = tqdm(total=total, initial=done_before, file=self._file, bar_format=layout, dynamic_ncols=True)

    def finished(self, run_id: str, outcome: str) -> None:
        """A run is done, failed or given up."""
        self._costs.pop(run_id, None)
        self._done += outcome == "done"
        self._bad += outcome != "done"
        self._made += 1
        self._last_end = time.monotonic()
        if self._bar is not None:
            self._bar.update(outcome == "done")

    def tick(self, running: int) -> None:
        """To be called a few times a second."""
        if self._bar is not None:
            self._bar.set_postfix_str(self._text(running), refresh=False)
            self._bar.refresh()
        elif time.monotonic() - self._last_line >= _LINE_SECONDS:
            self._last_line = time.monotonic()
            print(f"{self._done}/{self._total} done, {self._text(running)}", file=self._file, flush=True)

    def say(self, message: str) -> None:
        """A message beside the bar."""
        if self._bar is not None:
            self._bar.write(message, file=self._file)
        else:
            print(message, file=self._file, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _text(self, running: int) -> str:
        now = time.monotonic()
        parts = [f"{self._bad} failed", f"{running} running"]
        if self._made:
            parts.append(f"{60 * self._made / (now - self._started):.3g} runs/min")
            share = 1 - sum(self._costs.values()) / self._all_costs if self._all_costs else 0
            if share > 0:
                # Reckoned when a run ends, and from there on counted down: it would grow while long runs are under way.
                left = (self._last_end - self._started) * (1 - share) / share - (now - self._last_end)
                parts.append(f"ETA {duration_text(max(0.0, left))}")
        return ", ".join(parts)
