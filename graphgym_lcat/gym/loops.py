"""What a run computes: the protocol of loops, and the registry of those that ``lcat.loop`` selects.

``train`` trains a network and ``csbm`` computes one point of the synthetic experiment. Both are executed, recorded and reported in
the same way, so a sweep need not know which one it starts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lcat_core.metrics import Metric

#: λ1 and λ2 of a layer: one number each, or one per head.
Lambdas = tuple[float | tuple[float, ...], float | tuple[float, ...]]


@dataclass
class Best:
    """The best epoch so far; ``value`` is its validation metric, negated if lower is better."""

    epoch: int = -1
    value: float = -math.inf
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    lambdas: list[list[Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Epoch:
    """What one epoch adds to the history of a run.

    Attributes:
        metrics: The metrics of every split, by name.
        lambdas: One pair per layer.
        learning_rate: The rate of the epoch's step.
        seconds: Time to score the epoch.
        eta: Seconds until the last epoch.
    """

    number: int
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    lambdas: Sequence[Lambdas] = ()
    learning_rate: float = 0.0
    seconds: float = 0.0
    eta: float = 0.0


@dataclass(frozen=True)
class Step:
    """Progress within an epoch; a loop whose epochs take long yields one after every step, and can stop and resume there."""

    done: int
    total: int


class Loop(Protocol):
    """What a run computes, epoch by epoch.

    Attributes:
        epoch: Number of finished epochs.
        max_epoch: Number of epochs, unless the loop stops early.
        seconds: Time spent so far.
        metric: The validation metric that selects the best epoch.
        best: The best epoch so far.
    """

    epoch: int
    max_epoch: int
    seconds: float
    metric: Metric
    best: Best

    def epochs(self) -> Iterator[Epoch | Step]:
        """Compute one epoch after another; yield each when it is finished, and steps in between if there are some."""

    def finish(self, run_dir: Path) -> dict[str, Any]:
        """Write requested extra files into ``run_dir`` and return what belongs into ``result.json``."""


@runtime_checkable
class ResumableLoop(Loop, Protocol):
    """A loop whose epochs are recorded, and that resumes from a checkpoint.

    Attributes:
        num_parameters: Size of the network.
        has_lambdas: Whether the network has layers with λ.
    """

    num_parameters: int
    has_lambdas: bool

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`resume` needs."""

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue after the epoch or step in which :meth:`state` was called, with bit-identical results."""


#: Builds the loop of a run from GraphGym's ``cfg``, which already holds the run's settings.
BuildLoop = Callable[[], Loop]

#: ``lcat.loop`` → what builds it.
LOOPS: dict[str, BuildLoop] = {}


def register_loop(name: str) -> Callable[[BuildLoop], BuildLoop]:
    """Register a function, or a class, that builds a loop as ``lcat.loop: name``; use it as a decorator."""

    def register(build: BuildLoop) -> BuildLoop:
        LOOPS[name] = build
        return build

    return register


__all__ = ["LOOPS", "Best", "BuildLoop", "Epoch", "Lambdas", "Loop", "ResumableLoop", "Step", "register_loop"]
