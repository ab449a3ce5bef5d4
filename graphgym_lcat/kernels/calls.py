"""The C functions as functions of tensors: allocates the results and passes addresses.

All tensors are on the CPU, have the same dtype (float32 or float64), and are contiguous. For query and key of GAT it is enough
that each row is.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphgym_lcat.kernels import library
from graphgym_lcat.kernels.compact import CompactLayout
from graphgym_lcat.kernels.threads import threads_for

# If its output has more bytes than this, GAT's forward pass keeps no second tensor of that size for the backward pass. Forward and
# backward pass together then take about 20 % longer with 128 columns, and 45 % longer with 32.
MAX_KEPT_BYTES = 1 << 28


def _threads(layout: CompactLayout, width: int) -> int:
    return threads_for((layout.num_edges + layout.num_dst) * width)


def _call(name: str, tensor: Tensor, *arguments: int | float) -> None:
    library.loaded().call(name, tensor.dtype, *arguments)


def mean_forward(layout: CompactLayout, value: Tensor) -> Tensor:
    width = value.size(1)
    out = value.new_empty(layout.num_dst, width)
    _call(
        "mean_forward",
        value,
        *layout.by_row,
        layout.self_loops,
        value.data_ptr(),
        width,
        out.data_ptr(),
        _threads(layout, width),
    )
    return out


def mean_backward(layout: CompactLayout, grad: Tensor) -> Tensor:
    width = grad.size(1)
    grad_value = grad.new_empty(layout.num_src, width)
    scale = grad.new_empty(layout.num_dst)
    _call(
        "mean_backward",
        grad,
        *layout.by_row[:2],
        *layout.by_col,
        layout.self_loops,
        grad.data_ptr(),
        width,
        scale.data_ptr(),
        grad_value.data_ptr(),
        _threads(layout, width),
    )
    return grad_value


def convolve_forward(
    layout: CompactLayout, target: Tensor, source: Tensor, lambda2: Tensor, train: bool
) -> tuple[Tensor, Tensor]:
    """The convolved features, and with ``train`` what the gradient of lambda2 needs (otherwise an empty tensor)."""
    width = source.size(1)
    out = torch.empty_like(target)
    slope = torch.empty_like(target) if train else target.new_empty(0)
    _call(
        "convolve_forward",
        source,
        *layout.by_row,
        layout.loops_ptr,
        target.data_ptr(),
        source.data_ptr(),
        width,
        lambda2.data_ptr(),
        lambda2.numel(),
        out.data_ptr(),
        slope.data_ptr() if train else 0,
        _threads(layout, width),
    )
    return out, slope


def convolve_backward(
    layout: CompactLayout, lambda2: Tensor, slope: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of target, source and lambda2 (0 if there is no slope)."""
    width = grad.size(1)
    grads = torch.empty_like(grad), grad.new_empty(layout.num_src, width), torch.zeros_like(lambda2)
    _call(
        "convolve_backward",
        grad,
        *layout.by_row[:2],
        *layout.by_col,
        layout.loops_ptr,
        slope.data_ptr() if slope.numel() else 0,
        grad.data_ptr(),
        width,
        lambda2.data_ptr(),
        lambda2.numel(),
        *(g.data_ptr() for g in grads),
        _threads(layout, width),
    )
    return grads


def scores_forward(features: Tensor, att_dst: Tensor, att_src: Tensor, lambda1: Tensor, threads: int) -> Tensor:
    """Products ``[nodes, 2 * H]`` of features ``[nodes, H, C]`` with attention vectors, times λ1 (``[1]`` or ``[H]``)."""
    products = features.new_empty(features.size(0), 2 * features.size(1))
    _call(
        "scores_forward",
        features,
        *features.shape,
        *(t.data_ptr() for t in (features, att_dst, att_src, lambda1)),
        lambda1.numel(),
        products.data_ptr(),
        threads,
    )
    return products


