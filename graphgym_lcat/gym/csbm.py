"""``lcat.loop: csbm``: one point of the synthetic experiments as a run like any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from torch_geometric.graphgym.config import cfg

from graphgym_lcat.gym.loops import Best, Epoch, register_loop
from graphgym_lcat.synthetic.experiment import run_point
from lcat_core.metrics import METRICS
from lcat_core.run_folder import SPLITS


@register_loop("csbm")
class SyntheticPoint:
    """One model on one sampled graph. It takes seconds, or minutes if learned, so it does not resume: it starts again."""

    def __init__(self) -> None:
        self.epoch = 0
        self.max_epoch = 1
        self.seconds = 0.0
        self.metric = METRICS["accuracy"]
        self.best = Best()
        self._result: dict[str, Any] = {}

    def epochs(self) -> Iterator[Epoch]:
        start = time.perf_counter()
        self._result = csbm_result(cfg.csbm, cfg.seed)
        self.best = Best(0, metrics={"val": self._result["val"]})
        self.epoch = 1
        self.seconds = time.perf_counter() - start
        yield Epoch(0)

    def finish(self, run_dir: Path) -> dict[str, Any]:
        return self._result


def csbm_result(
    settings: Mapping[str, Any], seed: int, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Compute what belongs into ``result.json`` for the keys of the group ``csbm`` and the seed of the run.

    There is no split: the paper trains and scores on all nodes, so the three accuracies are equal. ``extra`` holds the mean
    attention of the three groups of pairs, and C.
    """
    arguments = {key: value for key, value in settings.items() if key not in ("model", "seed")}
    point = run_point(settings["model"], seed=seed, progress=progress, **arguments)
    steps = settings["steps"] if settings["learned"] else 0
    nodes, edges = point["nodes"], point["edges"]
    return {
        "dataset": {"name": "csbm", "nodes": nodes, "edges": edges, "avg_degree": edges / nodes},
        "best_epoch": steps,
        **{split: {"accuracy": point["accuracy"]} for split in SPLITS},
        "lambdas": [[point["lambda1"], point["lambda2"]]],
        "epochs": steps,
        "extra": {"gamma": point["gamma"], "C": point["C"]},
    }
