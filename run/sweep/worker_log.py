"""What a worker prints: collected through a pipe, since it may start before the folder for its log is known."""

from __future__ import annotations

import os
import threading
from pathlib import Path

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
        path.parent.mkdir(parents=True, exist_ok=True)
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
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self._path, flags, 0o666)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError:  # a full disk: the runs report it, and a worker must not wait for its log
            return
