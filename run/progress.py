"""Progress of one run: a bar with an ETA on a terminal, a line from time to time elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lcat_run.terminal import can_show_bar

if TYPE_CHECKING:
    from graphgym_lcat.gym.loops import Loop, Step


SECONDS_BETWEEN_LINES = 60.0


class EpochProgress:
    """Shows the epochs of a run; call ``update`` after every epoch and every step within one.

    Args:
        name: Of the run.
        every: Without a terminal, print one line every this many epochs; 0 prints none.
    """

    def __init__(self, name: str, every: int):
        self.name = name
        self.every = every
        self._bar: tqdm[Any] | None = None
        self._printed = time.monotonic()

    def __enter__(self) -> EpochProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, loop: Loop, step: Step | None = None) -> None:
        value = loop.best.metrics["val"][loop.metric.name]
        best = f"best validation {loop.metric.format(value)}"
        within = "" if step is None else f"step {step.done}/{step.total}, "
        done = loop.epoch + (0.0 if step is None else step.done / step.total)
        if can_show_bar(sys.stderr):
            if self._bar is None:
                self._bar = tqdm(
                    total=loop.max_epoch, initial=int(done if step else loop.epoch - 1), desc=self.name, unit="epoch"
                )
            self._bar.update(round(done, 2) - self._bar.n)
            self._bar.set_postfix_str(within + best, refresh=False)
        elif self.every and self._is_due(loop, step):
            left = loop.seconds / done * (loop.max_epoch - done)
            print(
                f"{self.name}: epoch {loop.epoch}/{loop.max_epoch}, {within}{best}, {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
            self._printed = time.monotonic()

    def _is_due(self, loop: Loop, step: Step | None) -> bool:
        """Whether a line is due: every so many epochs, and once a minute within an epoch."""
        if step is None:
            return loop.epoch % self.every == 0
        return time.monotonic() - self._printed >= SECONDS_BETWEEN_LINES
