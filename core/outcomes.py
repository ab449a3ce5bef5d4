"""How an attempt to execute a run ends, and how a process reports a pause."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType

#: Exit status of a process that was asked to stop and can resume later (EX_TEMPFAIL).
EXIT_PAUSED = 75
#: What a cluster, ``lcat cancel`` or a closed terminal sends: a run writes a checkpoint and stops.
PAUSE_SIGNALS = (signal.SIGTERM, signal.SIGUSR2, signal.SIGHUP)


class Outcome(StrEnum):
    """How one attempt ended."""

    DONE = "done"
    FAILED = "failed"  # by its own error: an attempt with the same settings would fail again
    PAUSED = "paused"  # asked to stop; a checkpoint is written
    KILLED = "killed"  # by a signal, or because memory or disk ran out
    BUSY = "busy"  # another process is executing it


class RunPaused(Exception):
    """A signal asked the run to stop, and its checkpoint is written."""


@contextmanager
def handle_signals(
    numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Handle signals, except those that this process was started to ignore, as ``nohup`` makes it ignore SIGHUP."""
    caught = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in caught}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def is_disk_full(error: BaseException) -> bool:
    """Whether an exception means that the disk, or a quota, is full, which is not the fault of the run."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
