"""Registers with GraphGym without getting in the way of other plugins."""

from __future__ import annotations

import warnings
from typing import Any


def register_once(mapping: dict[str, Any], name: str, thing: Any) -> None:
    """Puts ``thing`` under ``name`` into one of GraphGym's registries.

    GraphGym raises a ``KeyError`` for a name that is there. Importing this package again is no mistake, so its own entries are
    replaced; a name that belongs to someone else is left to them, with a warning.
    """
    present = mapping.get(name)
    if present is not None and _origin(present) != _origin(thing):
        warnings.warn(
            f"GraphGym already has {name!r} from {present.__module__}; graphgym_lcat leaves it as it is", stacklevel=2
        )
        return
    mapping[name] = thing


def _origin(thing: Any) -> tuple[str, str]:
    return thing.__module__, thing.__qualname__
