"""Find engines, which are entry points of the group ``lcat.engines``, and ask all of them at once."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from lcat_core.errors import LcatError, UserError, unknown_name
from lcat_run.engines.engine import Engine, QueueLook
from lcat_run.sweep.folder import SweepFolder

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


def look_at_all_queues(folder: SweepFolder) -> QueueLook:
    """Combine what all installed engines know; an engine that cannot answer adds a note."""
    engines, notes = load_engines()
    combined = QueueLook(notes=notes)
    for engine in engines:
        try:
            found = engine.look(folder)
        except LcatError as error:  # the other engines must still be asked
            combined.notes.append(f"the engine {engine.name!r} cannot say what it started: {error}")
        else:
            combined.states.update(found.states)
            combined.notes += found.notes
    return combined


def cancel_everything(folder: SweepFolder) -> tuple[list[str], list[str]]:
    """Stop what all installed engines started; return one line per thing, and one line per problem."""
    engines, problems = load_engines()
    cancelled = []
    for engine in engines:
        try:
            cancelled += engine.cancel(folder)
        except LcatError as error:  # the other engines must still be asked
            problems.append(f"jobs of {folder.path} may still wait or run: {error}")
    return cancelled, problems
