"""Conditions on runs: ``when`` of a rule, ``exclude``, and ``--only``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lcat_core.errors import UserError, did_you_mean
from lcat_core.settings import Settings, coerce_if_possible
from lcat_run.sweep.grid_types import Grid


def lookup(key: str, model: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    """Return the value of ``key`` in a run; ``model`` is a key too."""
    return model if key == "model" else settings.get(key, defaults.get(key))


def matches(condition: Settings, model: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Whether every key has the wanted value, or one of several."""
    return all(
        lookup(key, model, settings, defaults) in (wanted if isinstance(wanted, list) else [wanted])
        for key, wanted in condition.items()
    )


def check_conditions(grid: Grid, common: Settings, defaults: Settings) -> list[str]:
    """Check the keys and models that conditions name; return notes on values that no run can have.

    Raises:
        UserError: A key or a model does not exist.
    """
    known = [*defaults, "model"]
    models = {name for block in grid.blocks for name in block.models}
    notes = []
    for condition in [*(rule.when for rule in grid.override), *grid.exclude]:
        for key, wanted in condition.items():
            if key not in known:
                raise UserError(
                    f"a condition in {grid.source} names {key!r}, which is not a key of a run{did_you_mean(key, known)}"
                )
            possible = [] if key == "model" else _possible_values(key, grid, {**defaults, **common})
            for value in wanted if isinstance(wanted, list) else [wanted]:
                if key == "model" and str(value) not in models:
                    raise UserError(
                        f"a condition in {grid.source} names the model {value!r}, which is not in the grid"
                        f"{did_you_mean(value, models)}"
                    )
                if key != "model" and value not in possible:
                    hint = did_you_mean(value, possible)
                    notes.append(f"a condition in {grid.source} names {key}: {value}, which no run has{hint}")
    return notes


def _possible_values(key: str, grid: Grid, common: Settings) -> list[Any]:
    sources = [common, *(rule.set for rule in grid.override)]
    for block in grid.blocks:
        sources += [block.set, *block.models.values(), *(point for axis in block.axes for point in axis.points)]
        sources += [{"seed": seed} for seed in block.seeds]
    return [coerce_if_possible(source[key], common[key]) for source in sources if key in source]
