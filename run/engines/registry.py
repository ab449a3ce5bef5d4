"""Find engines: entry points of the group ``lcat.engines``."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from lcat_core.errors import UserError, unknown_name
from lcat_run.engines.engine import Engine

GROUP = "lcat.engines"


def installed_engines() -> dict[str, EntryPoint]:
    """Return the entry points of all installed engines by name, without importing them."""
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def load_engine(name: str) -> Engine:
    """Return a new engine.

    Raises:
        UserError: No engine of that name is installed, or it cannot be imported.
    """
    entries = installed_engines()
    if name not in entries:
        raise UserError(unknown_name("engine", name, entries))
    try:
        engine = entries[name].load()()
    except Exception as error:  # somebody else's package may fail in any way
        raise UserError(f"the engine {name!r} ({entries[name].value}) cannot be loaded: {error}") from error
    if not isinstance(engine, Engine):
        raise UserError(f"the engine {name!r} ({entries[name].value}) is not a subclass of {Engine.__name__}")
    return engine


def load_engines() -> tuple[list[Engine], list[str]]:
    """Return all installed engines, and one note for each that cannot be loaded."""
    engines, notes = [], []
    for name in installed_engines():
        try:
            engines.append(load_engine(name))
        except UserError as error:
            notes.append(str(error))
    return engines, notes
