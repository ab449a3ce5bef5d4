"""Settings of a run: flat ``{"optim.base_lr": 0.01}`` dictionaries, checked before anything starts.

GraphGym's ``cfg`` is one global tree. A process that executes many runs must start each from the defaults, and a mistake should be
reported in one sentence before a dataset is opened. Both are easier with flat dictionaries, which become ``cfg`` at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import assert_cfg, cfg, set_cfg
from yacs.config import CfgNode

from graphgym_lcat.gym import plugins
from graphgym_lcat.gym.config import RANGES, check_value
from graphgym_lcat.gym.settings_rules import check_names, check_together
from lcat_core import settings as flat
from lcat_core.errors import SettingsError, did_you_mean
from lcat_core.settings import Settings
from lcat_core.stock_graphgym import settled_split
from lcat_core.strict_yaml import read_yaml

_GROUPS_SET_BY_GRAPHGYM = ("share",)


def default_settings() -> Settings:
    """Return every key with its default: GraphGym's, ours, and those of other plugins that are imported."""
    return dict(_defaults(tuple(register.config_dict.values())))


@functools.lru_cache(maxsize=1)
def _defaults(registered: tuple[Callable[[CfgNode], None], ...]) -> Settings:
    """Compute the defaults; a sweep checks thousands of settings, and defaults change only when somebody registers keys."""
    fresh = CfgNode()
    set_cfg(fresh)
    defaults = flat.flatten(fresh)
    return {key: value for key, value in defaults.items() if key.split(".")[0] not in _GROUPS_SET_BY_GRAPHGYM}


def read_settings(path: str | Path) -> Settings:
    """Read the settings of a YAML file; keys and types are checked.

    Raises:
        SettingsError: The file is not valid, or has an invalid key or value.
    """
    tree = read_yaml(Path(path), SettingsError)
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        raise SettingsError(f"{path} must hold a mapping of keys to values, got a {type(tree).__name__}")
    return coerce_settings(flat.flatten(tree, str(path), SettingsError), where=f" in {path}")


def parse_overrides(words: Sequence[str]) -> Settings:
    """Parse ``["optim.base_lr", "0.005"]`` from a command line; keys and types are checked."""
    return coerce_settings(flat.parse_overrides(words, SettingsError), where=" on the command line")


def coerce_settings(settings: Mapping[str, Any], where: str = "") -> Settings:
    """Check that all keys exist, and give values the types of the defaults; ``lcat.plugins`` are imported first."""
    import_plugins(settings, where)
    defaults = default_settings()
    return {key: _coerce(key, value, where, defaults) for key, value in settings.items()}


def import_plugins(settings: Mapping[str, Any], where: str = "") -> None:
    """Import the modules that ``lcat.plugins`` names, and the score that ``lcat.score`` names in a module.

    Raises:
        SettingsError: A module cannot be imported.
    """
    names = settings.get(plugins.KEY, [])
    if not RANGES[plugins.KEY].contains(names):
        return  # checked, and refused, like any other value
    try:
        plugins.import_plugins(names)
        plugins.import_score(settings.get(plugins.SCORE_KEY))
    except SettingsError as error:
        raise SettingsError(f"{error}{where and f' ({where.strip()})'}", error.key) from error


def _coerce(key: str, value: Any, where: str, defaults: Settings) -> Any:
    if any(known.startswith(f"{key}.") for known in defaults):
        raise SettingsError(f"`{key}`{where} is a group and must hold a mapping of keys to values, got {value!r}", key)
    if key not in defaults:
        hint = did_you_mean(key, defaults)
        raise SettingsError(f"{key!r}{where} is not a key of the configuration{hint}", key)
    try:
        return flat.coerce(value, defaults[key])
    except TypeError as error:
        default = defaults[key]
        raise SettingsError(
            f"`{key}`{where} must be {flat.type_name(default)} such as {default!r}, got {value!r}", key
        ) from error


def check_settings(settings: Mapping[str, Any], where: str = "") -> Settings:
    """Return the settings with the types of the defaults, after checking everything that needs no dataset.

    Settings that say nothing about splits get the split that they mean in GraphGym.

    Args:
        settings: What differs from the defaults.
        where: Where they come from, for messages, such as ``" in my.yaml"``.

    Raises:
        SettingsError: A run with these settings could not start.
    """
    settings = coerce_settings(settings, where)
    settings |= settled_split(settings, default_settings())
    for key in filter(RANGES.__contains__, settings):
        check_value(key, settings[key], where)
    complete = {**default_settings(), **settings}
    check_names(complete, where)
    check_together(complete, where)
    return settings


def apply_settings(settings: Mapping[str, Any]) -> CfgNode:
    """Make checked settings, on top of the defaults, GraphGym's global configuration; ``lcat.plugins`` are imported first."""
    import_plugins(settings)
    cfg.defrost()
    set_cfg(cfg)
    for key, value in settings.items():
        *groups, name = key.split(".")
        node = cfg
        for group in groups:
            node = node[group]
        node[name] = value
    # GraphGym would do the same, but with a warning about its own default that also configures the root logger.
    cfg.gnn.layers_post_mp = max(1, cfg.gnn.layers_post_mp)
    assert_cfg(cfg)
    return cfg
