"""One finished run as a row of the table of runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from lcat_analysis.graphgym import read_graphgym_run
from lcat_analysis.metrics import declared_fields
from lcat_analysis.run_config import experiment_settings, read_config, split_text
from lcat_core.errors import ResultsError
from lcat_core.metrics import recorded_metrics
from lcat_core.run_folder import CONFIG, RESULT, SPLITS, RunResult, load_result
from lcat_core.stock_graphgym import DEFAULTS


def read_run_row(run_dir: Path) -> dict[str, Any] | None:
    """Return the row of a finished run, or of one seed of stock GraphGym.

    Raises:
        ResultsError: A field of the result is not what a run writes.
    """
    try:
        result = load_result(run_dir)
    except FileNotFoundError:
        return read_graphgym_run(run_dir)
    try:
        return _row(result, run_dir)
    except ResultsError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise ResultsError(f"{run_dir / RESULT} has a field of the wrong form: {error}") from error


def _row(result: RunResult, run_dir: Path) -> dict[str, Any]:
    degree = result.dataset.get("avg_degree")
    return {
        "run_id": result.run_id,
        "model": result.model,
        "dataset": result.dataset["name"],
        "nodes": result.dataset.get("nodes"),
        "edges": result.dataset.get("edges"),
        "avg_degree": math.nan if degree is None else float(degree),
        "seed": result.seed,
        "split_seed": result.split_seed,
        "split": split_text({**DEFAULTS, **result.settings}) if result.settings else None,
        "best_epoch": result.best_epoch,
        "test_epoch": result.best_epoch,
        "epoch_by": _epoch_by(result),
        "seconds": math.nan if result.seconds is None else result.seconds,
        "lambdas": result.lambdas,
        "extra": result.extra,
        "path": str(run_dir),
        "test_per_train": _test_per_train(result),
        "recorded_metrics": declared_fields(recorded_metrics(result.document)),
        "metrics": {**result.metrics, **_exact_accuracies(result, run_dir / RESULT)},
        "params": dict(result.params) or _own_settings(run_dir),
        "settings": experiment_settings(dict(result.settings)),
    }


def _epoch_by(result: RunResult) -> str | None:
    """Return the validation metric that chose the epoch: ``metric_best``, which is accuracy by default, or ROC-AUC without it."""
    name = result.settings.get("metric_best", "auto")
    if name == "auto":
        name = "accuracy" if "val.accuracy" in result.metrics else "rocauc"
    return f"val.{name}" if f"val.{name}" in result.metrics else None


def _exact_accuracies(result: RunResult, path: Path) -> dict[str, float]:
    """Return the accuracies as ratios of counts, if the run recorded them: metrics themselves are in single precision.

    Raises:
        ResultsError: The counts are invalid, or do not give the recorded accuracy.
    """
    counts = result.document.get("counts") or {}
    accuracies = {}
    for split in SPLITS:
        if f"{split}.accuracy" not in result.metrics or split not in counts:
            continue
        try:
            correct, total = (int(counts[split][name]) for name in ("correct", "total"))
            accuracies[f"{split}.accuracy"] = correct / total
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise ResultsError(
                f"{path}: `counts.{split}` must have whole numbers `correct` and `total`, got {counts[split]!r:.80}"
            ) from error
        recorded = result.metrics[f"{split}.accuracy"]
        if math.isfinite(recorded) and abs(correct / total - recorded) > 1e-6:
            raise ResultsError(f"{path}: `counts.{split}` is {correct} of {total}, but {split}.accuracy is {recorded}")
    return accuracies


def _test_per_train(result: RunResult) -> float:
    """Return test nodes / training nodes, from the counts or from the ratios of a random split; NaN if neither is recorded."""
    counts = result.document.get("counts") or {}
    ratios = result.settings.get("dataset.split")
    if {"train", "test"} <= counts.keys():
        train, test = counts["train"]["total"], counts["test"]["total"]
    elif result.settings.get("dataset.split_mode", "random") == "random" and isinstance(ratios, list):
        train, test = ratios[0], ratios[-1]
    else:
        return math.nan
    return float(test / train) if train else math.nan


def _own_settings(run_dir: Path) -> dict[str, Any]:
    """Return the settings of a run without a grid: runs that differ in one of them must not be averaged."""
    path = run_dir / CONFIG
    return experiment_settings(read_config(path)) if path.exists() else {}
