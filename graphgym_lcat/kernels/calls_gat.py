"""The C functions of attention with the score of GAT: see :mod:`graphgym_lcat.kernels.calls`."""

from __future__ import annotations

import torch
from torch import Tensor

from graphgym_lcat.kernels.calls import Call, _call, _threads, pointer

State = tuple[Tensor, Tensor, Tensor, Tensor]


def forward(
    call: Call, query: Tensor, key: Tensor, value: Tensor, term: Tensor | None, slope: float, train: bool
) -> tuple[Tensor, State]:
    """The sums ``[num_dst, H, C]``, and the state that the backward pass needs.

    ``term`` ``[edges, H]`` is added to query and key. Without ``train``, or with a term, half of the state is empty; the backward
    pass computes it again if it needs it.
    """
    layout = call.layout
    _, heads, channels = value.shape
    train = train and term is None
    out = value.new_empty(layout.num_dst, heads, channels)
    shift = query.new_empty(layout.num_dst, heads)
    scale = torch.empty_like(shift)
    positive_out = torch.empty_like(out) if train else value.new_empty(0)
    positive_sum = torch.empty_like(shift) if train else shift.new_empty(0)
    _call(
        "gat_forward",
        value,
        *call.by_row,
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
        _threads(layout, heads * channels),
    )
    return out, (shift, scale, positive_out, positive_sum)


def backward(
    call: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    term: Tensor | None,
    slope: float,
    out: Tensor,
    state: State,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients of query, key, value and term."""
    layout = call.layout
    _, heads, channels = value.shape
    grad_query, grad_key = query.new_empty(layout.num_dst, heads), key.new_empty(layout.num_src, heads)
    grad_value = torch.empty_like(value)
    grad_term = None if term is None else call.new_edges(query, heads)
    _call(
        "gat_backward",
        value,
        *call.both,
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
        _threads(layout, heads * channels),
    )
    return grad_query, grad_key, grad_value, grad_term


def coefficients(
    call: Call, query: Tensor, key: Tensor, term: Tensor | None, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Coefficients ``[edges, H]``, and per node and head the shift and scale of the softmax."""
    layout, heads = call.layout, key.size(1)
    gamma = call.new_edges(key, heads)
    shift, scale = key.new_empty(layout.num_dst, heads), key.new_empty(layout.num_dst, heads)
    _call(
        "gat_coefficients_forward",
        key,
        *call.by_row,
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
        _threads(layout, 4 * heads),
    )
    return gamma, shift, scale


def coefficients_backward(
    call: Call,
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
    layout, heads = call.layout, key.size(1)
    grad_query, grad_key = key.new_empty(layout.num_dst, heads), key.new_empty(layout.num_src, heads)
    grad_term = call.new_edges(key, heads)
    _call(
        "gat_coefficients_backward",
        key,
        *call.both,
        heads,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        pointer(term),
        slope,
        *(t.data_ptr() for t in (gamma, shift, scale, grad, grad_query, grad_key, grad_term)),
        _threads(layout, 4 * heads),
    )
    return grad_query, grad_key, grad_term