def scores_backward(
    features: Tensor,
    att_dst: Tensor,
    att_src: Tensor,
    lambda1: Tensor,
    grads: tuple[Tensor, Tensor | None],
    grad_features: Tensor,
    threads: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Adds the gradient of the features to ``grad_features``; returns those of both vectors and of lambda1.

    The gradient of the products is the sum of ``grads``.
    """
    results = torch.empty_like(att_dst), torch.empty_like(att_src), torch.empty_like(lambda1)
    _call(
        "scores_backward",
        features,
        *features.shape,
        *(t.data_ptr() for t in (features, att_dst, att_src, lambda1)),
        lambda1.numel(),
        *(0 if t is None else t.data_ptr() for t in grads),
        *(t.data_ptr() for t in (grad_features, *results)),
        threads,
    )
    return results


GatState = tuple[Tensor, Tensor, Tensor, Tensor]


def gat_forward(
    layout: CompactLayout, query: Tensor, key: Tensor, value: Tensor, slope: float, train: bool
) -> tuple[Tensor, GatState]:
    """The sums ``[num_dst, H, C]``, and the state that the backward pass needs.

    Without ``train``, half of the state is empty; the backward pass would compute it again.
    """
    _, heads, channels = value.shape
    out = value.new_empty(layout.num_dst, heads, channels)
    shift = query.new_empty(layout.num_dst, heads)
    scale = torch.empty_like(shift)
    positive_out = torch.empty_like(out) if train else value.new_empty(0)
    positive_sum = torch.empty_like(shift) if train else value.new_empty(0)
    _call(
        "gat_forward",
        value,
        *layout.by_row,
        layout.self_loops,
        heads,
        channels,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        value.data_ptr(),
        slope,
        out.data_ptr(),
        shift.data_ptr(),
        scale.data_ptr(),
        positive_out.data_ptr() if train else 0,
        positive_sum.data_ptr() if train else 0,
        _threads(layout, heads * channels),
    )
    return out, (shift, scale, positive_out, positive_sum)


def gat_backward(
    layout: CompactLayout,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    slope: float,
    out: Tensor,
    state: GatState,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value."""
    _, heads, channels = value.shape
    grads = (
        value.new_empty(layout.num_dst, heads),
        value.new_empty(layout.num_src, heads),
        torch.empty_like(value),
    )
    _call(
        "gat_backward",
        value,
        *layout.by_row,
        *layout.by_col,
        layout.self_loops,
        heads,
        channels,
        query.data_ptr(),
        query.stride(0),
        key.data_ptr(),
        key.stride(0),
        value.data_ptr(),
        slope,
        out.data_ptr(),
        *(t.data_ptr() if t.numel() else 0 for t in state),
        grad.data_ptr(),
        *(g.data_ptr() for g in grads),
        _threads(layout, heads * channels),
    )
    return grads


def gatv2_forward(
    layout: CompactLayout, query: Tensor, key: Tensor, value: Tensor, att: Tensor, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The sums ``[num_dst, H, C]``, and per node and head the shift and scale of the softmax."""
    _, heads, channels = value.shape
    out = value.new_empty(layout.num_dst, heads, channels)
    shift = value.new_empty(layout.num_dst, heads)
    scale = torch.empty_like(shift)
    _call(
        "gatv2_forward",
        value,
        *layout.by_row,
        layout.self_loops,
        heads,
        key.size(2),
        channels,
        query.data_ptr(),
        key.data_ptr(),
        value.data_ptr(),
        att.data_ptr(),
        slope,
        out.data_ptr(),
        shift.data_ptr(),
        scale.data_ptr(),
        _threads(layout, heads * channels),
    )
    return out, shift, scale


def gatv2_backward(
    layout: CompactLayout,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    att: Tensor,
    slope: float,
    out: Tensor,
    shift: Tensor,
    scale: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of query, key, value and att."""
    _, heads, channels = value.shape
    grads = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), torch.empty_like(att)
    _call(
        "gatv2_backward",
        value,
        *layout.by_row,
        *layout.by_col,
        layout.self_loops,
        heads,
        key.size(2),
        channels,
        *(t.data_ptr() for t in (query, key, value, att)),
        slope,
        *(t.data_ptr() for t in (out, shift, scale, grad)),
        *(g.data_ptr() for g in grads),
        _threads(layout, heads * channels),
    )
    return grads


def gatv2_backward_symmetric(
    layout: CompactLayout,
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
    _, heads, channels = value.shape
    grads = torch.empty_like(features), torch.empty_like(value), torch.empty_like(att)
    _call(
        "gatv2_backward_symmetric",
        value,
        *layout.by_row,
        layout.self_loops,
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
