"""From a grid to its runs, all of them checked before anything starts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from lcat_core.errors import UserError
from lcat_core.identity import run_id
from lcat_core.run_folder import RunRecord
from lcat_core.settings import Settings, coerce_all
from lcat_core.stock_graphgym import settled_split, split_note
from lcat_run.sweep.conditions import check_conditions, lookup, matches
from lcat_run.sweep.grid import find_config
from lcat_run.sweep.grid_types import Block, Grid

_CHECKED_AT_ONCE = 2000
#: A larger sweep is more likely a mistake; `--max-runs` raises the limit.
MAX_RUNS = 100_000


class SettingsChecker(Protocol):
    """What planning asks a worker, which knows GraphGym."""

    def describe(self, base: Path | None) -> tuple[Settings, Settings]:
        """Return the defaults of all keys, and what the configuration file ``base`` sets."""

    def check(self, settings: list[Settings]) -> tuple[int, str] | None:
        """Return the index and the error of the first invalid settings; None if all are valid."""


@dataclass(frozen=True)
class Plan:
    """All runs that a grid asks for.

    Attributes:
        defaults: GraphGym's defaults of all keys.
        common: What all runs set.
        notes: Remarks for the user.
    """

    grid: Grid
    defaults: Settings
    common: Settings
    runs: list[RunRecord]
    notes: list[str]

    def value(self, run: RunRecord, key: str) -> Any:
        """Return the value of ``key`` in a run; ``model`` is a key too."""
        return lookup(key, run.model, run.settings(self.common), self.defaults)


@dataclass(frozen=True)
class _Combination:
    """The runs of one model at one point of a block, one per seed."""

    block: Block
    model: str
    params: Settings


def make_plan(grid: Grid, worker: SettingsChecker, max_runs: int = MAX_RUNS) -> Plan:
    """Expand the grid and have every distinct combination of settings checked.

    Raises:
        UserError: The first invalid key or value, or a grid with no run or more than ``max_runs``.
    """
    _check_size(grid, max_runs)
    base = None if grid.base is None else find_config(grid.base, Path(grid.source))
    defaults, base_settings = worker.describe(base)
    base_settings.pop("seed", None)
    common = {**base_settings, **coerce_all(grid.blocks[0].set, defaults)}
    rules = tuple(replace(rule, when=coerce_all(rule.when, defaults)) for rule in grid.override)
    grid = replace(grid, override=rules, exclude=tuple(coerce_all(entry, defaults) for entry in grid.exclude))
    notes = check_conditions(grid, common, defaults)
    combinations = [entry for block in grid.blocks for entry in _combinations(grid, block, common, defaults)]
    _check(grid, worker, common, combinations)
    split_notes = (split_note({**common, **combination.params}, defaults) for combination in combinations)
    notes += dict.fromkeys(note for note in split_notes if note is not None)
    runs = _runs(grid, common, defaults, combinations)
    if not runs:
        raise UserError(f"{grid.source} asks for no run: `exclude` leaves nothing")
    return Plan(grid, defaults, common, runs, notes)


def _check_size(grid: Grid, max_runs: int) -> None:
    """Refuse a product that would fill the memory, before it is formed."""
    products = [
        (len(block.models), *(len(axis.points) for axis in block.axes), len(block.seeds)) for block in grid.blocks
    ]
    asked_for = sum(map(math.prod, products))
    if asked_for > max_runs:
        largest = " × ".join(map(str, max(products, key=math.prod)))
        raise UserError(
            f"{grid.source} asks for {asked_for} runs (models × axes × seeds: {largest}), but at most {max_runs} are allowed; "
            "give fewer values, or a higher limit with --max-runs"
        )


def _combinations(grid: Grid, block: Block, common: Settings, defaults: Settings) -> Iterator[_Combination]:
    """Models × axes of one block, with the rules applied; combinations excluded for all seeds are omitted."""
    extra = {key: value for key, value in block.set.items() if value != grid.blocks[0].set.get(key, object())}
    for_all_seeds = [condition for condition in grid.exclude if "seed" not in condition]
    for model, settings in block.models.items():
        for points in itertools.product(*(axis.points for axis in block.axes)):
            params: Settings = {**extra, **settings}
            for point in points:
                params.update(point)
            for rule in grid.override:
                if matches(rule.when, model, {**common, **params}, defaults):
                    params.update(rule.set)
            params = coerce_all(params, defaults)
            params |= settled_split({**common, **params}, defaults)
            complete = {**common, **params} if for_all_seeds else params
            if not any(matches(condition, model, complete, defaults) for condition in for_all_seeds):
                yield _Combination(block, model, params)


def _runs(grid: Grid, common: Settings, defaults: Settings, combinations: list[_Combination]) -> list[RunRecord]:
    changed = {key: value for key, value in common.items() if key not in defaults or value != defaults[key]}
    for_some_seeds = [condition for condition in grid.exclude if "seed" in condition]
    runs: dict[str, RunRecord] = {}
    for combination in combinations:
        model, params = combination.model, combination.params
        complete = {**changed, **params}
        label = complete.get("dataset.label") or complete.get("dataset.name", defaults.get("dataset.name", ""))
        split_seed: int = {"dataset.split_seed": 0, **defaults, **complete}["dataset.split_seed"]
        for seed in combination.block.seeds:
            if for_some_seeds and _is_excluded(for_some_seeds, model, {**common, **params, "seed": seed}, defaults):
                continue
            identity = run_id(model, {**complete, "seed": seed}, defaults)
            run = runs.setdefault(identity, RunRecord(identity, model, str(label), seed, split_seed, params))
            if run.model != model:
                raise UserError(
                    f"the models {run.model!r} and {model!r} in {grid.source} would share the folder {identity}; "
                    "give them names that differ in letters or digits"
                )
    return list(runs.values())


def _is_excluded(conditions: list[Settings], model: str, settings: Settings, defaults: Mapping[str, Any]) -> bool:
    return any(matches(condition, model, settings, defaults) for condition in conditions)


def _check(grid: Grid, worker: SettingsChecker, common: Settings, combinations: list[_Combination]) -> None:
    distinct: dict[str, _Combination] = {}
    for combination in combinations:
        distinct.setdefault(repr(sorted(combination.params.items())), combination)
    entries = list(distinct.values())
    for start in range(0, len(entries), _CHECKED_AT_ONCE):
        part = entries[start : start + _CHECKED_AT_ONCE]
        problem = worker.check([{**common, **combination.params} for combination in part])
        if problem is not None:
            index, message = problem
            axes = {key for block in grid.blocks for axis in block.axes for key in axis.keys}
            params = part[index].params
            point = "".join(f", {key}={value}" for key, value in params.items() if key in axes)
            raise UserError(f"{message} (in {grid.where}: model {part[index].model}{point})")
