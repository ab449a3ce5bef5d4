"""Reading a grid: the YAML file as a :class:`Grid`, or one clear message about what is wrong with its form.

Whether the keys and values are GraphGym's is not known here; :mod:`lcat_run.sweep.plan` asks a worker that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from lcat_run.errors import UserError, nearest
from lcat_run.identity import counts
from lcat_run.lookup import find_yaml
from lcat_run.models import BASELINES, MODELS
from lcat_run.sweep.strict_yaml import check_plain, read_yaml

Settings = dict[str, Any]

_FIELDS = (
    "name",
    "base",
    "set",
    "seeds",
    "models",
    "axes",
    "override",
    "exclude",
    "include",
    "select",
    "compare",
    "match",
    "description",
)
_INCLUDE_FIELDS = ("models", "axes", "seeds", "set")
_METRIC = re.compile(r"val\.\w+")
#: More than anybody wants, but fewer than a seed that was meant as the only one, such as 20240131.
_MAX_SEEDS = 10_000


@dataclass(frozen=True)
class Axis:
    """One dimension of a grid: its name, and what each of its values sets."""

    name: str
    points: tuple[Settings, ...]

    @property
    def keys(self) -> set[str]:
        return {key for point in self.points for key in point}


@dataclass(frozen=True)
class Rule:
    """What ``set`` changes in the runs that match ``when``."""

    when: Settings
    set: Settings


@dataclass(frozen=True)
class Block:
    """A product of models, axes and seeds."""

    models: dict[str, Settings]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    set: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Grid:
    """A grid file, with presets filled in and all keys flat; ``where`` is where its settings come from, in words."""

    name: str
    base: str | None
    blocks: tuple[Block, ...]
    override: tuple[Rule, ...]
    exclude: tuple[Settings, ...]
    source: str
    where: str
    document: dict[str, Any]

    @property
    def models(self) -> dict[str, Settings]:
        return self.blocks[0].models


def find_config(name: str, grid: Path) -> Path:
    """The configuration of that path, seen from the grid's folder first, or the packaged one of that name.

    A grid and its configuration often share a name (``real.yaml``), so a grid is never taken for one.
    """
    grids = Path(str(resources.files("lcat_grids"))).resolve()
    for candidate in (grid.parent / name, Path(name)):
        if candidate.is_file() and candidate.resolve() != grid.resolve() and candidate.resolve().parent != grids:
            return candidate
    packaged = Path(str(resources.files("lcat_configs"))) / Path(name).with_suffix(".yaml").name
    return packaged if packaged.is_file() and Path(name).name == name else find_yaml(name, "lcat_configs")


def read_grid(path: Path, overrides: Mapping[str, Any] | None = None) -> Grid:
    """Reads a grid; ``overrides`` (flat key → value, of a command line) replace what the grid sets for all or some runs."""
    document = read_yaml(path)
    return parse_grid(document, str(path), dict(overrides or {}), default_name=path.stem)


def parse_grid(document: Any, source: str, overrides: Settings, default_name: str = "sweep") -> Grid:
    check_plain(document, source)
    check_plain(overrides, "the command line")
    document = _mapping(document, "a grid", source)
    _check_fields(document, _FIELDS, source)
    name = document.get("name", default_name)
    if not isinstance(name, str) or not re.fullmatch(r"[\w][\w.+-]*", name):
        raise UserError(f"`name` in {source} must be letters, digits, '_', '.', '+' or '-', got {name!r}")
    base = document.get("base")
    if base is not None and not isinstance(base, str):
        raise UserError(f"`base` in {source} must name a configuration file, got {base!r}")

    common = _settings(document.get("set") or {}, "`set`", source)
    seeds_source = "the command line" if "seeds" in overrides else source
    if "seeds" in overrides:
        document = {**document, "seeds": overrides.pop("seeds")}
        # Said of all runs, so also of those that an `include` gives other seeds.
        includes = [
            {k: v for k, v in entry.items() if k != "seeds"} if isinstance(entry, Mapping) else entry
            for entry in _sequence(document.get("include") or [], "`include`", source)
        ]
        document = {**document, "include": includes}
    if "seed" in overrides:
        raise UserError(f"`seeds` gives every run its seed: write seeds '[{overrides['seed']}]' on the command line")
    overrides = flatten(overrides, "the command line")
    models = _models(document.get("models"), source)
    axes = _axes(document.get("axes") or {}, source)
    seeds = _seeds(document.get("seeds", 1), seeds_source)
    axes = _apply_overrides(models, axes, common, overrides, source)
    _check_models_against_axes(models, axes, source)
    blocks = [Block(models, axes, seeds, common)]
    for number, entry in enumerate(_sequence(document.get("include") or [], "`include`", source)):
        blocks.append(_include(entry, blocks[0], f"include[{number}] in {source}", overrides))

    # What a command line says is said of all runs, so it also wins over the rules for some.
    rules = (_rule(rule, source) for rule in _sequence(document.get("override") or [], "`override`", source))
    rules = tuple(Rule(rule.when, {k: v for k, v in rule.set.items() if k not in overrides}) for rule in rules)

    normal = {"name": name, "base": base, "set": common, "seeds": list(seeds), "models": models}
    normal |= {"axes": {axis.name: _axis_values(axis) for axis in axes}}
    normal |= {"override": [{"when": rule.when, "set": rule.set} for rule in rules if rule.set]}
    normal |= {key: document[key] for key in ("exclude", "include", "description") if document.get(key)}
    normal |= _analysis_fields(document, models, axes, source)
    return Grid(
        name=name,
        base=base,
        blocks=tuple(blocks),
        override=rules,
        exclude=tuple(_condition(c, source) for c in _sequence(document.get("exclude") or [], "`exclude`", source)),
        source=source,
        where=f"{source} or on the command line" if overrides else source,
        document={key: value for key, value in normal.items() if value not in (None, {}, [])},
    )


def flatten(tree: Mapping[str, Any], source: str) -> Settings:
    """``{"optim": {"base_lr": 0.01}}`` → ``{"optim.base_lr": 0.01}``; keys that are flat already stay so."""
    flat: Settings = {}
    for key, value in tree.items():
        below = flatten(value, source) if isinstance(value, Mapping) else {"": value}
        for rest, item in below.items():
            complete = f"{key}.{rest}" if rest else str(key)
            if complete in flat:
                raise UserError(f"{complete!r} comes twice in {source}, in one piece and nested")
            flat[complete] = item
    return flat


def _settings(entry: Any, what: str, source: str) -> Settings:
    """Flat settings; the seed is none of them."""
    flat = flatten(_mapping(entry, what, source), source)
    if "seed" in flat:
        raise UserError(
            f"{what} in {source} sets `seed`, but `seeds` gives every run its seed: use `seeds: [{flat['seed']}]`"
        )
    return flat


def _models(entry: Any, source: str) -> dict[str, Settings]:
    if isinstance(entry, Sequence) and not isinstance(entry, str):
        names = [str(name) for name in entry]
        twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
        if twice is not None:
            raise UserError(f"`models` in {source} has {twice!r} twice")
        entry = dict.fromkeys(names)
    if not isinstance(entry, Mapping) or not entry:
        raise UserError(f"`models` in {source} must list models of the paper or map names to settings, got {entry!r}")
    models = {}
    for name, settings in _mapping(entry, "`models`", source).items():
        if settings is None and name not in MODELS:
            raise UserError(f"unknown model {name!r} in {source}{nearest(name, MODELS)} (known: {', '.join(MODELS)})")
        preset = MODELS[name] if name in MODELS and settings in (None, {}) else None
        models[name] = _settings(settings, f"model {name!r}", source) if preset is None else dict(preset)
    return models


def _axes(entry: Any, source: str) -> tuple[Axis, ...]:
    axes = []
    for name, values in flatten(_mapping(entry, "`axes`", source), source).items():
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise UserError(f"the axis {name!r} in {source} must be a list of at least one value, got {values!r}")
        linked = [isinstance(value, Mapping) for value in values]
        if any(linked) and not all(linked):
            raise UserError(f"the axis {name!r} in {source} mixes mappings (linked keys) with plain values")
        points = tuple(flatten(value, source) if linked[0] else {name: value} for value in values)
        if linked[0] and len({frozenset(point) for point in points}) > 1:
            raise UserError(f"the values of the linked axis {name!r} in {source} must all set the same keys")
        for number, point in enumerate(points):
            if point in points[:number]:
                raise UserError(f"the axis {name!r} in {source} has the value {values[number]!r} twice")
        axes.append(Axis(name, points))
        if not any(map(counts, axes[-1].keys)):
            raise UserError(f"the axis {name!r} in {source} changes nothing that a run computes, so it makes no runs")
    seen: dict[str, str] = {}
    for axis in axes:
        for key in axis.keys:
            if key in seen:
                raise UserError(f"{key!r} is set by two axes in {source}: {seen[key]!r} and {axis.name!r}")
            if key == "seed":
                raise UserError(f"{source} has an axis {axis.name!r} for `seed`; use `seeds`")
            seen[key] = axis.name
    return tuple(axes)


def _seeds(entry: Any, source: str) -> tuple[int, ...]:
    if isinstance(entry, int) and not isinstance(entry, bool) and entry > 0:
        if entry > _MAX_SEEDS:
            raise UserError(
                f"`seeds` in {source} must be at most {_MAX_SEEDS}, got {entry}; the one seed {entry} is [{entry}]"
            )
        return tuple(range(entry))
    if isinstance(entry, Sequence) and not isinstance(entry, str) and entry:
        whole = all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in entry)
        if whole and len(set(entry)) == len(entry):
            return tuple(entry)
    raise UserError(
        f"`seeds` in {source} must be a positive number or a list of different whole numbers, got {entry!r}"
    )


def _apply_overrides(
    models: dict[str, Settings], axes: tuple[Axis, ...], common: Settings, overrides: Settings, source: str
) -> tuple[Axis, ...]:
    """Settings of a command line: an axis of that key keeps the one value, everything else goes into ``common``."""
    kept = []
    for axis in axes:
        clash = sorted(axis.keys & overrides.keys())
        if clash and axis.keys != {axis.name}:
            raise UserError(
                f"{clash[0]!r} is set by the linked axis {axis.name!r} of {source}; choose from it with --only"
            )
        if not clash:
            kept.append(axis)
    for key in overrides:
        owner = next((name for name, settings in models.items() if key in settings), None)
        if owner is not None:
            raise UserError(f"{key!r} is what makes the model {owner!r} of {source}; it cannot be set for all of them")
    common.update(overrides)
    return tuple(kept)


def _check_models_against_axes(models: Mapping[str, Settings], axes: Sequence[Axis], source: str) -> None:
    """A model that an axis changes would be another model under its name."""
    for name, settings in models.items():
        for axis in axes:
            clash = sorted(axis.keys & settings.keys())
            if clash:
                raise UserError(f"{clash[0]!r} is set by the model {name!r} and by the axis {axis.name!r} of {source}")


def _include(entry: Any, first: Block, where: str, overrides: Settings) -> Block:
    """A further product; what it does not say is taken from the grid itself, but for the axes."""
    entry = _mapping(entry, "an entry", where)
    _check_fields(entry, _INCLUDE_FIELDS, where)
    names = entry.get("models")
    if names and isinstance(names, list) and all(isinstance(name, str) and name in first.models for name in names):
        models = {name: first.models[name] for name in names}
    else:
        models = first.models if names is None else _models(names, where)
    seeds = first.seeds if entry.get("seeds") is None else _seeds(entry["seeds"], where)
    common = {**first.set, **_settings(entry.get("set") or {}, "`set`", where)}
    axes = _apply_overrides(models, _axes(entry.get("axes") or {}, where), common, overrides, where)
    _check_models_against_axes(models, axes, where)
    return Block(models, axes, seeds, common)


def _rule(entry: Any, source: str) -> Rule:
    entry = _mapping(entry, "an entry of `override`", source)
    _check_fields(entry, ("when", "set"), f"`override` in {source}")
    if not entry.get("when") or not entry.get("set"):
        raise UserError(f"an entry of `override` in {source} needs both `when` and `set`, got {dict(entry)!r}")
    when = _condition(entry["when"], source)
    if "seed" in when:
        raise UserError(f"`when` of an `override` in {source} names `seed`, but a rule holds for all seeds alike")
    return Rule(when, _settings(entry["set"], "`set` of an `override`", source))


def _condition(entry: Any, source: str) -> Settings:
    return flatten(_mapping(entry, "a condition of `override` or `exclude`", source), source)


def _analysis_fields(
    document: Mapping[str, Any], models: Mapping[str, Any], axes: Sequence[Axis], source: str
) -> dict[str, Any]:
    """``select``, ``compare`` and ``match``: used by the analysis, checked now."""
    known = {key for axis in axes for key in (axis.name, *axis.keys)}
    select = _mapping(document.get("select") or {}, "`select`", source)
    _check_fields(select, ("over", "by"), f"`select` in {source}")
    over = _sequence(select.get("over") or [], "`select.over`", source)
    match = _sequence(document.get("match") or [], "`match`", source)
    declared = flatten(_mapping(document.get("axes") or {}, "`axes`", source), source)
    for key in map(str, [*over, *match]):
        if key not in known and key not in declared:
            raise UserError(f"`select` or `match` in {source} names {key!r}, which is no axis{nearest(key, known)}")
    if select and not _METRIC.fullmatch(str(select.get("by", "val.accuracy"))):
        raise UserError(
            f"`select.by` in {source} must be a validation metric such as val.accuracy, got {select['by']!r}"
        )
    compare = document.get("compare")
    if compare is None:
        compare = {model: BASELINES[model] for model in models if BASELINES.get(model) in models}
    for name in [str(name) for pair in _mapping(compare, "`compare`", source).items() for name in pair]:
        if name not in models:
            raise UserError(f"`compare` in {source} names {name!r}, which is no model of it{nearest(name, models)}")
    if select:
        select = {**select, "over": [key for key in over if key in known]}
    return {"select": dict(select), "compare": dict(compare), "match": list(match)}


def _axis_values(axis: Axis) -> list[Any]:
    plain = axis.keys == {axis.name}
    return [point[axis.name] if plain else dict(point) for point in axis.points]


def _mapping(value: Any, what: str, source: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{what} in {source} must be a mapping of keys to values, got {value!r:.200}")
    return {str(key): item for key, item in value.items()}


def _sequence(value: Any, what: str, source: str) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise UserError(f"{what} in {source} must be a list, got {value!r}")
    return value


def _check_fields(entry: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise UserError(f"{key!r} in {where} is unknown{nearest(key, known)} (known: {', '.join(known)})")
