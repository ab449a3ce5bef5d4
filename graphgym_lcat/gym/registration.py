"""Registration with GraphGym that does not interfere with other plugins."""

from __future__ import annotations

import warnings
from typing import Any

from lcat_core.registration import is_same_definition


def register_once(mapping: dict[str, Any], name: str, thing: Any) -> None:
    """Register ``thing`` as ``name`` in one of GraphGym's registries.

    GraphGym raises ``KeyError`` for a name that is taken. Importing this package again is not an error, so its own entries are
    replaced. A name that another plugin has taken stays theirs, with a warning.
    """
    present = mapping.get(name)
    if present is not None and not is_same_definition(present, thing):
        warnings.warn(
            f"GraphGym already has {name!r} from {present.__module__}; graphgym_lcat does not replace it", stacklevel=2
        )
        return
    mapping[name] = thing
