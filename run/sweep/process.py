"""Who a process is, so that a number that was given to another process in the meantime is not mistaken for it."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Process:
    """A process of one host: its number and when it started (clock ticks since the boot; 0 where /proc is missing)."""

    host: str
    pid: int
    started: int

    @classmethod
    def current(cls) -> Process:
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(socket.gethostname(), pid, _start_time(pid) or 0)

    @classmethod
    def from_record(cls, record: Any) -> Process | None:
        try:
            return cls(str(record["host"]), int(record["pid"]), int(record["started"]))
        except (KeyError, TypeError, ValueError):
            return None

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    def is_alive(self) -> bool:
        """Whether it still runs; only to be asked on its own host."""
        started = _start_time(self.pid)
        if started is not None:
            return started == self.started
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def _start_time(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat, None for a process that is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def die_with_parent(parent: int) -> None:
    """Asks the kernel to kill this process when the thread that started it ends, where the kernel can."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the launcher is gone")


def be_first_out_of_memory() -> None:
    """When memory runs out, the kernel should end a run, which is retried, rather than what watches over it."""
    try:
        Path("/proc/self/oom_score_adj").write_text("500")
    except OSError:  # not Linux, or not allowed: an optional favour
        return


def main(arguments: list[str]) -> None:
    """``python -m lcat_run.sweep.process PARENT COMMAND …``: becomes COMMAND, tied to its parent's life."""
    die_with_parent(int(arguments[0]))
    be_first_out_of_memory()
    os.execvp(arguments[1], arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
