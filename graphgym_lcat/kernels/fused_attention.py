"""The part of the backend ``'fused'`` that computes attention, with edge features, dropout, or as coefficients.

Tensors over edges that the kernels take have one row per edge of the input, then one per added self-loop.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgym_lcat.kernels import calls, calls_gat, calls_gatv2, ops_attention, torch_path
from graphgym_lcat.kernels.backend import Coefficients, Dropout, EdgeTerm, GATScore, GATv2Score
from graphgym_lcat.kernels.calls import Call
from graphgym_lcat.kernels.calls_gatv2 import EdgeFeatures
from graphgym_lcat.kernels.derivatives import first_derivative
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.library import LANES
from graphgym_lcat.kernels.ops import handle

_NO_SEED = torch.zeros(1, dtype=torch.int64)


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
    return out[:, :heads, :channels] if more_heads or more_channels else out


def coefficients(graph: Graph, score: GATScore | GATv2Score, dropout: Dropout | None) -> Coefficients:
    """See :meth:`.Backend.coefficients`."""
    heads, count = score.key.size(1), graph.edge_index.size(1)
    gamma = _gat_gamma(graph, score, dropout) if isinstance(score, GATScore) else _gatv2_gamma(graph, score, dropout)
    if gamma.size(1) > heads:
        gamma = gamma[:, :heads]
    return Coefficients(gamma[:count], gamma[count:])


def padding(heads: int, channels: int) -> tuple[int, int]:
    """Heads and channels to add: the kernels support 1, 2, 4, 8, 16, 24, … heads, and channels in vectors of 8."""
    more_heads = 0 if heads in (1, 2, 4) else 1 if heads == 3 else -heads % LANES
    return more_heads, -channels % LANES


def rows(tensor: Tensor) -> Tensor:
    """``tensor`` with contiguous rows; there may be gaps between the rows, as in a slice of columns."""
    return tensor if tensor.stride(1) == 1 or tensor.size(1) == 1 else tensor.contiguous()


def needs_grad(*tensors: Tensor | None) -> bool:
    """Whether the call must be differentiable."""
    # In forward mode too: torch then reports that the kernels have no forward-mode derivatives.
    forward_mode = torch.autograd.forward_ad._current_level >= 0
    return forward_mode or (torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors))


def _unpack(dropout: Dropout | None) -> tuple[Tensor, float]:
    return (_NO_SEED, 0.0) if dropout is None else (dropout.seed, dropout.probability)


def sum_call(graph: Graph, dropout: Dropout | None, edge: EdgeTerm | None = None) -> Call:
    """What the kernels of weighted sums are called with."""
    if dropout is None:
        return Call(graph.compact, None if edge is None else graph.edge_numbers)
    return Call(graph.compact, graph.edge_numbers, int(dropout.seed), dropout.probability)


def _edge_call(graph: Graph, dropout: Dropout | None = None) -> Call:
    seed, probability = _unpack(dropout)
    return Call(graph.compact, graph.edge_numbers, int(seed), probability)


def _or_empty(tensor: Tensor | None, like: Tensor) -> Tensor:
    return like.new_empty(0) if tensor is None else tensor


def _attend_gat(graph: Graph, score: GATScore, value: Tensor, dropout: Dropout | None) -> Tensor:
    query, key, term = _gat_inputs(graph, score)
    slope, differentiable = score.negative_slope, needs_grad(query, key, value, term)
    if torch.compiler.is_compiling():
        seed, probability = _unpack(dropout)
        inputs = query, key, value, _or_empty(term, value), seed, probability, slope, differentiable
        return ops_attention.attend_gat(*handle(graph), *inputs)[0]
    call = sum_call(graph, dropout, score.edge)
    if differentiable:
        return _AttendGAT.apply(call, query, key, value, term, slope)
    return calls_gat.forward(call, rows(query), rows(key), value.contiguous(), term, slope, False)[0]


def _attend_gatv2(graph: Graph, score: GATv2Score, value: Tensor, dropout: Dropout | None) -> Tensor:
    query, key, att, features, loops, weight = _gatv2_inputs(graph, score)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = _unpack(dropout)
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
    query, key, term = _gat_inputs(graph, score)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = _unpack(dropout)
        inputs = query, key, _or_empty(term, key), seed, probability, slope
        return ops_attention.gat_coefficients(*handle(graph), *inputs)[0]
    return _GATCoefficients.apply(_edge_call(graph, dropout), query, key, term, slope)


def _gatv2_gamma(graph: Graph, score: GATv2Score, dropout: Dropout | None) -> Tensor:
    query, key, att, features, loops, weight = _gatv2_inputs(graph, score)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = _unpack(dropout)
        edge = (_or_empty(t, key) for t in (features, loops, weight))
        inputs = query, key, att, *edge, seed, probability, slope
        return ops_attention.gatv2_coefficients(*handle(graph), *inputs)[0]
    return _GATv2Coefficients.apply(_edge_call(graph, dropout), query, key, att, features, loops, weight, slope)


def _gat_inputs(graph: Graph, score: GATScore) -> tuple[Tensor, Tensor, Tensor | None]:
    """Query, key and the term of every edge, with heads added."""
    more_heads, _ = padding(score.key.size(1), LANES)
    query, key = score.query, score.key
    if more_heads:
        query, key = F.pad(query, (0, more_heads)), F.pad(key, (0, more_heads))
    if score.edge is None:
        return query, key, None
    weight = F.pad(score.edge.weight, (0, 0, 0, more_heads)) if more_heads else score.edge.weight
    features, loops = score.edge.features, score.edge.loop_features
    if torch.compiler.is_compiling():
        loops = torch_path.loop_features(graph, score.edge)
        return query, key, torch.cat([features, loops]) @ weight.t()
    given = loops if isinstance(loops, Tensor) else None
    return query, key, _GATTerm.apply(_edge_call(graph), features, given, weight, given is None and loops == "mean")


def _gatv2_inputs(
    graph: Graph, score: GATv2Score
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Query, key, att, and features of edges, of self-loops and their projection, with heads and depth added."""
    heads, depth = score.key.shape[1:]
    more_heads, more_depth = padding(heads, depth)
    query, key, att = score.query, score.key, score.att
    pad = (0, more_depth, 0, more_heads)
    if more_heads or more_depth:
        query = F.pad(query, pad)
        key = query if score.query is score.key else F.pad(key, pad)
        att = F.pad(att, pad)
    if score.edge is None:
        return query, key, att, None, None, None
    weight = score.edge.weight
    if more_heads or more_depth:
        weight = F.pad(weight, (0, 0, *pad))
    return query, key, att, score.edge.features, _loop_features(graph, score.edge), weight.flatten(0, 1)


