"""Results folders as sweeps write them, with invented numbers: for tests and figures, never as results."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import yaml

DEGREES = {
    "AmazonComputers": 35.76,
    "AmazonPhoto": 31.13,
    "GitHub": 15.33,
    "TwitchEN": 10.91,
    "Cora": 3.9,
    "CiteSeer": 2.74,
}
LEVEL = {
    "AmazonComputers": 0.89,
    "AmazonPhoto": 0.93,
    "GitHub": 0.83,
    "TwitchEN": 0.58,
    "Cora": 0.86,
    "CiteSeer": 0.74,
}
COMPARE = {"cat": "gat", "lcat": "gat", "catv2": "gatv2", "lcatv2": "gatv2"}
MODELS = ("dense", "gcn", "gat", "cat", "lcat", "gatv2", "catv2", "lcatv2")


@dataclass
class FakeSweep:
    """What to invent: one run per model, dataset, combination of the axes, split and seed."""

    name: str = "real"
    models: tuple[str, ...] = MODELS
    datasets: tuple[str, ...] = tuple(DEGREES)
    seeds: int = 5
    split_seeds: tuple[int, ...] = (0,)
    axes: dict[str, list] = field(default_factory=lambda: {"optim.base_lr": [0.01, 0.005]})
    over: tuple[str, ...] = ("optim.base_lr",)
    match: tuple[str, ...] = ()
    epochs: int = 60
    layers: int = 4
    histories: bool = True
    metric: str = "accuracy"
    compare: dict[str, str] | None = None


def write_sweep(root: Path, sweep: FakeSweep) -> Path:
    """Write the complete folder and return its path."""
    folder = root / sweep.name
    (folder / "runs").mkdir(parents=True)
    compare = sweep.compare
    if compare is None:
        compare = {m: b for m, b in COMPARE.items() if m in sweep.models and b in sweep.models}
    grid = {
        "name": sweep.name,
        "base": "real.yaml",
        "seeds": sweep.seeds,
        "models": {model: {"gnn.layer_type": "lcatconv"} for model in sweep.models},
        "axes": {"dataset.name": list(sweep.datasets), **sweep.axes},
        "select": {"over": list(sweep.over), "by": f"val.{sweep.metric}"},
        "compare": compare,
        "match": list(sweep.match),
    }
    (folder / "grid.yaml").write_text(yaml.safe_dump(grid, sort_keys=False))
    versions = {"python": "3.11.4", "torch": "2.13.0", "torch-geometric": "2.8.1", "graphgym-lcat": "0.1.0"}
    (folder / "sweep.json").write_text(json.dumps({"created": "2026-01-01T12:00:00", "versions": versions}))
    expected = []
    for model, dataset, values, split_seed, seed in product(
        sweep.models, sweep.datasets, product(*sweep.axes.values()), sweep.split_seeds, range(sweep.seeds)
    ):
        params = {"dataset.name": dataset, **dict(zip(sweep.axes, values, strict=True))}
        result = invent_result(sweep, model, dataset, params, split_seed, seed)
        write_run(folder / "runs" / result["run_id"], result, sweep)
        expected.append(
            {k: result[k] for k in ("run_id", "model", "seed", "split_seed", "params")} | {"dataset": dataset}
        )
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in expected))
    return folder


def invent_result(sweep: FakeSweep, model: str, dataset: str, params: dict, split_seed: int, seed: int) -> dict:
    degree = DEGREES.get(dataset, 6.0)
    mark = zlib.crc32(json.dumps([model, dataset, params, split_seed]).encode())
    shared = np.random.default_rng([zlib.crc32(dataset.encode()), split_seed, seed])
    own = np.random.default_rng([mark, seed])
    gain = {"gat": 0, "cat": 0.0003, "gatv2": -0.0003, "catv2": 0.0004, "lcat": 0.00028, "lcatv2": 0.0003}
    test = LEVEL.get(dataset, 0.8) + gain.get(model, 0) * degree + shared.normal(0, 0.004) + own.normal(0, 0.003)
    test -= {"dense": 0.07, "gcn": -0.004}.get(model, 0) + 0.3 * abs(params.get("optim.base_lr", 0.01) - 0.01)
    sigma = params.get("lcat.feature_noise", 0.0)
    test -= sigma * (0.25 if model.startswith("gat") else 0.12) * (1 + own.normal(0, 0.1))
    fixed = {"gcn": [0.0, 0.49999997], "gat": [1.0, 0.0]}  # models with fixed λ record theirs too
    lambdas = [fixed[model]] * sweep.layers if model in fixed else None
    if model.startswith("lcat"):
        lambdas = [[_squash(1.5 - layer + own.normal(0, 0.4)), _squash(layer - 1 + own.normal(0, 0.4))]
                   for layer in range(sweep.layers)]  # fmt: skip
    return {
        "schema": 1,
        "run_id": f"{model[:30]}-{dataset[:30]}-s{seed}-{mark:08x}".replace("/", "_"),
        "model": model,
        "dataset": {"name": dataset, "nodes": 2708, "edges": int(2708 * degree), "avg_degree": degree},
        "seed": seed,
        "split_seed": split_seed,
        "params": params,
        "settings": {"dataset.split": [0.6, 0.2, 0.2], **params},
        "best_epoch": sweep.epochs - 3,
        "train": {sweep.metric: min(test + 0.03, 1.0), "loss": 0.2},
        "val": {sweep.metric: test + own.normal(0, 0.002), "loss": 0.4},
        "test": {sweep.metric: test, "loss": 0.45},
        "lambdas": lambdas,
        "versions": {"torch": "2.13.0"},
        "timing": {"seconds": 12.5},
    }


def write_run(run_dir: Path, result: dict, sweep: FakeSweep) -> None:
    run_dir.mkdir()
    (run_dir / "result.json").write_text(json.dumps(result))
    if not sweep.histories:
        return
    (run_dir / "config.yaml").write_text(yaml.safe_dump({"seed": result["seed"], "gnn": {"layers_mp": sweep.layers}}))
    rng = np.random.default_rng(result["seed"])
    for split in ("train", "val", "test"):
        (run_dir / split).mkdir()
        final = result[split][sweep.metric]
        lines = []
        for epoch in range(sweep.epochs):
            value = final - 0.5 * math.exp(-epoch / 8) + rng.normal(0, 0.003)
            line = {
                "epoch": epoch,
                "loss": 1.5 * math.exp(-epoch / 10),
                "lr": 0.01,
                "params": 1000,
                "time_iter": 0.01,
            }
            lines.append(json.dumps(line | {sweep.metric: round(value, 4)}))
        (run_dir / split / "stats.json").write_text("\n".join(lines) + "\n")
    if result["lambdas"]:
        rows = ["epoch,layer,head,lambda1,lambda2"]
        for epoch in range(sweep.epochs):
            reached = 1 - math.exp(-epoch / 12)
            for layer, (one, two) in enumerate(result["lambdas"]):
                rows.append(f"{epoch},{layer},,{0.5 + (one - 0.5) * reached:.4f},{0.5 + (two - 0.5) * reached:.4f}")
        (run_dir / "lambdas.csv").write_text("\n".join(rows) + "\n")


def fail_run(run_dir: Path, error: str, attempts: int = 1) -> None:
    """Turn a finished run into a failed one."""
    (run_dir / "result.json").unlink()
    (run_dir / "failed.json").write_text(
        json.dumps({"error": error, "traceback": "…", "attempts": attempts, "epoch": 7})
    )


def write_graphgym_run(
    folder: Path, layer: str, dataset: str, seeds: int, *, test_once: bool = False, lr: float = 0.01, **settings: object
) -> None:
    """Write a result tree of stock GraphGym, including its check of the untrained network on the validation set."""
    folder.mkdir(parents=True)
    config = {
        "dataset": {"name": dataset},
        "gnn": {"layer_type": layer},
        "optim": {"base_lr": lr},
        "out_dir": str(folder),
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config | {"seed": 0, "metric_best": "auto"} | settings))
    for seed in range(seeds):
        for split in ("train", "val", "test"):
            (folder / str(seed) / split).mkdir(parents=True)
            accuracies = [0.5, 0.7, 0.81 + 0.01 * seed, 0.79] if split != "test" else [0.4, 0.6, 0.8, 0.9]
            rows = [{"epoch": e, "loss": 1.0, "lr": lr, "params": 9, "accuracy": a} for e, a in enumerate(accuracies)]
            if split == "val":
                rows.insert(0, {"epoch": 0, "loss": 9.0, "accuracy": 0.99})
            if split == "test" and test_once:
                rows = rows[-1:]
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / str(seed) / split / "stats.json").write_text(text)


def _squash(x: float) -> float:
    return 1 / (1 + math.exp(-x))
