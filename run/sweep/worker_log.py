"""What a worker prints: collected through a pipe, since it may start before the folder for its log is known."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from lcat_core.files import make_folder, open_to_append

_LAST_BYTES = 4096


class WorkerLog:
    """Copies a worker's standard error to a file; until :meth:`write_to` names one, keeps it in memory.

    A thread reads the pipe until the worker, and every process that inherited the pipe from it, has ended.
    """

    def __init__(self, path: Path | None = None):
        self._read_end, self.write_end = os.pipe()
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._pending = b""
        self._last = b""
        self._thread = threading.Thread(target=self._copy, name="worker-log", daemon=True)
        if path is not None:
            self.write_to(path)

    def start(self) -> None:
        """Start copying; call it once the worker has its own copy of ``write_end``, which is closed here."""
        os.close(self.write_end)
        self._thread.start()

    def write_to(self, path: Path) -> None:
        """Write to this file from now on, beginning with what was kept in memory."""
        with self._lock:
            self._path = path
            self._write(self._pending)
            self._pending = b""

    def last_line(self) -> str:
        """Return the last line that the worker printed; wait briefly for what is still in the pipe."""
        self._thread.join(timeout=1.0)
        lines = self._last.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def _copy(self) -> None:
        with open(self._read_end, "rb", buffering=0) as pipe:
            while data := pipe.read(65536):
                with self._lock:
                    self._last = (self._last + data)[-_LAST_BYTES:]
                    if self._path is None:
                        self._pending += data
                    else:
                        self._write(data)

    def _write(self, data: bytes) -> None:
        if self._path is None or not data:
            return
        try:
            make_folder(self._path.parent)
            with open_to_append(self._path) as file:
                file.write(data)
        except (
            OSError
        ):  # a full disk, which the runs report, or a link in its place: a worker must not wait for its log
            return
