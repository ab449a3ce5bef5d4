"""Start a command that dies with its parent: ``python -m lcat_run.sweep.tied_process PARENT COMMAND …``."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when the thread that started it ends, where the kernel can."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the launcher has ended")


def be_first_out_of_memory() -> None:
    """When memory runs out, let the kernel end a worker, whose run is retried, rather than its launcher."""
    try:
        Path("/proc/self/oom_score_adj").write_text("500")
    except OSError:  # not Linux, or not permitted; the sweep works without it
        return


def main(arguments: list[str]) -> None:
    die_with_parent(int(arguments[0]))
    be_first_out_of_memory()
    os.execvp(arguments[1], arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
