"""``lcat.loop: csbm``: a point of the synthetic experiments in the form of any other run's result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphgym_lcat.synthetic.experiment import run_point


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
