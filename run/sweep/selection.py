"""``--only``: choose some runs of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lcat_core.errors import UserError, did_you_mean
from lcat_core.run_folder import RunRecord
from lcat_core.settings import coerce_if_possible
from lcat_core.strict_yaml import parse_scalar
from lcat_run.sweep.plan import Plan

_VALUES_SHOWN = 20


def parse_only(entries: Sequence[str]) -> dict[str, list[Any]]:
    """``["dataset.name=Cora,model=lcat"]`` → values by key; a key that is given twice may have either value."""
    chosen: dict[str, list[Any]] = {}
    for part in (part for entry in entries for part in entry.split(",")):
        key, sign, value = part.partition("=")
        if not sign or not key or not value:
            raise UserError(f"--only takes key=value, several separated by commas, got {part!r}")
        chosen.setdefault(key.strip(), []).append(value if key == "model" else parse_scalar(value))
    return chosen


def select_runs(plan: Plan, conditions: Mapping[str, list[Any]]) -> list[RunRecord]:
    """Return the runs in which every key has one of the given values.

    Raises:
        UserError: An unknown key, a value that no run has, or no run that satisfies all conditions.
    """
    known = [*plan.defaults, "model"]
    wanted = {}
    for key, values in conditions.items():
        if key not in known:
            raise UserError(f"--only names {key!r}, which is not a key of a run{did_you_mean(key, known)}")
        wanted[key] = [coerce_if_possible(value, plan.defaults.get(key)) for value in values]
        present = _distinct(plan.value(run, key) for run in plan.runs)
        for value in wanted[key]:
            if value not in present:
                shown = [*map(str, present[:_VALUES_SHOWN]), *(["…"] if present[_VALUES_SHOWN:] else [])]
                raise UserError(
                    f"--only names {key}={value}, which no run of the grid has{did_you_mean(value, present)} "
                    f"(there are: {', '.join(shown)})"
                )
    chosen = [run for run in plan.runs if all(plan.value(run, key) in values for key, values in wanted.items())]
    if not chosen:
        text = ",".join(f"{key}={value}" for key, values in conditions.items() for value in values)
        raise UserError(f"--only {text} matches none of the {len(plan.runs)} runs of the grid")
    return chosen


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Remove duplicates and keep the order; values may be lists, which a set does not accept."""
    return list({repr(value): value for value in values}.values())
