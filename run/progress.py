"""Progress of one run: a bar with an ETA on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm

from lcat_run.terminal import can_show_bar


class EpochProgress:
    """Shows the epochs of a run; ``update`` takes a :class:`graphgym_lcat.gym.training.Training` after every epoch."""

    def __init__(self, name: str, every: int):
        self.name = name
        self.every = every
        self._bar: tqdm | None = None

    def __enter__(self) -> EpochProgress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, training: Any) -> None:
        scores = training.best.metrics["val"]
        validation = scores["rocauc" if "rocauc" in scores else "accuracy"]
        if can_show_bar(sys.stderr):
            if self._bar is None:
                self._bar = tqdm(total=training.max_epoch, initial=training.epoch - 1, desc=self.name, unit="epoch")
            self._bar.update(training.epoch - self._bar.n)
            self._bar.set_postfix_str(f"best validation {100 * validation:.2f}", refresh=False)
        elif self.every and training.epoch % self.every == 0:
            left = training.seconds / training.epoch * (training.max_epoch - training.epoch)
            print(
                f"{self.name}: epoch {training.epoch}/{training.max_epoch}, best validation {100 * validation:.2f}, "
                f"{left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
