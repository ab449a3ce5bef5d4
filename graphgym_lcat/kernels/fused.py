"""The fused path: the functions of :mod:`graphgym_lcat.kernels.reference` by the compiled kernels, on the CPU.

No tensor grows with the number of edges: attention coefficients are computed again in the backward pass. The results do
not depend on the number of threads, which is torch's.
"""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphgym_lcat.kernels import calls, library, ops, reference
from graphgym_lcat.kernels.compact import MAX_NODES
from graphgym_lcat.kernels.graph import Graph

MAX_HEADS = 64
LANES = 8

# Why there are no compiled kernels at all, or None.
UNAVAILABLE = loaded if isinstance(loaded := library.load(), str) else None
if (_mistake := library.mistake()) is not None:
    warnings.warn(_mistake, RuntimeWarning, stacklevel=2)


def why_not(*tensors: Tensor) -> str | None:
    """Why these tensors cannot be computed with here, or None if they can."""
    if UNAVAILABLE is not None:
        return UNAVAILABLE
    for tensor in tensors:
        if tensor.device.type != "cpu":
            return f"the fused kernels compute on the CPU, the data is on {tensor.device.type!r}"
        if tensor.dtype not in library.NUMBERS or tensor.dtype != tensors[0].dtype:
            return f"the fused kernels compute with float32 or float64, the data is {tensor.dtype}"
        if tensor.size(0) > MAX_NODES:
            return f"the fused kernels count up to {MAX_NODES} nodes, the graph has {tensor.size(0)}"
    return None


def neighbor_mean(graph: Graph, value: Tensor) -> Tensor:
    """See :func:`graphgym_lcat.kernels.reference.neighbor_mean`."""
    if torch.compiler.is_compiling():
        return ops.neighbor_mean(*ops.handle(graph), value)
    if not _needs_grad(value):
        return calls.mean_forward(graph.compact, value.contiguous())
    return _NeighborMean.apply(graph, value)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
    """See :func:`graphgym_lcat.kernels.reference.convolve`."""
    if not isinstance(lambda2, Tensor):
        lambda2 = source.new_full((1,), lambda2)
    elif lambda2.dtype != source.dtype or target.dtype != source.dtype:
        return reference.convolve(graph, target, source, lambda2)
    elif lambda2.numel() not in (1, source.size(1)):
        lambda2 = lambda2.expand(source.size(1))
    if torch.compiler.is_compiling():
        return ops.convolve(*ops.handle(graph), target, source, lambda2, _needs_grad(lambda2))[0]
    if not _needs_grad(target, source, lambda2):
        return calls.convolve_forward(
            graph.compact, target.contiguous(), source.contiguous(), lambda2.contiguous(), False
        )[0]
    return _Convolve.apply(graph, target, source, lambda2)


def attend_gat(graph: Graph, query: Tensor, key: Tensor, value: Tensor, negative_slope: float) -> Tensor:
    """See :func:`graphgym_lcat.kernels.reference.attend_gat`."""
    heads, channels = value.shape[1:]
    if heads > MAX_HEADS or not query.dtype == key.dtype == value.dtype:
        return reference.attend_gat(graph, query, key, value, negative_slope)
    more_heads, more_channels = _padding(heads, channels)
    if more_heads or more_channels:
        query, key = (F.pad(t, (0, more_heads)) for t in (query, key))
        value = F.pad(value, (0, more_channels, 0, more_heads))
    if torch.compiler.is_compiling():
        train = _needs_grad(query, key, value)
        out = ops.attend_gat(*ops.handle(graph), query, key, value, negative_slope, train)[0]
    elif _needs_grad(query, key, value):
        out = _AttendGAT.apply(graph, query, key, value, negative_slope)
    else:
        out, _ = calls.gat_forward(graph.compact, _rows(query), _rows(key), value.contiguous(), negative_slope, False)
    return out[:, :heads, :channels] if more_heads or more_channels else out


