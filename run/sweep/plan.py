"""From a grid to its runs, all of them checked before anything starts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from lcat_run.errors import UserError, nearest
from lcat_run.identity import run_id
from lcat_run.sweep.grid import Block, Grid, Settings, find_config

_CHECKED_AT_ONCE = 2000
_VALUES_SHOWN = 20


class Describer(Protocol):
    """What a plan asks of a worker."""

    def describe(self, base: Path | None) -> tuple[Settings, Settings]: ...

    def check(self, settings: list[Settings]) -> tuple[int, str] | None: ...


@dataclass(frozen=True)
class Run:
    """One line of ``runs.jsonl``."""

    run_id: str
    model: str
    dataset: str
    seed: int
    split_seed: int
    params: Settings

    def record(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Run:
        """Raises ``KeyError`` or ``TypeError`` for what is no record of a run; what it has beyond that is ignored."""
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})

    def settings(self, common: Mapping[str, Any]) -> Settings:
        """Everything the run sets; ``common`` is what all runs of the sweep share."""
        return {**common, **self.params, "seed": self.seed}


@dataclass(frozen=True)
class Plan:
    """All runs that a grid asks for."""

    grid: Grid
    defaults: Settings
    common: Settings
    runs: list[Run]
    notes: list[str]

    def value(self, run: Run, key: str) -> Any:
        """What ``key`` is in a run; also ``model``."""
        return _lookup(key, run.model, run.settings(self.common), self.defaults)

    def select(self, conditions: Mapping[str, list[Any]]) -> list[Run]:
        """The runs for which every key has one of the given values."""
        known = [*self.defaults, "model"]
        wanted = {}
        for key, values in conditions.items():
            if key not in known:
                raise UserError(f"--only names {key!r}, which is no key of a run{nearest(key, known)}")
            wanted[key] = [_number_like(value, self.defaults.get(key)) for value in values]
            there = _distinct(self.value(run, key) for run in self.runs)
            for value in wanted[key]:
                if value not in there:
                    shown = ", ".join([*map(str, there[:_VALUES_SHOWN]), *(["…"] if there[_VALUES_SHOWN:] else [])])
                    raise UserError(
                        f"--only names {key}={value}, which no run of the grid has{nearest(value, map(str, there))} "
                        f"(there are: {shown})"
                    )
        chosen = [run for run in self.runs if all(self.value(run, key) in values for key, values in wanted.items())]
        if not chosen:
            text = ",".join(f"{key}={value}" for key, values in conditions.items() for value in values)
            raise UserError(f"--only {text} matches none of the {len(self.runs)} runs of the grid")
        return chosen


def make_plan(grid: Grid, worker: Describer) -> Plan:
    """Expands the grid and has every distinct combination checked.

    Raises:
        UserError: for the first key or value that cannot be, or for a grid without runs.
    """
    base = None if grid.base is None else find_config(grid.base, Path(grid.source))
    defaults, base_settings = worker.describe(base)
    base_settings.pop("seed", None)
    common = {**base_settings, **_coerce(grid.blocks[0].set, defaults)}
    rules = tuple(replace(rule, when=_coerce(rule.when, defaults)) for rule in grid.override)
    grid = replace(grid, override=rules, exclude=tuple(_coerce(condition, defaults) for condition in grid.exclude))
    notes = _check_conditions(grid, common, defaults)

    combinations = [
        (block, model, params)
        for block in grid.blocks
        for model, params in _combinations(grid, block, common, defaults)
    ]
    if not combinations:
        raise UserError(f"{grid.source} asks for no run: `exclude` leaves nothing")
    _check(grid, worker, common, combinations)

    lean = {key: value for key, value in common.items() if key not in defaults or value != defaults[key]}
    runs: dict[str, Run] = {}
    for block, model, params in combinations:
        complete = {**lean, **params}
        label = complete.get("dataset.label") or complete.get("dataset.name", defaults.get("dataset.name", ""))
        split_seed = complete.get("dataset.split_seed", defaults.get("dataset.split_seed", 0))
        for seed in block.seeds:
            if _excluded(grid, model, seed, {**common, **params}, defaults):
                continue
            identity = run_id(model, {**complete, "seed": seed}, defaults)
            run = runs.setdefault(identity, Run(identity, model, str(label), seed, split_seed, params))
            if run.model != model:
                raise UserError(
                    f"the models {run.model!r} and {model!r} in {grid.source} would share the folder {identity}; "
                    "give them names that differ in letters or digits"
                )
    if not runs:
        raise UserError(f"{grid.source} asks for no run: `exclude` leaves nothing")
    return Plan(grid, defaults, common, list(runs.values()), notes)


def _combinations(grid: Grid, block: Block, common: Settings, defaults: Settings) -> Iterator[tuple[str, Settings]]:
    """Models × axes of one block with the overrides applied; what ``exclude`` says without a seed is left out."""
    extra = {key: value for key, value in block.set.items() if value != grid.blocks[0].set.get(key, object())}
    without_seed = [condition for condition in grid.exclude if "seed" not in condition]
    for model, settings in block.models.items():
        for points in itertools.product(*(axis.points for axis in block.axes)):
            params: Settings = {**extra, **settings}
            for point in points:
                params.update(point)
            for rule in grid.override:
                if _matches(rule.when, model, {**common, **params}, defaults):
                    params.update(rule.set)
            params = _coerce(params, defaults)
            complete = {**common, **params} if without_seed else params
            if not any(_matches(condition, model, complete, defaults) for condition in without_seed):
                yield model, params


def _excluded(grid: Grid, model: str, seed: int, settings: Settings, defaults: Settings) -> bool:
    return any(
        _matches(condition, model, {**settings, "seed": seed}, defaults)
        for condition in grid.exclude
        if "seed" in condition
    )


def _matches(condition: Settings, model: str, settings: Mapping[str, Any], defaults: Settings) -> bool:
    for key, wanted in condition.items():
        options = wanted if isinstance(wanted, list) else [wanted]
        if _lookup(key, model, settings, defaults) not in options:
            return False
    return True


def _lookup(key: str, model: str, settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
    return model if key == "model" else settings.get(key, defaults.get(key))


def _check_conditions(grid: Grid, common: Settings, defaults: Settings) -> list[str]:
    """Raises for a key or model that is not there; returns notes on other values that no run can have."""
    known = [*defaults, "model"]
    models = {name for block in grid.blocks for name in block.models}
    notes = []
    for condition in [*(rule.when for rule in grid.override), *grid.exclude]:
        for key, wanted in condition.items():
            if key not in known:
                raise UserError(
                    f"a condition in {grid.source} names {key!r}, which is no key of a run{nearest(key, known)}"
                )
            possible = [] if key == "model" else _possible_values(key, grid, {**defaults, **common})
            for value in wanted if isinstance(wanted, list) else [wanted]:
                if key == "model" and str(value) not in models:
                    raise UserError(
                        f"a condition in {grid.source} names the model {value!r}, which the grid has not"
                        f"{nearest(value, models)}"
                    )
                if key != "model" and value not in possible:
                    hint = nearest(value, map(str, possible))
                    notes.append(f"a condition in {grid.source} names {key}: {value}, which no run has{hint}")
    return notes


def _possible_values(key: str, grid: Grid, common: Settings) -> list[Any]:
    sources = [common, *(rule.set for rule in grid.override)]
    for block in grid.blocks:
        sources += [block.set, *block.models.values(), *(point for axis in block.axes for point in axis.points)]
        sources += [{"seed": seed} for seed in block.seeds]
    return [_number_like(source[key], common[key]) for source in sources if key in source]


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Like ``set``, for values such as lists, in their order."""
    return list({repr(value): value for value in values}.values())


