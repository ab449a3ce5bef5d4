"""What the C library does with memory that was freed: by default it returns large blocks to the system."""

from __future__ import annotations

import ctypes
import platform

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
_LARGEST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Let this process reuse freed memory instead of returning it to the system; return whether that is possible here.

    Every sampled batch has other sizes, so a training step would touch hundreds of megabytes of new memory again and again, and the
    system must clear each page first. Training on a graph like ogbn-products takes half the time with it. The process then keeps
    the memory that it once needed. Only for glibc, and not for memory of a GPU.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all(mallopt(*option) for option in ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, _LARGEST), (_M_ARENA_MAX, 1)))
