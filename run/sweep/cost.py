"""How long runs will take, roughly: to start the longest first and to say when a sweep will end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from lcat_run.sweep.plan import Plan, Run
from lcat_run.sweep.state import Snapshot

#: Nodes and edges, for a guess before a dataset has been opened.
SIZES = {
    "AmazonComputers": (13752, 491722),
    "AmazonPhoto": (7650, 238162),
    "GitHub": (37700, 578006),
    "FacebookPagePage": (22470, 342004),
    "CoauthorPhysics": (34493, 495924),
    "TwitchEN": (7126, 77774),
    "CoauthorCS": (18333, 163788),
    "DBLP": (17716, 105734),
    "PubMed": (19717, 88648),
    "Cora": (2708, 10556),
    "CiteSeer": (3327, 9104),
    "ogbn-arxiv": (169343, 1166243),
    "ogbn-products": (2449029, 123718280),
    "ogbn-mag": (1939743, 21111007),
    "ogbn-proteins": (132534, 79122504),
}
_UNKNOWN_SIZE = (20000, 200000)
_NODE_WEIGHT = 8
_STEP_OVERHEAD = 12000
_SECONDS_PER_UNIT = 6e-8


def cost(plan: Plan, run: Run) -> float:
    """A number that grows with the time of a run; one unit is about an edge seen once."""
    settings = {**plan.defaults, **run.settings(plan.common)}
    nodes, edges = _size(settings)
    layer, layers = str(settings.get("gnn.layer_type", "")), settings.get("gnn.layers_mp", 1)
    per_edge = 0 if layer == "linear" else 2 if settings.get("lcat.score") == "gatv2" else 1
    if "pna" in layer:
        per_edge *= 4
    width = settings.get("gnn.dim_inner", 32) / 32
    step = _STEP_OVERHEAD + width * (_NODE_WEIGHT * nodes + per_edge * edges)
    return float(settings.get("optim.max_epoch", 1) * (1 + layers) * step)


def _size(settings: Mapping[str, Any]) -> tuple[float, float]:
    name = settings.get("dataset.name", "")
    if name == "BlockModel":
        nodes = settings.get("block_model.num_nodes", 1000)
        return nodes, nodes * settings.get("block_model.avg_degree", 10)
    return SIZES.get(name, _UNKNOWN_SIZE)


def longest_first(plan: Plan, runs: Sequence[Run]) -> list[Run]:
    """The order in which runs are started: a long one that starts last would leave the other workers idle.

    Runs of one sampled graph come together, as a worker keeps the last one.
    """
    return sorted(runs, key=lambda run: (-cost(plan, run), _sampled_graph(plan, run)))


def _sampled_graph(plan: Plan, run: Run) -> tuple[float, ...]:
    settings = {**plan.defaults, **run.settings(plan.common)}
    if settings.get("lcat.loop") != "csbm":
        return ()
    return (*(settings[f"csbm.{key}"] for key in ("n", "p", "q")), settings["seed"])


class Estimate:
    """Seconds of runs that are not done yet, from those that are."""

    def __init__(self, runs: Sequence[Run], snapshot: Snapshot):
        groups: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        for run in runs:
            seconds = snapshot.states[run.run_id].seconds
            if seconds is not None:
                for group in ((run.model, run.dataset), (run.dataset,), ()):
                    groups[group].append(seconds)
        self._means = {group: sum(values) / len(values) for group, values in groups.items()}

    def seconds(self, run: Run) -> float | None:
        """From runs of the same model and dataset, else of the dataset, else of any; None without a finished run."""
        for group in ((run.model, run.dataset), (run.dataset,), ()):
            if group in self._means:
                return self._means[group]
        return None


def guess_seconds(plan: Plan, runs: Sequence[Run], snapshot: Snapshot) -> float:
    """The time of runs on one core, from finished runs of the sweep if there are any, else from the graphs' sizes."""
    estimate = Estimate(plan.runs, snapshot)
    guesses = ((estimate.seconds(run), run) for run in runs)
    return sum(cost(plan, run) * _SECONDS_PER_UNIT if seconds is None else seconds for seconds, run in guesses)


def duration_text(seconds: float) -> str:
    """``1:02:03``, or ``2 days, 1:02:03``."""
    seconds = round(seconds)
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return clock if not days else f"{days} day{'s' if days > 1 else ''}, {clock}"
