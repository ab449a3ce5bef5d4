"""Small work takes one thread, whatever torch's number of threads is.

Waking a second thread costs a few microseconds on an idle machine. On a busy one, the thread that wakes it waits, spinning, until
the operating system gives the other one a processor: milliseconds, for work that takes microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

#: Numbers that each thread of an edge kernel reads at least: about 0.3 ms.
MIN_WORK_PER_THREAD = 1 << 20
#: Multiplications that each thread of a matrix product computes at least: about 0.1 ms.
MIN_PRODUCTS_PER_THREAD = 1 << 22


def threads_for(work: int, min_work: int | None = None) -> int:
    """How many of torch's threads ``work`` takes, if each of them does at least ``min_work`` of it."""
    return max(1, min(torch.get_num_threads(), work // (min_work or MIN_WORK_PER_THREAD)))


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Lets the operators of torch use this number of threads, in the calling thread.

    Torch stores the number for the whole process: threads that have used it keep theirs, but one that starts meanwhile copies the
    lowered number, and keeps it.
    """
    before = torch.get_num_threads()
    if threads >= before:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
