"""The identity of a process, so that another process that was given the same number later is not mistaken for it."""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Process:
    """A process on one host: its number and start time (clock ticks since boot; 0 where /proc is missing)."""

    host: str
    pid: int
    started: int

    @classmethod
    def current(cls) -> Process:
        return cls.with_pid(os.getpid())

    @classmethod
    def with_pid(cls, pid: int) -> Process:
        return cls(socket.gethostname(), pid, _start_time(pid) or 0)

    @classmethod
    def from_record(cls, record: Any) -> Process | None:
        """Read what :meth:`record` wrote; None if ``record`` is something else."""
        try:
            return cls(str(record["host"]), int(record["pid"]), int(record["started"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this host."""
        return self.host == socket.gethostname()

    def is_alive(self) -> bool:
        """Whether it still runs; ask only on its own host."""
        started = _start_time(self.pid)
        if started is not None:
            return started == self.started
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            return True
        return True


def _start_time(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat; None for a process that has ended or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
