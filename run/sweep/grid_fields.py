"""The fields of a grid file, one function each: the value as typed data, or one clear message about its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lcat_core.errors import UserError, did_you_mean
from lcat_core.identity import counts
from lcat_core.models import MODELS
from lcat_core.settings import Settings, flatten
from lcat_run.sweep.grid_types import Axis, Rule

#: More than anybody needs, but less than a number that was meant as the only seed, such as 20240131.
_MAX_SEEDS = 10_000
_SHOWN = 200


def as_mapping(value: Any, what: str, source: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{what} in {source} must be a mapping of keys to values, got {value!r:.{_SHOWN}}")
    return {str(key): item for key, item in value.items()}


def as_list(value: Any, what: str, source: str) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise UserError(f"{what} in {source} must be a list, got {value!r:.{_SHOWN}}")
    return value


def check_fields(entry: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise UserError(f"{key!r} in {where} is unknown{did_you_mean(key, known)} (known: {', '.join(known)})")


def parse_settings(entry: Any, what: str, source: str) -> Settings:
    """Return flat settings; the seed is not one of them."""
    flat = flatten(as_mapping(entry, what, source), source)
    if "seed" in flat:
        raise UserError(
            f"{what} in {source} sets `seed`, but `seeds` gives every run its seed: use `seeds: [{flat['seed']}]`"
        )
    return flat


def parse_models(entry: Any, source: str) -> dict[str, Settings]:
    """Return the settings of every model; one without settings is the paper's model of that name."""
    if isinstance(entry, Sequence) and not isinstance(entry, str):
        names = [str(name) for name in entry]
        repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
        if repeated is not None:
            raise UserError(f"`models` in {source} has {repeated!r} twice")
        entry = dict.fromkeys(names)
    if not isinstance(entry, Mapping) or not entry:
        raise UserError(
            f"`models` in {source} must list models of the paper or map names to settings, got {entry!r:.{_SHOWN}}"
        )
    models = {}
    for name, settings in as_mapping(entry, "`models`", source).items():
        if settings is None and name not in MODELS:
            hint = did_you_mean(name, MODELS)
            raise UserError(f"unknown model {name!r} in {source}{hint} (known: {', '.join(MODELS)})")
        if name in MODELS and settings in (None, {}):
            models[name] = dict(MODELS[name].settings)
        else:
            models[name] = parse_settings(settings, f"model {name!r}", source)
    return models


def parse_axes(entry: Any, source: str) -> tuple[Axis, ...]:
    flat = flatten(as_mapping(entry, "`axes`", source), source)
    return check_axes(tuple(_parse_axis(name, values, source) for name, values in flat.items()), source)


def check_axes(axes: tuple[Axis, ...], source: str) -> tuple[Axis, ...]:
    """Return the axes if no two of them have the same name or set the same key, and none the seed."""
    owners: dict[str, str] = {}
    names: set[str] = set()
    for axis in axes:
        if axis.name in names:
            raise UserError(f"{source} has two axes named {axis.name!r} (`search` adds the axis 'trial')")
        names.add(axis.name)
        for key in axis.keys:
            if key in owners:
                raise UserError(f"{key!r} is set by two axes in {source}: {owners[key]!r} and {axis.name!r}")
            if key == "seed":
                raise UserError(f"{source} has an axis {axis.name!r} for `seed`; use `seeds`")
            owners[key] = axis.name
    return axes


def _parse_axis(name: str, values: Any, source: str) -> Axis:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise UserError(f"the axis {name!r} in {source} must be a list of at least one value, got {values!r:.{_SHOWN}}")
    linked = [isinstance(value, Mapping) for value in values]
    if any(linked) and not all(linked):
        raise UserError(f"the axis {name!r} in {source} mixes mappings (linked keys) with plain values")
    points = tuple(flatten(value, source) if linked[0] else {name: value} for value in values)
    if linked[0] and len({frozenset(point) for point in points}) > 1:
        raise UserError(f"the values of the linked axis {name!r} in {source} must all set the same keys")
    for number, point in enumerate(points):
        if point in points[:number]:
            raise UserError(f"the axis {name!r} in {source} has the value {values[number]!r} twice")
    axis = Axis(name, points)
    if not any(map(counts, axis.keys)):
        raise UserError(f"the axis {name!r} in {source} changes nothing that a run computes, so it adds no runs")
    return axis


def parse_seeds(entry: Any, source: str) -> tuple[int, ...]:
    """Return the seeds: 0 … n − 1 for a number n, or the listed ones."""
    if isinstance(entry, int) and not isinstance(entry, bool) and entry > 0:
        if entry > _MAX_SEEDS:
            raise UserError(
                f"`seeds` in {source} must be at most {_MAX_SEEDS}, got {entry}; the one seed {entry} is [{entry}]"
            )
        return tuple(range(entry))
    if isinstance(entry, Sequence) and not isinstance(entry, str) and entry:
        all_valid = all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in entry)
        if all_valid and len(set(entry)) == len(entry):
            return tuple(entry)
    raise UserError(
        f"`seeds` in {source} must be a positive number or a list of different whole numbers, got {entry!r:.{_SHOWN}}"
    )


def parse_rule(entry: Any, source: str) -> Rule:
    """Return an entry of ``override``."""
    entry = as_mapping(entry, "an entry of `override`", source)
    check_fields(entry, ("when", "set"), f"`override` in {source}")
    if not entry.get("when") or not entry.get("set"):
        raise UserError(f"an entry of `override` in {source} needs both `when` and `set`, got {entry!r:.{_SHOWN}}")
    when = parse_condition(entry["when"], source)
    if "seed" in when:
        raise UserError(f"`when` of an `override` in {source} names `seed`, but a rule applies to all seeds")
    return Rule(when, parse_settings(entry["set"], "`set` of an `override`", source))


def parse_condition(entry: Any, source: str) -> Settings:
    """Return an entry of ``exclude``, or the ``when`` of a rule."""
    return flatten(as_mapping(entry, "a condition of `override` or `exclude`", source), source)
