"""The attention adjacency as weights of edges: the C functions, their derivatives and operators.

The weights ``[E, H]`` are ``n_i γ_ij``, in the order of the fused layout: by destination, then by source
(:attr:`.CompactLayout.col`). :mod:`graphgym_lcat.kernels.fused` calls this with tensors that the kernels support: 1, 2, 4 or a
multiple of 8 heads, and for GATv2 a multiple of 8 columns per head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphgym_lcat.kernels import ops
from graphgym_lcat.kernels.calls import _call, _threads
from graphgym_lcat.kernels.compact import CompactLayout
from graphgym_lcat.kernels.derivatives import first_derivative


def gat_forward(layout: CompactLayout, query: Tensor, key: Tensor, slope: float) -> Tensor:
    """With the score of GAT; query and key are ``[nodes, H]``, and their rows may lie apart."""
    heads = key.size(1)
    weight = key.new_empty(layout.col.numel(), heads)
    _call(
        "adjacency_forward",
        key,
        *layout.by_row,
        heads,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        slope,
        weight.data_ptr(),
        _threads(layout, heads),
    )
    return weight


def gat_backward(
    layout: CompactLayout, query: Tensor, key: Tensor, slope: float, weight: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of query and key."""
    heads = key.size(1)
    of_pair = torch.empty_like(weight)
    grads = key.new_empty(layout.num_dst, heads), key.new_empty(layout.num_src, heads)
    _call(
        "adjacency_backward",
        key,
        *layout.by_row,
        *layout.by_col[:2],
        layout.slots.data_ptr(),
        heads,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        slope,
        weight.data_ptr(),
        grad.data_ptr(),
        of_pair.data_ptr(),
        *(part.data_ptr() for part in grads),
        _threads(layout, heads),
    )
    return grads


def gatv2_forward(layout: CompactLayout, query: Tensor, key: Tensor, att: Tensor, slope: float) -> Tensor:
    """With the score of GATv2; query and key are ``[nodes, H, D]``."""
    _, heads, depth = key.shape
    weight = key.new_empty(layout.col.numel(), heads)
    _call(
        "adjacency_gatv2_forward",
        key,
        *layout.by_row,
        heads,
        depth,
        query.data_ptr(),
        key.data_ptr(),
        att.data_ptr(),
        slope,
        weight.data_ptr(),
        _threads(layout, heads * depth),
    )
    return weight


def gatv2_backward(
    layout: CompactLayout, query: Tensor, key: Tensor, att: Tensor, slope: float, weight: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and att."""
    _, heads, depth = key.shape
    of_score = torch.empty_like(weight)
    grads = torch.empty_like(query), torch.empty_like(key), torch.empty_like(att)
    _call(
        "adjacency_gatv2_backward",
        key,
        *layout.by_row,
        *layout.by_col,
        layout.slots.data_ptr(),
        heads,
        depth,
        query.data_ptr(),
        key.data_ptr(),
        att.data_ptr(),
        slope,
        weight.data_ptr(),
        grad.data_ptr(),
        of_score.data_ptr(),
        *(part.data_ptr() for part in grads),
        _threads(layout, heads * depth),
    )
    return grads


class GATWeights(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layout: CompactLayout, query: Tensor, key: Tensor, slope: float) -> Tensor:
        ctx.layout, ctx.slope = layout, slope
        weight = gat_forward(layout, query, key, slope)
        ctx.save_for_backward(query, key, weight)
        return weight

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        query, key, weight = ctx.saved_tensors
        return None, *gat_backward(ctx.layout, query, key, ctx.slope, weight, grad.contiguous()), None


class GATv2Weights(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layout: CompactLayout, query: Tensor, key: Tensor, att: Tensor, slope: float) -> Tensor:
        ctx.layout, ctx.slope = layout, slope
        query, key, att = query.contiguous(), key.contiguous(), att.contiguous()
        weight = gatv2_forward(layout, query, key, att, slope)
        ctx.save_for_backward(query, key, att, weight)
        return weight

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        query, key, att, weight = ctx.saved_tensors
        return None, *gatv2_backward(ctx.layout, query, key, att, ctx.slope, weight, grad.contiguous()), None


gat_operator = ops._operator(
    "gat_weights",
    "Tensor query, Tensor key, float slope",
    1,
    gat_forward,
    lambda handle, query, key, slope: key.new_empty(handle[0].size(1), key.size(1)),
)
_gat_operator_backward = ops._operator(
    "gat_weights_backward",
    "Tensor query, Tensor key, float slope, Tensor weight, Tensor grad",
    2,
    gat_backward,
    lambda handle, query, key, *rest: ops.like(query, key),
)
ops.differentiate(gat_operator, _gat_operator_backward, keep=(0, 1, 2), keep_results=(0,))

gatv2_operator = ops._operator(
    "gatv2_weights",
    "Tensor query, Tensor key, Tensor att, float slope",
    1,
    gatv2_forward,
    lambda handle, query, key, att, slope: key.new_empty(handle[0].size(1), key.size(1)),
)
_gatv2_operator_backward = ops._operator(
    "gatv2_weights_backward",
    "Tensor query, Tensor key, Tensor att, float slope, Tensor weight, Tensor grad",
    3,
    gatv2_backward,
    lambda handle, query, key, att, *rest: ops.like(query, key, att),
)
ops.differentiate(gatv2_operator, _gatv2_operator_backward, keep=(0, 1, 2, 3), keep_results=(0,))
