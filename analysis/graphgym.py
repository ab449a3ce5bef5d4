"""Result trees of stock GraphGym and GraphGPS: ``<run>/config.yaml`` and ``<run>/<seed>/<split>/stats.json``.

These trees contain every epoch but no choice of one, so this module chooses: the first epoch with the best validation metric.
Stock GraphGym scores the test set once, after training; then that score counts, and ``test_epoch`` differs from ``best_epoch``.
"""

from __future__ import annotations

import math
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lcat_analysis.history import read_stats
from lcat_analysis.metrics import first_metric, is_metric, lower_is_better
from lcat_analysis.run_config import experiment_settings, read_config
from lcat_core.run_folder import CONFIG, SPLITS, STATS

_read_config = lru_cache(maxsize=4096)(read_config)  # the seeds of a run share it


def find_graphgym_runs(root: Path) -> list[Path]:
    """Find seed folders (``<run>/<seed>``) at any depth below ``root``.

    GraphGym names them by a number; ``<run>/agg`` beside them contains means over seeds and is not a run.
    """
    found = []
    for folder, subfolders, _ in os.walk(root):
        if "val" in subfolders and os.path.exists(os.path.join(folder, "val", STATS)):
            found += [Path(folder)] if os.path.basename(folder).isdigit() else []
            subfolders.clear()
    return sorted(found)


def read_graphgym_run(run_dir: Path) -> dict[str, Any] | None:
    """Read one seed of a stock run as a row of the table of runs; None if it has no validation or test scores yet."""
    if not (run_dir.parent / CONFIG).exists():
        return None
    config = _read_config(run_dir.parent / CONFIG)
    tables = {split: read_stats(run_dir / split / STATS) for split in SPLITS}
    val, test = tables["val"], tables["test"]
    if val.empty or test.empty:
        return None
    best_epoch = _best_epoch(val, str(config.get("metric_best", "auto")))
    metrics: dict[str, float] = {}
    test_epoch = best_epoch
    for split, table in tables.items():
        if table.empty:
            continue
        at_best = table[table["epoch"] == best_epoch]
        row = (at_best if len(at_best) else table).iloc[-1].to_dict()
        if split == "test":
            test_epoch = int(row["epoch"])
        metrics |= {f"{split}.{name}": float(value) for name, value in row.items() if is_metric(name)}
    layer = config.get("gnn.layer_type")
    model = layer if config.get("model.type") in (None, "gnn") and layer else config.get("model.type")
    return {
        "run_id": f"{run_dir.parent.name}/{run_dir.name}",
        "model": str(model or run_dir.parent.name),
        "dataset": str(config.get("dataset.name", "unknown")),
        "avg_degree": math.nan,
        "seed": int(run_dir.name),
        "split_seed": 0,
        "best_epoch": best_epoch,
        "test_epoch": test_epoch,
        "seconds": math.nan,
        "path": str(run_dir),
        "metrics": metrics,
        "params": experiment_settings(config),
    }


def _best_epoch(val: pd.DataFrame, metric: str) -> int:
    name = metric if metric in val else first_metric(val.columns)
    values = val[name].to_numpy(float)
    return int(val["epoch"].iloc[np.nanargmin(values) if lower_is_better(name) else np.nanargmax(values)])
