"""Settings of a run: flat ``{"optim.base_lr": 0.01}`` dictionaries, checked before anything starts.

GraphGym's ``cfg`` is one global tree. A process that makes many runs must start each from the defaults, and a mistake should be
told in one sentence before a dataset is opened; both are easier with flat dictionaries, which become ``cfg`` at the end.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import assert_cfg, cfg, set_cfg
from yacs.config import CfgNode

from graphgym_lcat.data.ogb import OGB_DATASETS
from graphgym_lcat.data.splits import MODES
from graphgym_lcat.gym import plugins, tensorboard
from graphgym_lcat.gym.batches import SAMPLERS
from graphgym_lcat.gym.config import RANGES, check_value
from graphgym_lcat.gym.loader import known_datasets
from graphgym_lcat.gym.stacked_network import STACKED_LAYERS

Settings = dict[str, Any]

_GROUPS_SET_BY_GRAPHGYM = ("share",)
_PLUGGABLE = ("dataset.name", "gnn.layer_type")
_CAT_LAYERS = ("catconv", "catpnaconv", "catgcn2conv", "catginconv")


class SettingsError(ValueError):
    """A key or value that cannot be: what was expected, what came, where, and the nearest right name."""

    def __init__(self, message: str, key: str | None = None):
        super().__init__(message)
        self.key = key


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Settings:
    """``{"optim": {"base_lr": 0.01}}`` → ``{"optim.base_lr": 0.01}``; keys that are flat already stay so."""
    flat: Settings = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


def default_settings() -> Settings:
    """Every key with its default: GraphGym's, ours, and those of other plugins that are imported."""
    return dict(_defaults(tuple(register.config_dict.values())))


@functools.lru_cache(maxsize=1)
def _defaults(registered: tuple[Callable[[CfgNode], None], ...]) -> Settings:
    """A sweep checks thousands of settings, and the defaults change only when something registers keys."""
    fresh = CfgNode()
    set_cfg(fresh)
    defaults = flatten(fresh)
    return {key: value for key, value in defaults.items() if key.split(".")[0] not in _GROUPS_SET_BY_GRAPHGYM}


def read_settings(path: str | Path) -> Settings:
    """The settings of a YAML file, checked."""
    path = Path(path)
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"the configuration {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        raise SettingsError(f"{path} must hold a mapping of keys to values, got a {type(tree).__name__}")
    try:
        settings = flatten(tree)
    except RecursionError as error:
        raise SettingsError(f"{path} has an alias to a mapping inside of that mapping") from error
    return coerce_settings(settings, where=f" in {path}")


def parse_overrides(words: Iterable[str]) -> Settings:
    """``["optim.base_lr", "0.005"]`` from a command line, checked."""
    words = list(words)
    if len(words) % 2:
        raise SettingsError(f"settings come in pairs of a key and a value, got a last key without one: {words[-1]!r}")
    try:
        values = [yaml.safe_load(word) for word in words[1::2]]
    except yaml.YAMLError as error:
        raise SettingsError(f"a value on the command line is not valid YAML: {' '.join(str(error).split())}") from error
    return coerce_settings(dict(zip(words[::2], values, strict=True)), where=" on the command line")


def coerce_settings(settings: Mapping[str, Any], where: str = "") -> Settings:
    """Settings with known keys and values of the types of the defaults; the plugins that they name are imported first."""
    _import_plugins(settings, where)
    defaults = default_settings()
    return {key: _coerce(key, value, where, defaults) for key, value in settings.items()}


