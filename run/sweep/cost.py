"""Rough estimates of how long runs take: to start the longest first, and to say when a sweep will end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from lcat_core.datasets import SIZES
from lcat_core.models import edge_cost
from lcat_core.run_folder import RunRecord
from lcat_run.sweep.plan import Plan
from lcat_run.sweep.state import Snapshot

_UNKNOWN_SIZE = (20000, 200000)
_NODE_WEIGHT = 8
_STEP_OVERHEAD = 12000
_SECONDS_PER_UNIT = 6e-8


def cost(plan: Plan, run: RunRecord) -> float:
    """Return a number that grows with the time of a run; one unit is about one edge visited once."""
    settings = {**plan.defaults, **run.settings(plan.common)}
    nodes, edges = _size(settings)
    width = _number(settings, "gnn.dim_inner", 32) / 32
    step = _STEP_OVERHEAD + width * (_NODE_WEIGHT * nodes + edge_cost(settings) * edges)
    return _number(settings, "optim.max_epoch", 1) * (1 + _number(settings, "gnn.layers_mp", 1)) * step


def _number(settings: Mapping[str, Any], key: str, otherwise: float) -> float:
    """Return a setting; an estimate can do without one that is missing or not a number."""
    value = settings.get(key)
    return float(value) if isinstance(value, int | float) else float(otherwise)


def _size(settings: Mapping[str, Any]) -> tuple[float, float]:
    name = str(settings.get("dataset.name", ""))
    if name == "BlockModel":
        nodes = _number(settings, "block_model.num_nodes", 1000)
        return nodes, nodes * _number(settings, "block_model.avg_degree", 10)
    if name in SIZES:
        return SIZES[name].nodes, SIZES[name].edges
    return _UNKNOWN_SIZE


def longest_first(plan: Plan, runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Sort runs in the order to start them: a long run that starts last would leave the other workers idle.

    Runs on the same sampled graph are adjacent, because a worker keeps the last one.
    """
    return sorted(runs, key=lambda run: (-cost(plan, run), _sampled_graph(plan, run)))


def _sampled_graph(plan: Plan, run: RunRecord) -> tuple[float, ...]:
    settings = {**plan.defaults, **run.settings(plan.common)}
    if settings.get("lcat.loop") != "csbm":
        return ()
    return (*(settings[f"csbm.{key}"] for key in ("n", "p", "q")), settings["seed"])


class Estimate:
    """Seconds that unfinished runs will take, from those that are done."""

    def __init__(self, runs: Sequence[RunRecord], snapshot: Snapshot):
        groups: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        for run in runs:
            seconds = snapshot.states[run.run_id].seconds
            if seconds is not None:
                for group in ((run.model, run.dataset), (run.dataset,), ()):
                    groups[group].append(seconds)
        self._means = {group: sum(values) / len(values) for group, values in groups.items()}

    def seconds(self, run: RunRecord) -> float | None:
        """Average runs of the same model and dataset, else of the dataset, else all; None if no run is done."""
        for group in ((run.model, run.dataset), (run.dataset,), ()):
            if group in self._means:
                return self._means[group]
        return None


def guess_seconds(plan: Plan, runs: Sequence[RunRecord], snapshot: Snapshot) -> float:
    """Estimate the time of runs on one core, from finished runs of the sweep if there are any, else from graph sizes."""
    estimate = Estimate(plan.runs, snapshot)
    guesses = ((estimate.seconds(run), run) for run in runs)
    return sum(cost(plan, run) * _SECONDS_PER_UNIT if seconds is None else seconds for seconds, run in guesses)


def duration_text(seconds: float) -> str:
    """Format as ``1:02:03``, or ``2 days, 1:02:03``."""
    seconds = round(seconds)
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return clock if not days else f"{days} day{'s' if days > 1 else ''}, {clock}"
