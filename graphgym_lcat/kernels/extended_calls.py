"""The C functions for dropout, edge terms and attention coefficients on tensors, with the score of GAT.

As in :mod:`graphgym_lcat.kernels.calls`, all tensors are on the CPU, of one dtype (float32 or float64) and contiguous (query and
key of GAT: each row is). Tensors over edges have one row per edge of the input, then one per added self-loop. Edges that the
layout does not hold have zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from graphgym_lcat.kernels import calls
from graphgym_lcat.kernels.calls import GatState
from graphgym_lcat.kernels.compact import CompactLayout
from graphgym_lcat.kernels.edge_numbers import EdgeNumbers


class Extras(NamedTuple):
    """The layout of a call, the numbers of its edges, and seed and probability of dropout."""

    layout: CompactLayout
    numbers: EdgeNumbers
    seed: int = 0
    probability: float = 0.0

    @property
    def by_row(self) -> tuple[int | float, ...]:
        """The first arguments of kernels that walk over rows."""
        return (*self.layout.by_row, self.layout.self_loops, *self.numbers.pointers, self.seed, self.probability)

    @property
    def both(self) -> tuple[int | float, ...]:
        """Those of kernels that walk over rows and columns."""
        layout = self.layout
        sides = (*layout.by_row, *layout.by_col, layout.self_loops)
        return (*sides, *self.numbers.pointers, self.seed, self.probability)

    @property
    def num_edges(self) -> int:
        """Rows of a tensor over edges."""
        return self.numbers.edges + self.layout.self_loops

    def new_edges(self, like: Tensor, width: int) -> Tensor:
        """A tensor over edges, in which only the kernel's rows are missing."""
        create = torch.empty if self.numbers.complete else torch.zeros
        return create(self.num_edges, width, dtype=like.dtype)


def fill_loops(extras: Extras, rows: Tensor, loops: Tensor, mean: bool) -> None:
    """Writes the mean or the sum of the rows of a node's in-edges to that of its self-loop."""
    _fill_loops("fill_loops_forward", extras, rows, loops, mean)


def fill_loops_backward(extras: Extras, grad_loops: Tensor, grad_rows: Tensor, mean: bool) -> None:
    """Adds the gradients of the self-loops to those of the in-edges."""
    _fill_loops("fill_loops_backward", extras, grad_loops, grad_rows, mean)


def _fill_loops(name: str, extras: Extras, given: Tensor, changed: Tensor, mean: bool) -> None:
    layout, width = extras.layout, given.size(1)
    calls._call(
        name,
        given,
        layout.rowptr.data_ptr(),
        layout.self_loops,
        extras.numbers.by_row.data_ptr(),
        int(mean),
        width,
        given.data_ptr(),
        changed.data_ptr(),
        calls._threads(layout, width),
    )


def gat_forward(
    extras: Extras, query: Tensor, key: Tensor, value: Tensor, term: Tensor | None, slope: float, train: bool
) -> tuple[Tensor, GatState]:
    """See :func:`graphgym_lcat.kernels.calls.gat_forward`; ``term`` ``[edges, H]`` is added to query and key."""
    layout = extras.layout
    _, heads, channels = value.shape
    train = train and term is None
    out = value.new_empty(layout.num_dst, heads, channels)
    shift = query.new_empty(layout.num_dst, heads)
    scale = torch.empty_like(shift)
    positive_out = torch.empty_like(out) if train else value.new_empty(0)
    positive_sum = torch.empty_like(shift) if train else value.new_empty(0)
    calls._call(
        "gat_extended_forward",
        value,
        *extras.by_row,
        heads,
        channels,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        value.data_ptr(),
        pointer(term),
        slope,
        out.data_ptr(),
        shift.data_ptr(),
        scale.data_ptr(),
        positive_out.data_ptr() if train else 0,
        positive_sum.data_ptr() if train else 0,
        calls._threads(layout, heads * channels),
    )
    return out, (shift, scale, positive_out, positive_sum)


def gat_backward(
    extras: Extras,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    term: Tensor | None,
    slope: float,
    out: Tensor,
    state: GatState,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients of query, key, value and term."""
    layout = extras.layout
    _, heads, channels = value.shape
    grad_query, grad_key = value.new_empty(layout.num_dst, heads), value.new_empty(layout.num_src, heads)
    grad_value = torch.empty_like(value)
    grad_term = None if term is None else extras.new_edges(value, heads)
    calls._call(
        "gat_extended_backward",
        value,
        *extras.both,
        heads,
        channels,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        value.data_ptr(),
        pointer(term),
        slope,
        out.data_ptr(),
        *(t.data_ptr() if t.numel() else 0 for t in state),
        grad.data_ptr(),
        grad_query.data_ptr(),
        grad_key.data_ptr(),
        grad_value.data_ptr(),
        pointer(grad_term),
        calls._threads(layout, heads * channels),
    )
    return grad_query, grad_key, grad_value, grad_term


def gat_coefficients(
    extras: Extras, query: Tensor, key: Tensor, term: Tensor | None, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Coefficients ``[edges, H]``, and per node and head the shift and scale of the softmax."""
    layout, heads = extras.layout, key.size(1)
    gamma = extras.new_edges(key, heads)
    shift, scale = key.new_empty(layout.num_dst, heads), key.new_empty(layout.num_dst, heads)
    calls._call(
        "gat_coefficients_forward",
        key,
        *extras.by_row,
        heads,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        pointer(term),
        slope,
        gamma.data_ptr(),
        shift.data_ptr(),
        scale.data_ptr(),
        calls._threads(layout, 4 * heads),
    )
    return gamma, shift, scale


def gat_coefficients_backward(
    extras: Extras,
    query: Tensor,
    key: Tensor,
    term: Tensor | None,
    slope: float,
    gamma: Tensor,
    shift: Tensor,
    scale: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and of what is added to them, even if there is no term."""
    layout, heads = extras.layout, key.size(1)
    grad_query, grad_key = key.new_empty(layout.num_dst, heads), key.new_empty(layout.num_src, heads)
    grad_term = extras.new_edges(key, heads)
    calls._call(
        "gat_coefficients_backward",
        key,
        *extras.both,
        heads,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        pointer(term),
        slope,
        *(t.data_ptr() for t in (gamma, shift, scale, grad, grad_query, grad_key, grad_term)),
        calls._threads(layout, 4 * heads),
    )
    return grad_query, grad_key, grad_term


def pointer(tensor: Tensor | None) -> int:
    """Returns the address of a tensor; 0 stands for none."""
    return 0 if tensor is None else tensor.data_ptr()
