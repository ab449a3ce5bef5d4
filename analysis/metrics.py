"""How the values of a metric are read and shown: its direction, its scale, its label.

The rows of ``lcat_core.metrics`` describe the known metrics. A run may record rows for metrics of a plugin, a grid may declare
others (``metrics: {perplexity: {higher_is_better: false, scale: number}}``), and so may the options of a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from lcat_core.errors import ResultsError, unknown_name
from lcat_core.metrics import BOOKKEEPING, METRICS, Metric, Scale, check_declaration, default_metric

_LIMITS = {Scale.FRACTION: (0.0, 1.0), Scale.PERCENT: (0.0, 100.0)}
_ROUNDING = 1e-6  # an accuracy of 1 may be stored as 1.0000001


@dataclass(frozen=True)
class Measure:
    """One metric as tables and tests use it."""

    name: str
    label: str
    higher_is_better: bool
    scale: Scale

    @classmethod
    def from_row(cls, row: Metric) -> Measure:
        return cls(row.name, row.label, row.higher_is_better, Scale.FRACTION if row.percent else Scale.NUMBER)

    @property
    def factor(self) -> float:
        """Shown value / recorded value."""
        return 100.0 if self.scale is Scale.FRACTION else 1.0

    @property
    def unit(self) -> str:
        """The unit of a difference: ``points`` (per cent), or nothing."""
        return "" if self.scale is Scale.NUMBER else "points"

    @property
    def title(self) -> str:
        """``accuracy (%)``, for titles and axes."""
        return self.label if self.scale is Scale.NUMBER else f"{self.label} (%)"

    @property
    def digits(self) -> int:
        """Decimals of a difference: two of a per cent, four of a loss."""
        return 4 if self.scale is Scale.NUMBER else 2

    @property
    def sign(self) -> int:
        """1 if higher values are better, else −1."""
        return 1 if self.higher_is_better else -1

    def check(self, values: pd.Series) -> None:
        """Refuse values that the scale does not allow; ``values`` is indexed by run.

        Raises:
            ResultsError: A value is out of range.
        """
        if self.scale not in _LIMITS:
            return
        low, high = _LIMITS[self.scale]
        wrong = values[(values < low - _ROUNDING) | (values > high + _ROUNDING)]
        if len(wrong):
            raise ResultsError(
                f"the {self.name} of {wrong.index[0]} is {wrong.iloc[0]:g}, but a {self.scale} is between {low:g} and {high:g}; "
                f"name the right scale with --scale ({', '.join(Scale)}) or in the grid: "
                f"`metrics: {{{self.name}: {{scale: percent}}}}`"
            )


#: The metric of the paper's tables.
ACCURACY = Measure.from_row(METRICS["accuracy"])


def find_measure(name: str, declared: Mapping[str, Mapping[str, Any]], **chosen: Any) -> Measure:
    """Return how to read a metric.

    Args:
        name: With or without its split (``val.accuracy``).
        declared: Fields of metrics that runs or grids declare: ``higher_is_better``, ``scale``, ``label``.
        chosen: The same fields for this metric, which take precedence; None counts as not given.

    Raises:
        ResultsError: Nobody says which direction is better, or a field is invalid.
    """
    name = name.rsplit(".", 1)[-1]
    fields = {**declared.get(name, {}), **{field: value for field, value in chosen.items() if value is not None}}
    check_declaration(name, fields)
    if name in METRICS:
        known = Measure.from_row(METRICS[name])
    elif "higher_is_better" in fields:
        known = Measure(name, name, fields["higher_is_better"], Scale.NUMBER)
    else:
        raise ResultsError(
            f"{name!r} is not a known metric, so it is unclear which direction is better; say so with --better higher or lower "
            f"(and --scale {', '.join(Scale)}), or in the grid: "
            f"`metrics: {{{name}: {{higher_is_better: false, scale: number}}}}`"
        )
    scale = Scale(fields.get("scale", known.scale))
    return replace(
        known,
        label=str(fields.get("label", known.label)),
        higher_is_better=fields.get("higher_is_better", known.higher_is_better),
        scale=scale,
    )


def declared_fields(rows: Mapping[str, Metric]) -> dict[str, dict[str, Any]]:
    """Return the fields of rows that a run recorded."""
    measures = {name: Measure.from_row(row) for name, row in rows.items()}
    return {
        name: {"label": m.label, "higher_is_better": m.higher_is_better, "scale": str(m.scale)}
        for name, m in measures.items()
    }


def is_metric(name: object) -> bool:
    """Whether a number in a line of ``stats.json`` is a metric."""
    return name not in BOOKKEEPING


def first_metric(names: Iterable[object]) -> str:
    """Return the metric to use when nobody chose one: accuracy, else the first known one."""
    found = default_metric(str(name) for name in names)
    if found is None:
        raise ResultsError("the results contain no metric")
    return found


def check_metric(name: str, known: Iterable[str]) -> str:
    """Return ``name`` if the results contain it."""
    known = list(known)
    if name not in known:
        raise ResultsError(unknown_name("metric", name, known))
    return name