def attend_gatv2(graph: Graph, query: Tensor, key: Tensor, value: Tensor, att: Tensor, negative_slope: float) -> Tensor:
    """See :func:`graphgym_lcat.kernels.reference.attend_gatv2`."""
    heads, channels = value.shape[1:]
    if heads > MAX_HEADS or not query.dtype == key.dtype == value.dtype == att.dtype:
        return reference.attend_gatv2(graph, query, key, value, att, negative_slope)
    more_heads, more_channels = _padding(heads, channels)
    more_depth = _padding(heads, key.size(2))[1]
    one = query is key
    if more_heads or more_channels or more_depth:
        query = F.pad(query, (0, more_depth, 0, more_heads))
        key = query if one else F.pad(key, (0, more_depth, 0, more_heads))
        att = F.pad(att, (0, more_depth, 0, more_heads))
        value = F.pad(value, (0, more_channels, 0, more_heads))
    if torch.compiler.is_compiling():
        out = ops.attend_gatv2(*ops.handle(graph), query, key, value, att, negative_slope)[0]
    elif not _needs_grad(query, key, value, att):
        out, _, _ = calls.gatv2_forward(
            graph.compact, *(t.contiguous() for t in (query, key, value, att)), negative_slope
        )
    elif one and graph.compact.symmetric:
        out = _AttendSymmetricGATv2.apply(graph, query, value, att, negative_slope)
    else:
        out = _AttendGATv2.apply(graph, query, key, value, att, negative_slope)
    return out[:, :heads, :channels] if more_heads or more_channels else out


def _padding(heads: int, channels: int) -> tuple[int, int]:
    """Heads and channels to add: the kernels know 1, 2, 4, 8, 16, 24, … heads, and channels in vectors of 8."""
    more_heads = 0 if heads in (1, 2, 4) else 1 if heads == 3 else -heads % LANES
    return more_heads, -channels % LANES


def _needs_grad(*tensors: Tensor) -> bool:
    # Within a level of forward-mode derivatives too, where torch then says that the kernels have none.
    forward_mode = torch.autograd.forward_ad._current_level >= 0
    return forward_mode or (torch.is_grad_enabled() and any(t.requires_grad for t in tensors))


def _rows(tensor: Tensor) -> Tensor:
    """Rows may lie apart (a slice of columns), their numbers not."""
    return tensor if tensor.stride(1) == 1 or tensor.size(1) == 1 else tensor.contiguous()


class _NeighborMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph: Graph, value: Tensor) -> Tensor:
        ctx.layout = graph.compact
        return calls.mean_forward(ctx.layout, value.contiguous())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        return None, calls.mean_backward(ctx.layout, grad.contiguous())


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor) -> Tensor:
        ctx.layout = graph.compact
        target, source, lambda2 = target.contiguous(), source.contiguous(), lambda2.contiguous()
        out, slope = calls.convolve_forward(ctx.layout, target, source, lambda2, ctx.needs_input_grad[3])
        ctx.save_for_backward(lambda2, slope)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        return None, *calls.convolve_backward(ctx.layout, *ctx.saved_tensors, grad.contiguous())


class _AttendGAT(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph: Graph, query: Tensor, key: Tensor, value: Tensor, slope: float) -> Tensor:
        ctx.layout, ctx.slope = graph.compact, slope
        query, key, value = _rows(query), _rows(key), value.contiguous()
        size = graph.num_dst * value.size(1) * value.size(2) * value.element_size()
        out, state = calls.gat_forward(ctx.layout, query, key, value, slope, size <= calls.MAX_KEPT_BYTES)
        ctx.save_for_backward(query, key, value, out, *state)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        query, key, value, out, *state = ctx.saved_tensors
        grads = calls.gat_backward(ctx.layout, query, key, value, ctx.slope, out, tuple(state), grad.contiguous())
        return None, *grads, None


class _AttendGATv2(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph: Graph, query: Tensor, key: Tensor, value: Tensor, att: Tensor, slope: float) -> Tensor:
        ctx.layout, ctx.slope = graph.compact, slope
        inputs = tuple(t.contiguous() for t in (query, key, value, att))
        out, shift, scale = calls.gatv2_forward(ctx.layout, *inputs, slope)
        ctx.save_for_backward(*inputs, out, shift, scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        *inputs, out, shift, scale = ctx.saved_tensors
        grads = calls.gatv2_backward(ctx.layout, *inputs, ctx.slope, out, shift, scale, grad.contiguous())
        return None, *grads, None


class _AttendSymmetricGATv2(torch.autograd.Function):
    """Query and key are one tensor and every edge goes both ways: ``i → j`` and ``j → i`` have one score, computed once."""

    @staticmethod
    def forward(ctx, graph: Graph, features: Tensor, value: Tensor, att: Tensor, slope: float) -> Tensor:
        ctx.layout, ctx.slope = graph.compact, slope
        features, value, att = features.contiguous(), value.contiguous(), att.contiguous()
        out, shift, scale = calls.gatv2_forward(ctx.layout, features, features, value, att, slope)
        ctx.save_for_backward(features, value, att, out, shift, scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        features, value, att, *state = ctx.saved_tensors
        grads = calls.gatv2_backward_symmetric(ctx.layout, features, value, att, ctx.slope, *state, grad.contiguous())
        return None, *grads, None
