"""The part of the backend ``'fused'`` that computes attention, with edge features, dropout, or as coefficients.

Tensors over edges that the kernels take have one row per edge of the input, then one per added self-loop.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgym_lcat.kernels import calls, calls_gat, calls_gatv2, ops_attention
from graphgym_lcat.kernels.backend import Coefficients, Dropout, EdgeTerm, GATScore, GATv2Score
from graphgym_lcat.kernels.calls import Call
from graphgym_lcat.kernels.calls_gatv2 import EdgeFeatures
from graphgym_lcat.kernels.derivatives import first_derivative
from graphgym_lcat.kernels.fused_inputs import edge_call, gat_inputs, gatv2_inputs, padding, rows, unpack
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.ops import handle


def attend(graph: Graph, score: GATScore | GATv2Score, value: Tensor, dropout: Dropout | None) -> Tensor:
    """See :meth:`.Backend.attend`."""
    heads, channels = value.shape[1:]
    more_heads, more_channels = padding(heads, channels)
    if more_heads or more_channels:
        value = F.pad(value, (0, more_channels, 0, more_heads))
    out = (
        _attend_gat(graph, score, value, dropout)
        if isinstance(score, GATScore)
        else _attend_gatv2(graph, score, value, dropout)
    )
    out = out.to(value.dtype)
    return out[:, :heads, :channels] if more_heads or more_channels else out


def coefficients(graph: Graph, score: GATScore | GATv2Score, dropout: Dropout | None) -> Coefficients:
    """See :meth:`.Backend.coefficients`."""
    heads, count = score.key.size(1), graph.edge_index.size(1)
    gamma = _gat_gamma(graph, score, dropout) if isinstance(score, GATScore) else _gatv2_gamma(graph, score, dropout)
    gamma = gamma.to(score.key.dtype)
    if gamma.size(1) > heads:
        gamma = gamma[:, :heads]
    return Coefficients(gamma[:count], gamma[count:])


def needs_grad(*tensors: Tensor | None) -> bool:
    """Whether the call must be differentiable."""
    # In forward mode too: torch then reports that the kernels have no forward-mode derivatives.
    forward_mode = torch.autograd.forward_ad._current_level >= 0
    return forward_mode or (torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors))


def sum_call(graph: Graph, dropout: Dropout | None, edge: EdgeTerm | None = None) -> Call:
    """What the kernels of weighted sums are called with."""
    if dropout is None:
        return Call(graph.compact, None if edge is None else graph.edge_numbers)
    return Call(graph.compact, graph.edge_numbers, int(dropout.seed), dropout.probability)


def _or_empty(tensor: Tensor | None, like: Tensor) -> Tensor:
    return like.new_empty(0) if tensor is None else tensor


def _attend_gat(graph: Graph, score: GATScore, value: Tensor, dropout: Dropout | None) -> Tensor:
    query, key, term = gat_inputs(graph, score)
    slope, differentiable = score.negative_slope, needs_grad(query, key, value, term)
    if torch.compiler.is_compiling():
        seed, probability = unpack(dropout)
        inputs = query, key, value, _or_empty(term, value), seed, probability, slope, differentiable
        return ops_attention.attend_gat(*handle(graph), *inputs)[0]
    call = sum_call(graph, dropout, score.edge)
    if differentiable:
        return _AttendGAT.apply(call, query, key, value, term, slope)
    return calls_gat.forward(call, rows(query), rows(key), value.contiguous(), term, slope, False)[0]


def _attend_gatv2(graph: Graph, score: GATv2Score, value: Tensor, dropout: Dropout | None) -> Tensor:
    query, key, att, features, loops, weight = gatv2_inputs(graph, score, value.dtype)
    value = value.to(query.dtype)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = unpack(dropout)
        edge = (_or_empty(t, value) for t in (features, loops, weight))
        inputs = query, key, value, att, *edge, seed, probability, slope
        return ops_attention.attend_gatv2(*handle(graph), *inputs)[0]
    call = sum_call(graph, dropout, score.edge)
    if not needs_grad(query, key, value, att, features, loops, weight):
        nodes = query.contiguous(), key.contiguous(), value.contiguous(), att.contiguous()
        return calls_gatv2.forward(call, *nodes, _edge(features, loops, weight), slope)[0]
    if features is None and query is key and call.layout.symmetric:
        return _AttendSymmetricGATv2.apply(call, query, value, att, slope)
    return _AttendGATv2.apply(call, query, key, value, att, features, loops, weight, slope)


def _gat_gamma(graph: Graph, score: GATScore, dropout: Dropout | None) -> Tensor:
    query, key, term = gat_inputs(graph, score)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = unpack(dropout)
        inputs = query, key, _or_empty(term, key), seed, probability, slope
        return ops_attention.gat_coefficients(*handle(graph), *inputs)[0]
    return _GATCoefficients.apply(edge_call(graph, dropout), query, key, term, slope)


def _gatv2_gamma(graph: Graph, score: GATv2Score, dropout: Dropout | None) -> Tensor:
    query, key, att, features, loops, weight = gatv2_inputs(graph, score, score.key.dtype)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = unpack(dropout)
        edge = (_or_empty(t, key) for t in (features, loops, weight))
        inputs = query, key, att, *edge, seed, probability, slope
        return ops_attention.gatv2_coefficients(*handle(graph), *inputs)[0]
    return _GATv2Coefficients.apply(edge_call(graph, dropout), query, key, att, features, loops, weight, slope)


class _AttendGAT(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call: Call, query: Tensor, key: Tensor, value: Tensor, term: Tensor | None, slope: float):
        ctx.call, ctx.slope = call, slope
        query, key, value = rows(query), rows(key), value.contiguous()
        size = call.layout.num_dst * value.size(1) * value.size(2) * value.element_size()
        out, state = calls_gat.forward(call, query, key, value, term, slope, size <= calls.MAX_KEPT_BYTES)
        ctx.save_for_backward(query, key, value, term, out, *state)
        return out

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        query, key, value, term, out, *state = ctx.saved_tensors
        inputs = query, key, value, term, ctx.slope
        return None, *calls_gat.backward(ctx.call, *inputs, out, tuple(state), grad.contiguous()), None


class _GATCoefficients(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call: Call, query: Tensor, key: Tensor, term: Tensor | None, slope: float) -> Tensor:
        ctx.call, ctx.slope = call, slope
        query, key = rows(query), rows(key)
        gamma, shift, scale = calls_gat.coefficients(call, query, key, term, slope)
        ctx.save_for_backward(query, key, term, gamma, shift, scale)
        return gamma

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        query, key, term, gamma, shift, scale = ctx.saved_tensors
        inputs = query, key, term, ctx.slope
        grads = calls_gat.coefficients_backward(ctx.call, *inputs, gamma, shift, scale, grad.contiguous())
        return None, *grads[:2], None if term is None else grads[2], None


def _edge(features: Tensor | None, loops: Tensor | None, weight: Tensor | None) -> EdgeFeatures | None:
    if features is None or loops is None or weight is None:
        return None
    return EdgeFeatures(features.contiguous(), loops.contiguous(), weight.contiguous())


class _AttendGATv2(torch.autograd.Function):
    """Of call, query, key, value, att, the features of edges and self-loops, their projection, and the slope."""

    @staticmethod
    def forward(ctx, call: Call, *inputs) -> Tensor:
        *nodes, features, loops, weight, slope = inputs
        ctx.call, ctx.slope = call, slope
        nodes = [node.contiguous() for node in nodes]
        edge = _edge(features, loops, weight)
        arguments: tuple[Any, ...] = (*nodes, edge, slope)
        state = calls_gatv2.forward(call, *arguments)
        ctx.save_for_backward(*nodes, *(edge or (None, None, None)), *state)
        return state[0]

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        query, key, value, att, features, loops, weight, out, shift, scale = ctx.saved_tensors
        inputs = query, key, value, att, _edge(features, loops, weight), ctx.slope
        need = ctx.needs_input_grad[5] or ctx.needs_input_grad[6]
        grads = calls_gatv2.backward(ctx.call, *inputs, out, shift, scale, grad.contiguous(), need)
        return None, *grads, None


class _AttendSymmetricGATv2(torch.autograd.Function):
    """Query and key are the same tensor and every edge goes both ways: ``i → j`` and ``j → i`` share one score, computed once."""

    @staticmethod
    def forward(ctx, call: Call, features: Tensor, value: Tensor, att: Tensor, slope: float) -> Tensor:
        ctx.call, ctx.slope = call, slope
        features, value, att = features.contiguous(), value.contiguous(), att.contiguous()
        state = calls_gatv2.forward(call, features, features, value, att, None, slope)
        ctx.save_for_backward(features, value, att, *state)
        return state[0]

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        features, value, att, *state = ctx.saved_tensors
        inputs = features, value, att, ctx.slope, *state, grad.contiguous()
        return None, *calls_gatv2.backward_symmetric(ctx.call, *inputs), None


class _GATv2Coefficients(torch.autograd.Function):
    """Of call, query, key, att, the features of edges and self-loops, their projection, and the slope."""

    @staticmethod
    def forward(ctx, call: Call, *inputs) -> Tensor:
        *nodes, features, loops, weight, slope = inputs
        ctx.call, ctx.slope = call, slope
        nodes = [node.contiguous() for node in nodes]
        edge = _edge(features, loops, weight)
        arguments: tuple[Any, ...] = (*nodes, edge, slope)
        state = calls_gatv2.coefficients(call, *arguments)
        ctx.save_for_backward(*nodes, *(edge or (None, None, None)), *state)
        return state[0]

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        query, key, att, features, loops, weight, *state = ctx.saved_tensors
        inputs = query, key, att, _edge(features, loops, weight), ctx.slope
        need = ctx.needs_input_grad[4] or ctx.needs_input_grad[5]
        arguments: tuple[Any, ...] = (*inputs, *state, grad.contiguous(), need)
        return None, *calls_gatv2.coefficients_backward(ctx.call, *arguments), None
