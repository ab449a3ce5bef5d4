"""Settings as flat dictionaries, ``{"optim.base_lr": 0.01}``: flattening, types, and overrides from the command line."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from lcat_core.errors import LcatError, UserError
from lcat_core.strict_yaml import parse_scalar

Settings = dict[str, Any]

_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list"}


def flatten(tree: Mapping[Any, Any], where: str = "the settings", error_type: type[LcatError] = UserError) -> Settings:
    """``{"optim": {"base_lr": 0.01}}`` → ``{"optim.base_lr": 0.01}``; keys that are already flat stay as they are.

    Raises:
        error_type: A key appears both flat and nested.
    """
    flat: Settings = {}
    for key, value in tree.items():
        below = flatten(value, where, error_type) if isinstance(value, Mapping) else {"": value}
        for rest, item in below.items():
            complete = f"{key}.{rest}" if rest else str(key)
            if complete in flat:
                raise error_type(f"{complete!r} appears twice in {where}, once flat and once nested", complete)
            flat[complete] = list(item) if isinstance(item, tuple) else item
    return flat


def coerce(value: Any, default: Any) -> Any:
    """Return ``value`` with the type of ``default``; a default of None accepts anything.

    Raises:
        TypeError: The value has another type, or is a number that is not finite.
    """
    if default is None:
        return value
    if isinstance(default, list) and isinstance(value, (list, tuple)):
        return [coerce(item, default[0]) for item in value] if default else list(value)
    if isinstance(default, float) and isinstance(value, str):
        with contextlib.suppress(ValueError):  # YAML reads 1e-3, without a point, as text
            value = float(value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(default) or (isinstance(value, float) and not math.isfinite(value)):
        raise TypeError(f"expected {type_name(default)} such as {default!r}, got {value!r}")
    return value


def coerce_if_possible(value: Any, default: Any) -> Any:
    """Like :func:`coerce`, but return an unsuitable value unchanged; a list stands for alternatives unless the default is one."""
    if isinstance(value, list) and not isinstance(default, list):
        return [coerce_if_possible(item, default) for item in value]
    try:
        return coerce(value, default)
    except (TypeError, OverflowError):
        return value


def coerce_all(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Settings:
    """Give every value the type of its default where possible; a later check reports the others."""
    return {key: coerce_if_possible(value, defaults.get(key)) for key, value in settings.items()}


def type_name(default: Any) -> str:
    """Describe the type of a default for messages, such as ``"a whole number"``."""
    return _TYPE_NAMES.get(type(default), type(default).__name__)


def parse_overrides(words: Sequence[str], error_type: type[LcatError] = UserError) -> Settings:
    """``["optim.base_lr", "0.005"]`` → ``{"optim.base_lr": 0.005}``.

    Raises:
        error_type: A key without a value, a key given twice, or a value that is not valid YAML.
    """
    if len(words) % 2:
        raise error_type(f"settings come in pairs of a key and a value, but the last key has no value: {words[-1]!r}")
    overrides: Settings = {}
    for key, value in zip(words[::2], words[1::2], strict=True):
        if key in overrides:
            raise error_type(f"{key!r} appears twice on the command line", key)
        overrides[key] = parse_scalar(value, error_type)
    return overrides
