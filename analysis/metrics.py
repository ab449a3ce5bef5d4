"""How tables and figures show a metric, from the rows of ``lcat_core.metrics``."""

from __future__ import annotations

from collections.abc import Iterable

from lcat_core.errors import ResultsError, unknown_name
from lcat_core.metrics import BOOKKEEPING, default_metric, metric


def is_metric(name: object) -> bool:
    """Whether a number in a line of ``stats.json`` is a metric."""
    return name not in BOOKKEEPING


def lower_is_better(name: str) -> bool:
    return not metric(name).higher_is_better


def scale(name: str) -> float:
    """Return the factor between recorded and shown values: 100 for a fraction that is shown in per cent, otherwise 1."""
    return 100.0 if metric(name).percent else 1.0


def unit(name: str) -> str:
    """Return the unit of a difference: ``points`` (per cent), or nothing."""
    return "points" if metric(name).percent else ""


def label(name: str) -> str:
    """``accuracy (%)``, for titles and axes."""
    row = metric(name)
    return f"{row.label} (%)" if row.percent else row.label


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
