"""Time and peak memory of a step, and the machine that it was measured on."""

from __future__ import annotations

import ctypes
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import torch_geometric

MIN_REPEATS = 3


def interleaved_seconds(
    steps: Mapping[str, Callable[[], None]], repeats: int, budget: float, after_each: Callable[[], None]
) -> dict[str, list[float]]:
    """Time each step, in turns, so that a busy moment of the machine affects all of them.

    A step that has used up ``budget`` seconds is not repeated beyond ``MIN_REPEATS``.
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            taken = seconds[name]
            if len(taken) < MIN_REPEATS or sum(taken) < budget:
                start = time.perf_counter()
                step()
                taken.append(time.perf_counter() - start)
            after_each()
    return seconds


def peak_bytes(step: Callable[[], None]) -> int | None:
    """Return how much the process grows while ``step`` runs; None where the system cannot tell."""
    if platform.system() != "Linux":
        return None
    # Memory that was freed but kept by the allocator would hide what the step takes.
    ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    before = _status("VmRSS")
    step()
    return max(0, _status("VmHWM") - before)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise KeyError(field)


def machine() -> dict[str, object]:
    """Return what the numbers depend on."""
    from graphgym_lcat.kernels.dispatch import describe_backend

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "kernels": describe_backend(),
    }
