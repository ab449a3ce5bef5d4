"""Progress of one run: a bar with an ETA on a terminal, a line from time to time elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lcat_run.terminal import can_show_bar

if TYPE_CHECKING:
    from graphgym_lcat.gym.loops import Loop


class EpochProgress:
    """Shows the epochs of a run; call ``update`` after every epoch.

    Args:
        name: Of the run.
        every: Without a terminal, print one line every this many epochs; 0 prints none.
    """

    def __init__(self, name: str, every: int):
        self.name = name
        self.every = every
        self._bar: tqdm[Any] | None = None

    def __enter__(self) -> EpochProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, loop: Loop) -> None:
        value = loop.best.metrics["val"][loop.metric.name]
        best = f"best validation {loop.metric.format(value)}"
        if can_show_bar(sys.stderr):
            if self._bar is None:
                self._bar = tqdm(total=loop.max_epoch, initial=loop.epoch - 1, desc=self.name, unit="epoch")
            self._bar.update(loop.epoch - self._bar.n)
            self._bar.set_postfix_str(best, refresh=False)
        elif self.every and loop.epoch % self.every == 0:
            left = loop.seconds / loop.epoch * (loop.max_epoch - loop.epoch)
            print(
                f"{self.name}: epoch {loop.epoch}/{loop.max_epoch}, {best}, {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