def _import_plugins(settings: Mapping[str, Any], where: str) -> None:
    names = settings.get(plugins.KEY, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return  # refused below, as a value that cannot be
    try:
        plugins.import_plugins(names)
    except plugins.PluginError as error:
        raise SettingsError(f"{error}{where and f' ({where.strip()})'}", plugins.KEY) from error


def _coerce(key: str, value: Any, where: str, defaults: Settings) -> Any:
    if any(known.startswith(f"{key}.") for known in defaults):
        raise SettingsError(f"`{key}`{where} is a group and must hold a mapping of keys to values, got {value!r}", key)
    if key not in defaults:
        close = difflib.get_close_matches(key, defaults, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise SettingsError(f"{key!r}{where} is not a key of the configuration{hint}", key)
    default = defaults[key]
    if default is None:
        return value
    try:
        return _like(default, value)
    except TypeError as error:
        raise SettingsError(
            f"`{key}`{where} must be {_type_name(default)} such as {default!r}, got {value!r}", key
        ) from error


def _like(default: Any, value: Any) -> Any:
    """``value`` as the type of ``default``; ``TypeError`` if it is of another, or a number that is not finite."""
    if isinstance(default, list) and isinstance(value, (list, tuple)):
        return [_like(default[0], item) for item in value] if default else list(value)
    if isinstance(default, float) and isinstance(value, str):
        with contextlib.suppress(ValueError):  # YAML reads 1e-3, without a point, as text
            value = float(value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(default) or (isinstance(value, float) and not math.isfinite(value)):
        raise TypeError(f"{value!r} is not like {default!r}")
    return value


def _type_name(default: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list"}
    return names.get(type(default), type(default).__name__)


def check_settings(settings: Mapping[str, Any], where: str = "") -> Settings:
    """Raises ``SettingsError`` unless a run with these settings (over the defaults) can start; returns them coerced."""
    settings = coerce_settings(settings, where)
    complete = {**default_settings(), **settings}
    for key in filter(RANGES.__contains__, settings):
        try:
            check_value(key, settings[key])
        except ValueError as error:
            raise SettingsError(f"{error}{where and f' ({where.strip()})'}", key) from error
    for key, options in _choices().items():
        value = complete[key]
        if value not in options:
            close = difflib.get_close_matches(str(value), [str(option) for option in options], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            known = ", ".join(sorted(str(option) for option in options))
            own = (
                f"; a module of yours that registers more can be named in `{plugins.KEY}`" if key in _PLUGGABLE else ""
            )
            raise SettingsError(f"unknown `{key}`{where}: {value!r}{hint} Known: {known}{own}", key)
    _check_together(complete, where)
    return settings


def _choices() -> dict[str, Iterable[Any]]:
    names = known_datasets()
    return {
        "gnn.layer_type": register.layer_dict,
        "gnn.stage_type": register.stage_dict,
        "gnn.act": register.act_dict,
        "gnn.head": ["default", *register.head_dict],
        "model.type": register.network_dict,
        "optim.optimizer": register.optimizer_dict,
        "optim.scheduler": register.scheduler_dict,
        "dataset.split_mode": MODES,
        "train.sampler": SAMPLERS,
        **({} if names is None else {"dataset.name": names}),
        **({} if register.loss_dict else {"model.loss_fun": ["cross_entropy"]}),  # a loss of another plugin may be any
    }


def _check_together(complete: Mapping[str, Any], where: str) -> None:
    """What no key can be blamed for alone."""

    def refuse(key: str, message: str) -> None:
        raise SettingsError(f"{message}{where and f' ({where.strip()})'}", key)

    layer_type = complete["gnn.layer_type"]
    if layer_type in _CAT_LAYERS:
        for key in ("lcat.lambda1", "lcat.lambda2"):
            if complete[key] is not None:
                refuse(key, f"`{key}` must not be set for {layer_type!r}, where both λ are 1, got {complete[key]!r}")
    if layer_type.startswith(("lcat", "cat")) and complete["gnn.dim_inner"] % complete["lcat.heads"]:
        width, heads = complete["gnn.dim_inner"], complete["lcat.heads"]
        refuse("lcat.heads", f"`gnn.dim_inner`, {width}, must be divisible by `lcat.heads`, got {heads}")
    _check_network(complete, refuse)
    if complete["lcat.loop"] == "csbm" and complete["csbm.model"] == "lcat" and not complete["csbm.learned"]:
        refuse("csbm.learned", "`csbm.model` is 'lcat', which exists only where `csbm.learned` is true")
    if complete["dataset.split_mode"] == "file" and not complete["dataset.split_file"]:
        refuse("dataset.split_file", "`dataset.split_mode` is 'file', so `dataset.split_file` must name one")
    if complete["tensorboard_each_run"] and (reason := tensorboard.why_not()) is not None:
        refuse("tensorboard_each_run", f"`tensorboard_each_run` is true, but {reason}")


def _check_network(complete: Mapping[str, Any], refuse: Callable[[str, str], None]) -> None:
    name, network, layer_type = complete["dataset.name"], complete["model.type"], complete["gnn.layer_type"]
    if network in ("lcat_stack", "lcat_relational") and layer_type not in STACKED_LAYERS:
        refuse(
            "model.type", f"`model.type`, {network!r}, takes the layers {', '.join(STACKED_LAYERS)}, got {layer_type!r}"
        )
    several_types = name in OGB_DATASETS and bool(OGB_DATASETS[name].target)
    if several_types != (network == "lcat_relational"):
        needed = "must be 'lcat_relational'" if several_types else "must not be 'lcat_relational'"
        refuse("model.type", f"`model.type` {needed} for {name}, got {network!r}")
    sizes, layers = complete["train.neighbor_sizes"], complete["gnn.layers_mp"]
    if complete["train.sampler"] == "neighbor" and len(sizes) != layers:
        refuse(
            "train.neighbor_sizes", f"`train.neighbor_sizes` needs a number for each of {layers} layers, got {sizes}"
        )


def apply_settings(settings: Mapping[str, Any]) -> CfgNode:
    """Makes these settings, over the defaults, GraphGym's global configuration."""
    cfg.defrost()
    set_cfg(cfg)
    for key, value in settings.items():
        *groups, name = key.split(".")
        node = cfg
        for group in groups:
            node = node[group]
        node[name] = value
    # GraphGym would do it too, with a warning about its own default, which also sets up the root logger.
    cfg.gnn.layers_post_mp = max(1, cfg.gnn.layers_post_mp)
    assert_cfg(cfg)
    return cfg
