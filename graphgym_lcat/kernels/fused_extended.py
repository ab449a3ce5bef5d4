"""The part of the backend ``'fused'`` that needs to know which edge is which: dropout, edge features, attention coefficients.

Tensors over edges that the kernels take have one row per edge of the input, then one per added self-loop.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphgym_lcat.kernels import calls, extended_calls, extended_calls_gatv2, ops_extended, torch_path
from graphgym_lcat.kernels.backend import Coefficients, Dropout, EdgeTerm, GATScore, GATv2Score
from graphgym_lcat.kernels.extended_calls import Extras
from graphgym_lcat.kernels.extended_calls_gatv2 import EdgeFeatures
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
    attend_score = _attend_gat if isinstance(score, GATScore) else _attend_gatv2
    out = attend_score(graph, score, value, dropout)  # type: ignore[arg-type]  # chosen by the type of the score
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


def _unpack(dropout: Dropout | None) -> tuple[Tensor, float]:
    return (_NO_SEED, 0.0) if dropout is None else (dropout.seed, dropout.probability)


def _extras(graph: Graph, dropout: Dropout | None) -> Extras:
    seed, probability = _unpack(dropout)
    return Extras(graph.compact, graph.edge_numbers, int(seed), probability)


def _or_empty(tensor: Tensor | None, like: Tensor) -> Tensor:
    return like.new_empty(0) if tensor is None else tensor


def _attend_gat(graph: Graph, score: GATScore, value: Tensor, dropout: Dropout | None) -> Tensor:
    query, key, term = _gat_inputs(graph, score)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = _unpack(dropout)
        inputs = query, key, value, _or_empty(term, value), seed, probability, slope
        return ops_extended.attend_gat(*handle(graph), *inputs)[0]
    return _AttendGAT.apply(_extras(graph, dropout), query, key, value, term, slope)


def _attend_gatv2(graph: Graph, score: GATv2Score, value: Tensor, dropout: Dropout | None) -> Tensor:
    query, key, att, features, loops, weight = _gatv2_inputs(graph, score)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = _unpack(dropout)
        edge = (_or_empty(t, value) for t in (features, loops, weight))
        inputs = query, key, value, att, *edge, seed, probability, slope
        return ops_extended.attend_gatv2(*handle(graph), *inputs)[0]
    extras = _extras(graph, dropout)
    if features is None and query is key and extras.layout.symmetric:
        return _AttendSymmetricGATv2.apply(extras, query, value, att, slope)
    return _AttendGATv2.apply(extras, query, key, value, att, features, loops, weight, slope)


def _gat_gamma(graph: Graph, score: GATScore, dropout: Dropout | None) -> Tensor:
    query, key, term = _gat_inputs(graph, score)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = _unpack(dropout)
        inputs = query, key, _or_empty(term, key), seed, probability, slope
        return ops_extended.gat_coefficients(*handle(graph), *inputs)[0]
    return _GATCoefficients.apply(_extras(graph, dropout), query, key, term, slope)


def _gatv2_gamma(graph: Graph, score: GATv2Score, dropout: Dropout | None) -> Tensor:
    query, key, att, features, loops, weight = _gatv2_inputs(graph, score)
    slope = score.negative_slope
    if torch.compiler.is_compiling():
        seed, probability = _unpack(dropout)
        edge = (_or_empty(t, score.key) for t in (features, loops, weight))
        inputs = query, key, att, *edge, seed, probability, slope
        return ops_extended.gatv2_coefficients(*handle(graph), *inputs)[0]
    return _GATv2Coefficients.apply(_extras(graph, dropout), query, key, att, features, loops, weight, slope)


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
    return (
        query,
        key,
        _GATTerm.apply(_extras(graph, None), features, given, weight, loops == "mean" if given is None else False),
    )


def _gatv2_inputs(graph: Graph, score: GATv2Score) -> tuple[Tensor | None, ...]:
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
    return _FillLoops.apply(_extras(graph, None), edge.features, edge.loop_features == "mean")


class _FillLoops(torch.autograd.Function):
    """Mean or sum of the rows of a node's in-edges."""

    @staticmethod
    def forward(ctx, extras: Extras, features: Tensor, mean: bool) -> Tensor:
        ctx.extras, ctx.mean, ctx.shape = extras, mean, features.shape
        loops = features.new_empty(extras.layout.self_loops, features.size(1))
        extended_calls.fill_loops(extras, features.contiguous(), loops, mean)
        return loops

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        grad_features = grad.new_zeros(ctx.shape)
        extended_calls.fill_loops_backward(ctx.extras, grad.contiguous(), grad_features, ctx.mean)
        return None, grad_features, None


