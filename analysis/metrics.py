"""What a metric's name says: which direction is better, and whether it is shown in per cent."""

from __future__ import annotations

from collections.abc import Iterable

from lcat_analysis.errors import AnalysisError, nearest

LOWER_IS_BETTER = ("loss", "mae", "mse", "rmse")
# Numbers that a stats.json line holds beside the metrics.
BOOKKEEPING = ("epoch", "eta", "eta_hours", "lr", "params", "time_iter", "time_epoch", "gpu_memory")
LABELS = {
    "accuracy": "accuracy",
    "auc": "ROC-AUC",
    "rocauc": "ROC-AUC",
    "f1": "F1",
    "ap": "average precision",
}
PREFERRED = ("accuracy", "auc", "rocauc", "ap", "f1", "mae", "loss")


def is_metric(name: str) -> bool:
    return name not in BOOKKEEPING


def lower_is_better(name: str) -> bool:
    return name.rsplit(".", 1)[-1] in LOWER_IS_BETTER


def scale(name: str) -> float:
    """100 for a fraction that is shown in per cent (points), 1 for a loss."""
    return 1.0 if lower_is_better(name) else 100.0


def unit(name: str) -> str:
    return "" if lower_is_better(name) else "points"


def label(name: str) -> str:
    """``accuracy (%)``, for titles and axes."""
    return f"{LABELS.get(name, name)}{'' if lower_is_better(name) else ' (%)'}"


def first_metric(names: Iterable[str]) -> str:
    """The metric to use when nobody named one: accuracy, else the next usual one."""
    names = [name for name in names if is_metric(name)]
    for name in (*PREFERRED, *names):
        if name in names:
            return name
    raise AnalysisError("the results hold no metric at all")


def check_metric(name: str, known: Iterable[str]) -> str:
    """``name``, if the results hold it."""
    known = list(known)
    if name not in known:
        raise AnalysisError(f"unknown metric {name!r}: the results hold {', '.join(known)}{nearest(name, known)}")
    return name
