"""Modules of the user that register datasets, layers, metrics or configuration keys, named by ``lcat.plugins``.

GraphGym finds nothing automatically: somebody must import the modules that register. A user's own ``main.py`` imports them; ``lcat
run`` and the workers of a sweep import them here, before they look up the names in a configuration.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

from lcat_core.errors import SettingsError

KEY = "lcat.plugins"


def import_plugins(names: Iterable[str]) -> None:
    """Import these modules; modules in the working directory are found too.

    Raises:
        SettingsError: A module does not exist, or its import fails.
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
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):  # a package that the module itself needs
            raise SettingsError(f"`{KEY}` names {name!r}, which needs {error.name!r}: {error}", KEY) from error
        hint = "; give the name of the module, without .py" if name.endswith(".py") else ""
        raise SettingsError(
            f"`{KEY}` names {name!r}, which is neither a module in {folder} nor an installed one{hint}", KEY
        ) from error
    except Exception as error:  # the user's code may raise anything; report it in one line like any other mistake
        raise SettingsError(
            f"`{KEY}` names {name!r}, which fails on import: {type(error).__name__}: {error}", KEY
        ) from error
