"""``select``, ``compare``, ``match`` and ``metrics``: fields of a grid for the analysis, checked before anything runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lcat_core.errors import UserError, did_you_mean
from lcat_core.metrics import check_declaration
from lcat_core.models import default_baselines
from lcat_core.settings import flatten
from lcat_run.sweep.grid_fields import as_list, as_mapping, check_fields
from lcat_run.sweep.grid_types import Axis

_METRIC = re.compile(r"val\.\w+")


def parse_analysis_fields(
    document: Mapping[str, Any], models: Mapping[str, Any], axes: Sequence[Axis], source: str
) -> dict[str, Any]:
    """Return the four fields; the baselines of the paper if ``compare`` is absent.

    Args:
        axes: The axes that are left after the settings of the command line were applied.
    """
    known = {key for axis in axes for key in (axis.name, *axis.keys)}
    declared = flatten(as_mapping(document.get("axes") or {}, "`axes`", source), source)
    select = as_mapping(document.get("select") or {}, "`select`", source)
    check_fields(select, ("over", "by"), f"`select` in {source}")
    over = as_list(select.get("over") or [], "`select.over`", source)
    match = as_list(document.get("match") or [], "`match`", source)
    for key in map(str, [*over, *match]):
        if key not in known and key not in declared:
            hint = did_you_mean(key, known)
            raise UserError(f"`select` or `match` in {source} names {key!r}, which is not an axis{hint}")
    if select and not _METRIC.fullmatch(str(select.get("by", "val.accuracy"))):
        raise UserError(
            f"`select.by` in {source} must be a validation metric such as val.accuracy, got {select['by']!r}"
        )
    if select:
        select = {**select, "over": [key for key in over if key in known]}
    return {
        "select": select,
        "compare": _compare(document.get("compare"), models, source),
        "match": list(match),
        "metrics": _metrics(document.get("metrics"), source),
    }


def _metrics(entry: Any, source: str) -> dict[str, Any]:
    declared = as_mapping(entry or {}, "`metrics`", source)
    for name, fields in declared.items():
        check_declaration(str(name), as_mapping(fields, f"`metrics.{name}`", source), UserError)
    return declared


def _compare(entry: Any, models: Mapping[str, Any], source: str) -> dict[str, Any]:
    if entry is None:
        return dict(default_baselines(models))
    pairs = as_mapping(entry, "`compare`", source)
    for name in [str(name) for pair in pairs.items() for name in pair]:
        if name not in models:
            hint = did_you_mean(name, models)
            raise UserError(f"`compare` in {source} names {name!r}, which is not one of its models{hint}")
    return pairs
