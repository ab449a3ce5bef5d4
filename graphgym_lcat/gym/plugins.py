"""Modules of the user that register datasets, layers, metrics or configuration keys, named by ``lcat.plugins``.

GraphGym finds nothing automatically: somebody must import the modules that register. A user's own ``main.py`` imports them; ``lcat
run`` and the workers of a sweep import them here, before they look up the names in a configuration.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphgym_lcat.nn.scores import SCORES, register_score
from lcat_core.errors import SettingsError, did_you_mean

KEY = "lcat.plugins"
SCORE_KEY = "lcat.score"


def import_plugins(names: Iterable[str], key: str = KEY) -> None:
    """Import these modules; modules in the working directory are found too.

    Args:
        key: The key of the configuration that names them, for messages.

    Raises:
        SettingsError: A module does not exist, or its import fails.
    """
    new = [name for name in names if name not in sys.modules]
    folder = str(Path.cwd())
    if new and folder not in sys.path:
        sys.path.insert(0, folder)
    for name in new:
        _import(name, folder, key)


def import_score(name: Any) -> None:
    """Register the score that ``my_module.my_function`` names, by that name; names that are registered already stay as they are.

    Raises:
        SettingsError: There is no such module, or nothing of that name in it.
    """
    if not isinstance(name, str) or "." not in name or name in SCORES:
        return
    module_name, _, attribute = name.rpartition(".")
    import_plugins([module_name], SCORE_KEY)
    module = sys.modules[module_name]
    if not hasattr(module, attribute):
        known = [other for other, value in vars(module).items() if callable(value)]
        raise SettingsError(
            f"`{SCORE_KEY}` names {name!r}, but {module_name} has no {attribute!r}{did_you_mean(attribute, known)}",
            SCORE_KEY,
        )
    try:
        register_score(name, getattr(module, attribute))
    except TypeError as error:
        raise SettingsError(f"`{SCORE_KEY}` names {name!r}: {error}", SCORE_KEY) from error


def _import(name: str, folder: str, key: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):  # a package that the module itself needs
            raise SettingsError(f"`{key}` names {name!r}, which needs {error.name!r}: {error}", key) from error
        hint = "; give the name of the module, without .py" if name.endswith(".py") else ""
        raise SettingsError(
            f"`{key}` names {name!r}, which is neither a module in {folder} nor an installed one{hint}", key
        ) from error
    except Exception as error:  # the user's code may raise anything; report it in one line like any other mistake
        raise SettingsError(
            f"`{key}` names {name!r}, which fails on import: {type(error).__name__}: {error}", key
        ) from error
