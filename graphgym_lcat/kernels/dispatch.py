"""Chooses between the torch path and the fused kernels."""

from __future__ import annotations

import os
from types import ModuleType

import torch
from torch import Tensor

from graphgym_lcat.kernels import fused, library, reference

BACKENDS = ("auto", "torch", "fused")
ENVIRONMENT_VARIABLE = "LCAT_BACKEND"


def kernels_for(backend: str, *tensors: Tensor) -> ModuleType:
    """The module whose ``neighbor_mean``, ``convolve``, ``attend_gat`` and ``attend_gatv2`` shall compute.

    The fused kernels where they can (see :func:`graphgym_lcat.kernels.fused.why_not`), else the torch path; asked for by
    name, the fused kernels refuse what they cannot.
    """
    if backend == "auto":
        backend = os.environ.get(ENVIRONMENT_VARIABLE, "auto")
        if backend not in BACKENDS:
            raise ValueError(f"{ENVIRONMENT_VARIABLE} must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if backend == "torch":
        return reference
    reason = fused.why_not(*tensors)
    if reason is None:
        return fused
    if backend == "fused":
        raise RuntimeError(f"backend='fused' was asked for, but {reason}")
    return reference


def describe_backend() -> str:
    """What ``auto`` uses for float32 on the CPU, and why."""
    chosen = os.environ.get(ENVIRONMENT_VARIABLE, "auto")
    if chosen not in BACKENDS:
        return f"none ({ENVIRONMENT_VARIABLE} must be one of {', '.join(BACKENDS)}, got {chosen!r})"
    if chosen == "torch":
        return f"torch path ({ENVIRONMENT_VARIABLE}=torch)"
    if fused.UNAVAILABLE is not None:
        return f"torch path ({fused.UNAVAILABLE})"
    kernels = library.load()
    threads = f"{torch.get_num_threads()} threads" if kernels.has_openmp else "one thread, built without OpenMP"
    return f"fused kernels ({kernels.instruction_set}, {threads})"
