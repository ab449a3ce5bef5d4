"""Read a grid: the YAML file as a :class:`~lcat_run.sweep.grid_types.Grid`, with the settings of the command line applied.

Whether GraphGym knows the keys and accepts the values is not checked here; :mod:`lcat_run.sweep.plan` asks a worker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from lcat_core.errors import UserError
from lcat_core.settings import Settings, flatten
from lcat_core.strict_yaml import check_plain, read_yaml
from lcat_run.lookup import find_yaml
from lcat_run.sweep.grid_analysis import parse_analysis_fields
from lcat_run.sweep.grid_fields import (
    as_list,
    as_mapping,
    check_axes,
    check_fields,
    parse_axes,
    parse_condition,
    parse_models,
    parse_rule,
    parse_seeds,
    parse_settings,
)
from lcat_run.sweep.grid_types import Axis, Block, Grid, Rule
from lcat_run.sweep.search import TRIAL, parse_search

_FIELDS = (
    "name",
    "base",
    "set",
    "seeds",
    "models",
    "axes",
    "trials",
    "search",
    "search_seed",
    "override",
    "exclude",
    "include",
    "select",
    "compare",
    "match",
    "metrics",
    "description",
)
_INCLUDE_FIELDS = ("models", "axes", "seeds", "set")
_COMMAND_LINE = "the command line"
#: Groups of settings that people write where the fields of a grid belong.
_GROUPS = ("dataset", "model", "gnn", "optim", "lcat", "train", "noise", "block_model", "csbm", "metric_best")


def find_config(name: str, grid: Path) -> Path:
    """Return the configuration with that path, relative to the grid's folder first, or the included one of that name.

    A grid and its configuration often share a name (``real.yaml``), so a grid is never mistaken for a configuration.
    """
    grids = Path(str(resources.files("lcat_grids"))).resolve()
    for candidate in (grid.parent / name, Path(name)):
        if os.path.isfile(candidate) and candidate.resolve() != grid.resolve() and candidate.resolve().parent != grids:
            return candidate
    packaged = Path(str(resources.files("lcat_configs"))) / f"{Path(name).stem}.yaml"
    return packaged if os.path.isfile(packaged) and Path(name).name == name else find_yaml(name, "lcat_configs")


def read_grid(path: Path, overrides: Mapping[str, Any] | None = None) -> Grid:
    """Read a grid; ``overrides`` (flat key → value, from a command line) replace what the grid sets for all or some runs."""
    return parse_grid(read_yaml(path), str(path), dict(overrides or {}), default_name=path.stem)


def parse_grid(document: Any, source: str, overrides: Settings, default_name: str = "sweep") -> Grid:
    """Parse a grid's document; ``source`` is its path, for messages.

    Raises:
        UserError: The first thing that is wrong with its form.
    """
    check_plain(document, source)
    check_plain(overrides, _COMMAND_LINE)
    document = as_mapping(document, "a grid", source)
    _check_place(document, source)
    check_fields(document, _FIELDS, source)
    name, base = _name_and_base(document, source, default_name)
    seeds_source = _COMMAND_LINE if "seeds" in overrides else source
    document = _replace_seeds(document, overrides, source)
    if "trials" in document and "trials" in overrides:
        document["trials"] = overrides.pop("trials")
    overrides = flatten(overrides, _COMMAND_LINE)

    common = parse_settings(document.get("set") or {}, "`set`", source)
    models = parse_models(document.get("models"), source)
    axes = parse_axes(document.get("axes") or {}, source)
    trials = parse_search(document, source)
    if trials is not None:
        axes = check_axes((*axes, trials), source)
    first = _block(models, axes, parse_seeds(document.get("seeds", 1), seeds_source), common, overrides, source)
    blocks = [first]
    for number, entry in enumerate(as_list(document.get("include") or [], "`include`", source)):
        blocks.append(_include(entry, first, f"include[{number}] in {source}", overrides))
    rules = _rules(document, overrides, source)

    normal: dict[str, Any] = {
        "name": name,
        "base": base,
        "set": first.set,
        "seeds": list(first.seeds),
        "models": models,
    }
    normal |= {"axes": {axis.name: axis.values for axis in first.axes}}
    normal |= {"override": [{"when": rule.when, "set": rule.set} for rule in rules if rule.set]}
    normal |= {key: document[key] for key in ("exclude", "include", "description") if document.get(key)}
    if trials is not None:  # the winner of a search is chosen by validation, whatever else is
        select = as_mapping(document.get("select") or {}, "`select`", source)
        over = as_list(select.get("over") or [], "`select.over`", source)
        document["select"] = {**select, "over": [*over, TRIAL]}
    normal |= parse_analysis_fields(document, models, first.axes, source)
    return Grid(
        name=name,
        base=base,
        blocks=tuple(blocks),
        override=rules,
        exclude=tuple(
            parse_condition(entry, source) for entry in as_list(document.get("exclude") or [], "`exclude`", source)
        ),
        source=source,
        where=f"{source} or on the command line" if overrides else source,
        document={key: value for key, value in normal.items() if value not in (None, {}, [])},
    )


def _check_place(document: Mapping[str, Any], source: str) -> None:
    """Refuse a setting of the runs among the fields of the grid."""
    for key, value in document.items():
        if key != "model" and key.partition(".")[0] in _GROUPS:
            place = (
                "`axes`, to run all its values,"
                if isinstance(value, list)
                else "`set`, or under `axes` with a list of values,"
            )
            raise UserError(
                f"{key!r} in {source} is a setting of runs: put it under {place} not beside `name` and `models`"
            )


def _name_and_base(document: Mapping[str, Any], source: str, default_name: str) -> tuple[str, str | None]:
    name = document.get("name", default_name)
    if not isinstance(name, str) or not re.fullmatch(r"[\w][\w.+-]*", name):
        raise UserError(f"`name` in {source} must be letters, digits, '_', '.', '+' or '-', got {name!r}")
    base = document.get("base")
    if base is not None and not isinstance(base, str):
        raise UserError(f"`base` in {source} must name a configuration file, got {base!r}")
    return name, base


def _replace_seeds(document: dict[str, Any], overrides: Settings, source: str) -> dict[str, Any]:
    """Apply ``seeds`` of the command line, which applies to the included products too."""
    if "seed" in overrides:
        raise UserError(f"`seeds` gives every run its seed: write seeds '[{overrides['seed']}]' on the command line")
    if "seeds" not in overrides:
        return document
    includes = [
        {key: value for key, value in entry.items() if key != "seeds"} if isinstance(entry, Mapping) else entry
        for entry in as_list(document.get("include") or [], "`include`", source)
    ]
    return {**document, "seeds": overrides.pop("seeds"), "include": includes}


def _rules(document: Mapping[str, Any], overrides: Settings, source: str) -> tuple[Rule, ...]:
    """Return the rules; settings of the command line apply to all runs, so they win over rules for some."""
    rules = (parse_rule(entry, source) for entry in as_list(document.get("override") or [], "`override`", source))
    return tuple(Rule(rule.when, {k: v for k, v in rule.set.items() if k not in overrides}) for rule in rules)


def _block(
    models: dict[str, Settings],
    axes: Sequence[Axis],
    seeds: tuple[int, ...],
    common: Settings,
    overrides: Settings,
    source: str,
) -> Block:
    """Apply the settings of the command line to a product: they replace an axis of that key, or join ``set``."""
    kept = []
    for axis in axes:
        clash = sorted(axis.keys & overrides.keys())
        if clash and axis.keys != {axis.name}:
            raise UserError(
                f"{clash[0]!r} is {'searched by' if axis.name == TRIAL else f'set by the linked axis {axis.name!r} of'} {source}; "
                "choose from its values with --only"
            )
        if not clash:
            kept.append(axis)
    for name, settings in models.items():
        clash = sorted(overrides.keys() & settings.keys())
        if clash:
            raise UserError(f"{clash[0]!r} defines the model {name!r} of {source}; it cannot be set for all models")
        for axis in kept:  # a model that an axis changes would be another model under the same name
            clash = sorted(axis.keys & settings.keys())
            if clash:
                raise UserError(f"{clash[0]!r} is set by the model {name!r} and by the axis {axis.name!r} of {source}")
    return Block(models, tuple(kept), seeds, {**common, **overrides})


def _include(entry: Any, first: Block, where: str, overrides: Settings) -> Block:
    """Parse a further product; it takes what it does not say from the grid itself, except the axes."""
    entry = as_mapping(entry, "an entry", where)
    check_fields(entry, _INCLUDE_FIELDS, where)
    names = entry.get("models")
    if names and isinstance(names, list) and all(isinstance(name, str) and name in first.models for name in names):
        models = {name: first.models[name] for name in names}
    else:
        models = first.models if names is None else parse_models(names, where)
    seeds = first.seeds if entry.get("seeds") is None else parse_seeds(entry["seeds"], where)
    common = {**first.set, **parse_settings(entry.get("set") or {}, "`set`", where)}
    return _block(models, parse_axes(entry.get("axes") or {}, where), seeds, common, overrides, where)
