"""Modules of the user that register datasets, layers or configuration keys with GraphGym, named by ``lcat.plugins``.

GraphGym finds nothing by itself: somebody must import what registers. A ``main.py`` of one's own does so; ``lcat run`` and the
workers of a sweep do it here, before the names in a configuration are looked up.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

KEY = "lcat.plugins"


class PluginError(ValueError):
    """A module that cannot be imported."""


def import_plugins(names: Iterable[str]) -> None:
    """Imports these modules, from the working directory too.

    Raises:
        PluginError: a module is not there, or fails.
    """
    new = [name for name in names if name not in sys.modules]
    folder = str(Path.cwd())
    if new and folder not in sys.path:
        sys.path.insert(0, folder)
    for name in new:
        _import(name, folder)


def _import(name: str, folder: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):  # something that the module itself needs
            raise PluginError(f"`{KEY}` names {name!r}, which needs {error.name!r}: {error}") from error
        hint = "; give the name of the module, without .py" if name.endswith(".py") else ""
        raise PluginError(
            f"`{KEY}` names {name!r}, which is neither a module in {folder} nor an installed one{hint}"
        ) from error
    except Exception as error:  # whatever the user's code raises is theirs to see, in one line like any other mistake
        raise PluginError(f"`{KEY}` names {name!r}, which fails on import: {type(error).__name__}: {error}") from error
