"""The C functions of attention with the score of GATv2: see :mod:`graphgym_lcat.kernels.calls`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from graphgym_lcat.kernels.calls import Call, _call, _threads, pointer


class EdgeFeatures(NamedTuple):
    """Features of edges ``[E, edge_dim]`` and of self-loops ``[self_loops, edge_dim]``; their projection ``[H * D, edge_dim]``."""

    features: Tensor
    loop_features: Tensor
    weight: Tensor

    @property
    def arguments(self) -> tuple[int, int, int, int]:
        # Without any edge the first address would be 0, which stands for no features.
        loops = self.loop_features.data_ptr()
        return self.features.data_ptr() or loops, loops, self.features.size(1), self.weight.data_ptr()


_NO_FEATURES = (0, 0, 0, 0)


def forward(
    call: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    att: Tensor,
    edge: EdgeFeatures | None,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The sums ``[num_dst, H, C]``, and per node and head the shift and scale of the softmax."""
    layout = call.layout
    _, heads, channels = value.shape
    out = value.new_empty(layout.num_dst, heads, channels)
    shift = att.new_empty(layout.num_dst, heads)
    scale = torch.empty_like(shift)
    _call(
        "gatv2_forward",
        value,
        *call.by_row,
        heads,
        key.size(2),
        channels,
        *(t.data_ptr() for t in (query, key, value, att)),
        *(_NO_FEATURES if edge is None else edge.arguments),
        slope,
        out.data_ptr(),
        shift.data_ptr(),
        scale.data_ptr(),
        _threads(layout, heads * channels),
    )
    return out, shift, scale


def backward(
    call: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    att: Tensor,
    edge: EdgeFeatures | None,
    slope: float,
    out: Tensor,
    shift: Tensor,
    scale: Tensor,
    grad: Tensor,
    features_need_grad: bool = True,
) -> tuple[Tensor | None, ...]:
    """Gradients of query, key, value, att; and of the features of edges and self-loops (if needed) and their projection."""
    layout = call.layout
    _, heads, channels = value.shape
    grads = tuple(torch.empty_like(t) for t in (query, key, value, att))
    edge_grads = _new_edge_gradients(call, edge, features_need_grad)
    _call(
        "gatv2_backward",
        value,
        *call.both,
        heads,
        key.size(2),
        channels,
        *(t.data_ptr() for t in (query, key, value, att)),
        *(_NO_FEATURES if edge is None else edge.arguments),
        slope,
        *(t.data_ptr() for t in (out, shift, scale, grad)),
        *(g.data_ptr() for g in grads),
        *_edge_gradient_pointers(edge_grads),
        _threads(layout, heads * channels),
    )
    return *grads, *edge_grads


def backward_symmetric(
    call: Call,
    features: Tensor,
    value: Tensor,
    att: Tensor,
    slope: float,
    out: Tensor,
    shift: Tensor,
    scale: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of features (query and key in one), value and att, for a symmetric layout."""
    layout = call.layout
    _, heads, channels = value.shape
    grads = torch.empty_like(features), torch.empty_like(value), torch.empty_like(att)
    _call(
        "gatv2_backward_symmetric",
        value,
        *call.by_row,
        heads,
        features.size(2),
        channels,
        *(t.data_ptr() for t in (features, value, att)),
        slope,
        *(t.data_ptr() for t in (out, shift, scale, grad)),
        *(g.data_ptr() for g in grads),
        _threads(layout, heads * channels),
    )
    return grads


def coefficients(
    call: Call, query: Tensor, key: Tensor, att: Tensor, edge: EdgeFeatures | None, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Coefficients ``[edges, H]``, and per node and head the shift and scale of the softmax."""
    layout = call.layout
    _, heads, depth = key.shape
    gamma = call.new_edges(att, heads)
    shift, scale = att.new_empty(layout.num_dst, heads), att.new_empty(layout.num_dst, heads)
    _call(
        "gatv2_coefficients_forward",
        key,
        *call.by_row,
        heads,
        depth,
        *(t.data_ptr() for t in (query, key, att)),
        *(_NO_FEATURES if edge is None else edge.arguments),
        slope,
        *(t.data_ptr() for t in (gamma, shift, scale)),
        _threads(layout, heads * depth),
    )
    return gamma, shift, scale


def coefficients_backward(
    call: Call,
    query: Tensor,
    key: Tensor,
    att: Tensor,
    edge: EdgeFeatures | None,
    slope: float,
    gamma: Tensor,
    shift: Tensor,
    scale: Tensor,
    grad: Tensor,
    features_need_grad: bool = True,
) -> tuple[Tensor | None, ...]:
    """Gradients of query, key, att; and of the features of edges and self-loops (if needed) and their projection."""
    layout = call.layout
    _, heads, depth = key.shape
    grads = tuple(torch.empty_like(t) for t in (query, key, att))
    edge_grads = _new_edge_gradients(call, edge, features_need_grad)
    _call(
        "gatv2_coefficients_backward",
        key,
        *call.both,
        heads,
        depth,
        *(t.data_ptr() for t in (query, key, att)),
        *(_NO_FEATURES if edge is None else edge.arguments),
        slope,
        *(t.data_ptr() for t in (gamma, shift, scale, grad)),
        *(g.data_ptr() for g in grads),
        *_edge_gradient_pointers(edge_grads),
        _threads(layout, heads * depth),
    )
    return *grads, *edge_grads


EdgeGradients = tuple[Tensor | None, Tensor | None, Tensor | None]


def _new_edge_gradients(call: Call, edge: EdgeFeatures | None, features_need_grad: bool) -> EdgeGradients:
    if edge is None:
        return None, None, None
    grad_features = grad_loops = None
    if features_need_grad:
        create = torch.empty_like if call.edge_numbers.complete else torch.zeros_like
        grad_features, grad_loops = create(edge.features), torch.empty_like(edge.loop_features)
    return grad_features, grad_loops, torch.zeros_like(edge.weight)  # not written if there are no edges at all


def _edge_gradient_pointers(grads: EdgeGradients) -> tuple[int, int, int]:
    edges, loops, weight = (pointer(grad) for grad in grads)
    return edges or loops, loops, weight
