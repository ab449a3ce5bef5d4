"""``lcat.loop: csbm``: a point of the synthetic experiments as a run like any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from torch_geometric.graphgym.config import cfg

from graphgym_lcat.gym.settings import Settings
from graphgym_lcat.gym.training import Best
from graphgym_lcat.synthetic.experiment import run_point


class SyntheticPoint:
    """One model on one sampled graph. It takes seconds (minutes, where learned), so it has no checkpoints: it starts again."""

    def __init__(self, run_dir: Path, settings: Settings):
        self.epoch = 0
        self.max_epoch = 1
        self.seconds = 0.0
        self.best = Best()
        self._result: dict[str, Any] = {}

    def start(self, checkpoint: dict[str, Any] | None) -> None:
        pass

    def save(self) -> None:
        pass

    def epochs(self) -> Iterator[int]:
        start = time.perf_counter()
        self._result = csbm_result(cfg.csbm, cfg.seed)
        self.best = Best(0, metrics={"val": self._result["val"]})
        self.epoch = 1
        self.seconds = time.perf_counter() - start
        yield 1

    def finish(self) -> dict[str, Any]:
        return self._result

    def close(self) -> None:
        """Nothing is open."""


def csbm_result(
    settings: Mapping[str, Any], seed: int, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """What belongs into ``result.json`` for the keys of the group ``csbm`` and the run's seed.

    There is no split: the paper trains and scores on all nodes, so the three accuracies are the same number.
    ``extra`` holds the mean attention of the three groups of pairs, and C.
    """
    arguments = {key: value for key, value in settings.items() if key not in ("model", "seed")}
    point = run_point(settings["model"], seed=seed, progress=progress, **arguments)
    steps = settings["steps"] if settings["learned"] else 0
    nodes, edges = point["nodes"], point["edges"]
    return {
        "dataset": {"name": "csbm", "nodes": nodes, "edges": edges, "avg_degree": edges / nodes},
        "best_epoch": steps,
        **{split: {"accuracy": point["accuracy"]} for split in ("train", "val", "test")},
        "lambdas": [[point["lambda1"], point["lambda2"]]],
        "epochs": steps,
        "extra": {"gamma": point["gamma"], "C": point["C"]},
    }