class _GATTerm(torch.autograd.Function):
    """``features @ weightᵀ`` of edges and self-loops, ``[E + self_loops, H]``."""

    @staticmethod
    def forward(ctx, extras: Extras, features: Tensor, loops: Tensor | None, weight: Tensor, mean: bool) -> Tensor:
        ctx.extras, ctx.mean = extras, mean
        ctx.save_for_backward(features, loops, weight)
        count = extras.numbers.edges
        term = features.new_empty(extras.num_edges, weight.size(0))
        torch.mm(features, weight.t(), out=term[:count])
        if loops is None:  # the mean of features has the mean of their products
            extended_calls.fill_loops(extras, term, term[count:], mean)
        else:
            torch.mm(loops, weight.t(), out=term[count:])
        return term

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        features, loops, weight = ctx.saved_tensors
        count = ctx.extras.numbers.edges
        grad_features = grad_loops = None
        if loops is None:
            grad = grad.clone(memory_format=torch.contiguous_format)
            extended_calls.fill_loops_backward(ctx.extras, grad[count:], grad, ctx.mean)
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
    def forward(
        ctx, extras: Extras, query: Tensor, key: Tensor, value: Tensor, term: Tensor | None, slope: float
    ) -> Tensor:
        ctx.extras, ctx.slope = extras, slope
        query, key, value = rows(query), rows(key), value.contiguous()
        size = extras.layout.num_dst * value.size(1) * value.size(2) * value.element_size()
        train = any(ctx.needs_input_grad) and size <= calls.MAX_KEPT_BYTES
        out, state = extended_calls.gat_forward(extras, query, key, value, term, slope, train)
        ctx.save_for_backward(query, key, value, term, out, *state)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        query, key, value, term, out, *state = ctx.saved_tensors
        inputs = query, key, value, term, ctx.slope
        return None, *extended_calls.gat_backward(ctx.extras, *inputs, out, tuple(state), grad.contiguous()), None


class _GATCoefficients(torch.autograd.Function):
    @staticmethod
    def forward(ctx, extras: Extras, query: Tensor, key: Tensor, term: Tensor | None, slope: float) -> Tensor:
        ctx.extras, ctx.slope = extras, slope
        query, key = rows(query), rows(key)
        gamma, shift, scale = extended_calls.gat_coefficients(extras, query, key, term, slope)
        ctx.save_for_backward(query, key, term, gamma, shift, scale)
        return gamma

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        query, key, term, gamma, shift, scale = ctx.saved_tensors
        inputs = query, key, term, ctx.slope
        grads = extended_calls.gat_coefficients_backward(ctx.extras, *inputs, gamma, shift, scale, grad.contiguous())
        return None, *grads[:2], None if term is None else grads[2], None


def _edge(features: Tensor | None, loops: Tensor | None, weight: Tensor | None) -> EdgeFeatures | None:
    if features is None or loops is None or weight is None:
        return None
    return EdgeFeatures(features.contiguous(), loops.contiguous(), weight.contiguous())


class _AttendGATv2(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx,
        extras: Extras,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        att: Tensor,
        features: Tensor | None,
        loops: Tensor | None,
        weight: Tensor | None,
        slope: float,
    ) -> Tensor:
        ctx.extras, ctx.slope = extras, slope
        nodes = query.contiguous(), key.contiguous(), value.contiguous(), att.contiguous()
        edge = _edge(features, loops, weight)
        state = extended_calls_gatv2.gatv2_forward(extras, *nodes, edge, slope)
        ctx.save_for_backward(*nodes, *(edge or (None, None, None)), *state)
        return state[0]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        query, key, value, att, features, loops, weight, out, shift, scale = ctx.saved_tensors
        inputs = query, key, value, att, _edge(features, loops, weight), ctx.slope
        need = ctx.needs_input_grad[5] or ctx.needs_input_grad[6]
        grads = extended_calls_gatv2.gatv2_backward(ctx.extras, *inputs, out, shift, scale, grad.contiguous(), need)
        return None, *grads, None


class _AttendSymmetricGATv2(torch.autograd.Function):
    """Query and key are one tensor and every edge goes both ways: ``i → j`` and ``j → i`` have one score, computed once."""

    @staticmethod
    def forward(ctx, extras: Extras, features: Tensor, value: Tensor, att: Tensor, slope: float) -> Tensor:
        ctx.extras, ctx.slope = extras, slope
        features, value, att = features.contiguous(), value.contiguous(), att.contiguous()
        state = extended_calls_gatv2.gatv2_forward(extras, features, features, value, att, None, slope)
        ctx.save_for_backward(features, value, att, *state)
        return state[0]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        features, value, att, out, shift, scale = ctx.saved_tensors
        state = out, shift, scale, grad.contiguous()
        return (
            None,
            *extended_calls_gatv2.gatv2_backward_symmetric(ctx.extras, features, value, att, ctx.slope, *state),
            None,
        )


class _GATv2Coefficients(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx,
        extras: Extras,
        query: Tensor,
        key: Tensor,
        att: Tensor,
        features: Tensor | None,
        loops: Tensor | None,
        weight: Tensor | None,
        slope: float,
    ) -> Tensor:
        ctx.extras, ctx.slope = extras, slope
        nodes = query.contiguous(), key.contiguous(), att.contiguous()
        edge = _edge(features, loops, weight)
        state = extended_calls_gatv2.gatv2_coefficients(extras, *nodes, edge, slope)
        ctx.save_for_backward(*nodes, *(edge or (None, None, None)), *state)
        return state[0]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        query, key, att, features, loops, weight, gamma, shift, scale = ctx.saved_tensors
        inputs = query, key, att, _edge(features, loops, weight), ctx.slope
        need = ctx.needs_input_grad[4] or ctx.needs_input_grad[5]
        state = gamma, shift, scale, grad.contiguous()
        grads = extended_calls_gatv2.gatv2_coefficients_backward(ctx.extras, *inputs, *state, need)
        return None, *grads, None
