"""Chooses between the torch path and the fused kernels."""

from __future__ import annotations

import os
from types import ModuleType

from torch import Tensor

from graphgym_lcat.kernels import reference

BACKENDS = ("auto", "torch", "fused")
ENVIRONMENT_VARIABLE = "LCAT_BACKEND"


def kernels_for(backend: str, tensor: Tensor) -> ModuleType:
    """The module whose ``neighbor_mean``, ``convolve``, ``attend_gat`` and ``attend_gatv2`` shall compute with ``tensor``."""
    if backend == "auto":
        backend = os.environ.get(ENVIRONMENT_VARIABLE, "auto")
    return reference


def describe_backend() -> str:
    """What ``auto`` uses for float32 on the CPU, and why."""
    return "torch path"
