"""How an attempt to execute a run ends, and how a process reports a pause."""

from __future__ import annotations

import errno
import signal
from enum import StrEnum

#: Exit status of a process that was asked to stop and can resume later (EX_TEMPFAIL).
EXIT_PAUSED = 75
#: What a cluster, or ``lcat cancel``, sends before it kills: a run writes a checkpoint and stops.
PAUSE_SIGNALS = (signal.SIGTERM, signal.SIGUSR2)


class Outcome(StrEnum):
    """How one attempt ended."""

    DONE = "done"
    FAILED = "failed"  # by its own error: an attempt with the same settings would fail again
    PAUSED = "paused"  # asked to stop; a checkpoint is written
    KILLED = "killed"  # by a signal, or because memory or disk ran out
    BUSY = "busy"  # another process is executing it


class RunPaused(Exception):
    """A signal asked the run to stop, and its checkpoint is written."""


def is_disk_full(error: BaseException) -> bool:
    """Whether an exception means that the disk, or a quota, is full, which is not the fault of the run."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
