"""Attention over all pairs of a dense graph, for the synthetic experiments: calls csrc/pairs.c."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgym_lcat.kernels import fused, library
from graphgym_lcat.kernels.backend import Request
from graphgym_lcat.kernels.dispatch import choose

MAX_VALUES = 8


def pairs_are_fused(*tensors: Tensor) -> bool:
    """Whether :func:`attend_pairs` can compute with these tensors, and ``LCAT_BACKEND`` does not forbid it."""
    nodes = tensors[0].size(0)
    request = Request("neighbor_mean", tensors[0].device.type, tuple(t.dtype for t in tensors), (nodes, nodes))
    return choose("auto", request) is fused


def attend_pairs(
    adjacency: Tensor, score_input: Tensor, bound: float, pair_scale: float, column: Tensor, values: Tensor
) -> Tensor:
    """Σ_j γ_ij values_j over the neighbours of i and i itself, for ``values`` ``[n, MAX_VALUES or fewer]``.

    The score of receiver i and sender j is ``pair_scale [clip(s_i − s_j) − clip(s_i + s_j)] + column_j``, clipped at
    ±``bound``; ``adjacency`` is a matrix of bytes, nonzero where j is a neighbour of i. There is no gradient.
    """
    n, count = values.shape
    if count > MAX_VALUES:
        raise ValueError(f"expected at most {MAX_VALUES} columns of values, got {count}")
    adjacency = adjacency.contiguous()
    score_input, column, rows = (
        F.pad(t, (0, -n % library.LANES)).contiguous() for t in (score_input, column, values.t())
    )
    out = values.new_empty(n, count)
    pointers = (t.data_ptr() for t in (adjacency, score_input, column))
    library.loaded().call(
        "attend_pairs",
        values.dtype,
        n,
        *pointers,
        bound,
        pair_scale,
        count,
        rows.size(1),
        rows.data_ptr(),
        out.data_ptr(),
        torch.get_num_threads(),
    )
    return out
