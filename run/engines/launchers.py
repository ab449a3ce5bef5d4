"""Launchers of the local engine: processes that execute runs of a sweep now, each announced by a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lcat_core.files import make_folder, read_json, write_json
from lcat_core.process import Process
from lcat_run.sweep.folder import SweepFolder


@contextmanager
def announced_launcher(folder: SweepFolder) -> Iterator[None]:
    """Announce, while it lasts, that this process works on the sweep, so that ``lcat cancel`` finds it."""
    this = Process.current()
    directory = _directory(folder)
    make_folder(directory)
    for path, process in _announced(folder):
        if process is None or (process.is_here and not process.is_alive()):  # killed before it could clean up
            path.unlink(missing_ok=True)
    path = directory / f"{this.host}-{this.pid}.json"
    write_json(path, this.record())
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def live_launchers(folder: SweepFolder) -> list[Process]:
    """Return the launchers on this host that run now."""
    found = [process for _, process in _announced(folder)]
    return [process for process in found if process is not None and process.is_here and process.is_alive()]


def _announced(folder: SweepFolder) -> list[tuple[Path, Process | None]]:
    return [(path, Process.from_record(read_json(path))) for path in sorted(_directory(folder).glob("*.json"))]


def _directory(folder: SweepFolder) -> Path:
    return folder.engine_folder("launchers")