def _loop_features(graph: Graph, edge: EdgeTerm) -> Tensor:
    if isinstance(edge.loop_features, Tensor) or torch.compiler.is_compiling():
        return torch_path.loop_features(graph, edge)
    return _FillLoops.apply(_edge_call(graph), edge.features, edge.loop_features == "mean")


class _FillLoops(torch.autograd.Function):
    """Mean or sum of the rows of a node's in-edges."""

    @staticmethod
    def forward(ctx, call: Call, features: Tensor, mean: bool) -> Tensor:
        ctx.call, ctx.mean, ctx.shape = call, mean, features.shape
        loops = features.new_empty(call.layout.self_loops, features.size(1))
        calls.fill_loops(call, features.contiguous(), loops, mean)
        return loops

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        grad_features = grad.new_zeros(ctx.shape)
        calls.fill_loops_backward(ctx.call, grad.contiguous(), grad_features, ctx.mean)
        return None, grad_features, None


class _GATTerm(torch.autograd.Function):
    """``features @ weightᵀ`` of edges and self-loops, ``[E + self_loops, H]``."""

    @staticmethod
    def forward(ctx, call: Call, features: Tensor, loops: Tensor | None, weight: Tensor, mean: bool) -> Tensor:
        ctx.call, ctx.mean = call, mean
        ctx.save_for_backward(features, loops, weight)
        count = features.size(0)
        term = features.new_empty(count + call.layout.self_loops, weight.size(0))
        torch.mm(features, weight.t(), out=term[:count])
        if loops is None:  # the mean of features has the mean of their products
            calls.fill_loops(call, term, term[count:], mean)
        else:
            torch.mm(loops, weight.t(), out=term[count:])
        return term

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        features, loops, weight = ctx.saved_tensors
        count = features.size(0)
        grad_features = grad_loops = None
        if loops is None:
            grad = grad.clone(memory_format=torch.contiguous_format)
            calls.fill_loops_backward(ctx.call, grad[count:], grad, ctx.mean)
        grad_weight = grad[:count].t() @ features
        if loops is not None:
            grad_weight = grad_weight + grad[count:].t() @ loops
            if ctx.needs_input_grad[2]:
                grad_loops = grad[count:] @ weight
        if ctx.needs_input_grad[1]:
            grad_features = grad[:count] @ weight
        return None, grad_features, grad_loops, grad_weight, None


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
