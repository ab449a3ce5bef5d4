"""Result trees of stock GraphGym and GraphGPS: ``<run>/config.yaml`` and ``<run>/<seed>/<split>/stats.json``.

These trees contain every epoch but no choice of one, so this module chooses as GraphGym does: the first epoch with the best
validation metric (``metric_best``, ``metric_agg``). Stock GraphGym scores the test set once, after training; then that score
counts, and ``test_epoch`` differs from ``best_epoch``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lcat_analysis.history import read_stats
from lcat_analysis.metrics import first_metric, is_metric
from lcat_analysis.run_config import experiment_settings, read_config, split_text
from lcat_core.errors import ResultsError
from lcat_core.metrics import metric as metric_row
from lcat_core.run_folder import CONFIG, SPLITS, STATS
from lcat_core.settings import Settings
from lcat_core.stock_graphgym import stock_split

#: Tells runs of stock GraphGym from ours, so that they are not averaged: they score the test set after the last epoch.
TRAINED_BY = "trained by"
_read_config = lru_cache(maxsize=4096)(read_config)  # the seeds of a run share it


def find_graphgym_runs(root: Path, skipped: Collection[Path] = ()) -> list[Path]:
    """Find seed folders (``<run>/<seed>``) at any depth below ``root``, but not in ``skipped`` folders.

    GraphGym names them by a number; ``<run>/agg`` beside them contains means over seeds and is not a run.
    """
    found = []
    for folder, subfolders, _ in os.walk(root):
        subfolders[:] = [name for name in subfolders if Path(folder, name) not in skipped]
        if "val" in subfolders and os.path.exists(os.path.join(folder, "val", STATS)):
            found += [Path(folder)] if os.path.basename(folder).isdigit() else []
            subfolders.clear()
    return sorted(found)


def read_graphgym_run(run_dir: Path) -> dict[str, Any] | None:
    """Read one seed of a stock run as a row of the table of runs; None if it has no validation or test scores yet."""
    if not (run_dir.parent / CONFIG).exists():
        return None
    config = _read_config(run_dir.parent / CONFIG)
    try:
        return _read_seed(run_dir, config)
    except (ValueError, KeyError, TypeError) as error:  # numbers or columns that GraphGym would not write
        if isinstance(error, ResultsError):
            raise
        raise ResultsError(f"{run_dir} is not a run of GraphGym: {type(error).__name__}: {error}") from error


def _read_seed(run_dir: Path, config: Settings) -> dict[str, Any] | None:
    tables = {split: read_stats(run_dir / split / STATS) for split in SPLITS}
    val, test = tables["val"], tables["test"]
    if val.empty or test.empty:
        return None
    best_epoch, epoch_by = _best_epoch(val, config)
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
        **_repetition(run_dir, config),
        "best_epoch": best_epoch,
        "test_epoch": test_epoch,
        "epoch_by": epoch_by,
        "seconds": math.nan,
        "path": str(run_dir),
        "metrics": metrics,
        "split": split_text(config | stock_split(config)),
        "params": experiment_settings(config | stock_split(config)) | {TRAINED_BY: "stock GraphGym"},
    }


def _repetition(run_dir: Path, config: Settings) -> dict[str, int]:
    """Return seed and split: the folder has the number of the seed, or of the split if the run loops over splits (GraphGPS)."""
    number = int(run_dir.name)
    if config.get("run_multiple_splits"):
        return {"seed": int(config.get("seed", 0)), "split_seed": number}
    return {"seed": number, "split_seed": int(config.get("dataset.split_index", 0))}


def _best_epoch(val: pd.DataFrame, config: Settings) -> tuple[int, str]:
    """Return the best epoch by GraphGym's rules, and the column that decides."""
    name = str(config.get("metric_best", "auto"))
    if name == "auto":
        name = "auc" if "auc" in val else "accuracy"
    if name in val:
        lowest = config.get("metric_agg", "argmax") == "argmin"
    else:
        name = first_metric(val.columns)
        lowest = not metric_row(name).higher_is_better
    values = val[name].to_numpy(float)
    best = np.nanargmin(values) if lowest else np.nanargmax(values)
    return int(val["epoch"].iloc[best]), f"val.{name}"