def _check(grid: Grid, worker: Describer, common: Settings, combinations: list) -> None:
    distinct: dict[str, tuple[str, Settings]] = {}
    for _, model, params in combinations:
        distinct.setdefault(repr(sorted(params.items())), (model, params))
    entries = list(distinct.values())
    for start in range(0, len(entries), _CHECKED_AT_ONCE):
        part = entries[start : start + _CHECKED_AT_ONCE]
        problem = worker.check([{**common, **params} for _, params in part])
        if problem is not None:
            index, message = problem
            model, params = part[index]
            axes = {key for block in grid.blocks for axis in block.axes for key in axis.keys}
            point = "".join(f", {key}={value}" for key, value in params.items() if key in axes)
            raise UserError(f"{message} (in {grid.where}: model {model}{point})")


def _coerce(settings: Settings, defaults: Settings) -> Settings:
    """Numbers as the defaults have them: YAML reads 1e-3, without a point, as text."""
    return {key: _number_like(value, defaults.get(key)) for key, value in settings.items()}


def _number_like(value: Any, default: Any) -> Any:
    if isinstance(value, list) and not isinstance(default, list):  # any of several, in a condition
        return [_number_like(item, default) for item in value]
    if isinstance(default, float) and isinstance(value, (int, str)) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            return value
    return value
