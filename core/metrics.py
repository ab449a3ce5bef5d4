"""The metrics that runs record: how tables write them, which direction is better, whether they are shown in per cent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lcat_core.errors import LcatError, ResultsError, unknown_name


class Scale(StrEnum):
    """What a recorded value is."""

    FRACTION = "fraction"  # between 0 and 1, shown in per cent
    PERCENT = "percent"  # between 0 and 100, shown as it is
    NUMBER = "number"  # anything else


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: In ``result.json``, in ``stats.json``, and as ``metric_best``.
        label: In tables and on axes.
        higher_is_better: Its direction.
        percent: Recorded as a fraction and shown in per cent.
    """

    name: str
    label: str
    higher_is_better: bool = True
    percent: bool = True

    def format(self, value: float) -> str:
        """Write a value as messages do: in per cent with two decimals, or with four digits."""
        return f"{100 * value:.2f}" if self.percent else f"{value:.4g}"


#: Known metrics, the one that a table uses by default first.
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy"),
        Metric("auc", "ROC-AUC"),
        Metric("rocauc", "ROC-AUC"),
        Metric("ap", "average precision"),
        Metric("f1", "F1"),
        Metric("f1_macro", "macro F1"),
        Metric("f1_micro", "micro F1"),
        Metric("balanced_accuracy", "balanced accuracy"),
        Metric("accuracy-SBM", "weighted accuracy"),
        Metric("precision", "precision"),
        Metric("recall", "recall"),
        Metric("mrr", "MRR"),
        Metric("hits@1", "Hits@1"),
        Metric("hits@3", "Hits@3"),
        Metric("hits@10", "Hits@10"),
        Metric("r2", "R²", percent=False),
        Metric("spearmanr", "Spearman's ρ", percent=False),
        Metric("mae", "MAE", higher_is_better=False, percent=False),
        Metric("mse", "MSE", higher_is_better=False, percent=False),
        Metric("rmse", "RMSE", higher_is_better=False, percent=False),
        Metric("perplexity", "perplexity", higher_is_better=False, percent=False),
        Metric("loss", "loss", higher_is_better=False, percent=False),
    )
}
#: Numbers in a line of ``stats.json`` that are not metrics.
BOOKKEEPING = frozenset({"epoch", "eta", "eta_hours", "lr", "params", "time_iter", "time_epoch", "gpu_memory"})


def metric(name: str) -> Metric:
    """Return the row of a metric, with or without its split (``test.accuracy``); an unknown one is a fraction, higher is better."""
    short = name.rsplit(".", 1)[-1]
    return METRICS.get(short) or Metric(short, short)


def recorded_metrics(result: Mapping[str, Any]) -> dict[str, Metric]:
    """Return the rows that a ``result.json`` carries: those of metrics that a plugin has registered."""
    rows = result.get("metrics")
    if not isinstance(rows, dict):
        return {}
    return {
        name: Metric(
            name,
            str(row.get("label", name)),
            bool(row.get("higher_is_better", True)),
            bool(row.get("percent", True)),
        )
        for name, row in rows.items()
        if isinstance(row, dict) and name not in METRICS
    }


def default_metric(names: Iterable[str]) -> str | None:
    """Return the metric to use when nobody chose one: the first known one, else the first of ``names``."""
    found = [name for name in names if name not in BOOKKEEPING]
    return next((name for name in METRICS if name in found), found[0] if found else None)


#: What a grid may declare about a metric: ``metrics: {brier: {higher_is_better: false, scale: number}}``.
DECLARED_FIELDS = ("higher_is_better", "scale", "label")


def check_declaration(name: str, fields: Mapping[str, Any], error_type: type[LcatError] = ResultsError) -> None:
    """Check what a grid or an option declares about a metric.

    Raises:
        error_type: A field is unknown, or has an invalid value.
    """
    for field, value in fields.items():
        if field not in DECLARED_FIELDS:
            raise error_type(unknown_name(f"field of the metric {name!r}", field, DECLARED_FIELDS))
        if field == "scale" and value not in list(Scale):
            raise error_type(unknown_name(f"scale of the metric {name!r}", value, Scale))
        if field == "higher_is_better" and not isinstance(value, bool):
            raise error_type(f"`higher_is_better` of the metric {name!r} must be true or false, got {value!r}")
