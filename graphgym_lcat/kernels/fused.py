"""The fused kernels: the backend ``'fused'``, compiled C for the CPU.

No tensor grows with the number of edges (unless edges have features): attention coefficients are computed again in the backward
pass. The results do not depend on the number of threads, which is torch's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphgym_lcat.kernels import adjacency, calls, fused_convolved, fused_extended, library, ops, pna
from graphgym_lcat.kernels.backend import (
    STATISTICS,
    Capabilities,
    Coefficients,
    ConvolvedScore,
    Dropout,
    EqualScore,
    GATScore,
    GATv2Score,
    PairScore,
)
from graphgym_lcat.kernels.compact import MAX_NODES
from graphgym_lcat.kernels.fused_extended import padding, rows
from graphgym_lcat.kernels.graph import Graph

name = "fused"
can = Capabilities(
    operators=frozenset({"neighbor_mean", "convolve", "attend", "attend_convolved", "coefficients", "statistics"}),
    plain_operators=frozenset({"attend_convolved", "statistics"}),
    scores=frozenset({"gat", "gatv2"}),
    edge_term=True,
    dropout=True,
    devices=frozenset({"cpu"}),
    dtypes=tuple(library.NUMBERS),
    max_heads=64,
    max_nodes=MAX_NODES,
    derivatives=1,
)

# Why there are no compiled kernels at all, or None.
UNAVAILABLE = loaded if isinstance(loaded := library.load(), str) else None
if (_warning := library.why_unused()) is not None:
    warnings.warn(_warning, RuntimeWarning, stacklevel=2)


def unavailable() -> str | None:
    """Why there are no compiled kernels; None if there are."""
    return UNAVAILABLE


def describe() -> str:
    kernels = library.loaded()
    threads = f"{torch.get_num_threads()} threads" if kernels.has_openmp else "one thread, built without OpenMP"
    return f"fused kernels ({kernels.instruction_set}, {threads})"


def neighbor_mean(graph: Graph, value: Tensor) -> Tensor:
    """See :meth:`.Backend.neighbor_mean`."""
    if torch.compiler.is_compiling():
        return ops.neighbor_mean(*ops.handle(graph), value)
    if not _needs_grad(value):
        return calls.mean_forward(graph.compact, value.contiguous())
    return _NeighborMean.apply(graph, value)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
    """See :meth:`.Backend.convolve`."""
    if not isinstance(lambda2, Tensor):
        lambda2 = source.new_full((1,), lambda2)
    if torch.compiler.is_compiling():
        return ops.convolve(*ops.handle(graph), target, source, lambda2, _needs_grad(lambda2))[0]
    if not _needs_grad(target, source, lambda2):
        return calls.convolve_forward(
            graph.compact, target.contiguous(), source.contiguous(), lambda2.contiguous(), False
        )[0]
    return _Convolve.apply(graph, target, source, lambda2)


def attend(graph: Graph, score: PairScore, value: Tensor, dropout: Dropout | None = None) -> Tensor:
    """See :meth:`.Backend.attend`."""
    assert isinstance(score, (GATScore, GATv2Score))  # `can` lists no other
    if dropout is not None or score.edge is not None:
        return fused_extended.attend(graph, score, value, dropout)
    return _attend_gat(graph, score, value) if isinstance(score, GATScore) else _attend_gatv2(graph, score, value)


def attend_convolved(graph: Graph, score: ConvolvedScore, value: Tensor, bias: Tensor | None) -> Tensor:
    """See :meth:`.ConvolvingBackend.attend_convolved`."""
    parts = (score.key, value, bias, *score.vectors, score.lambda1.parameter, score.lambda2.parameter)
    train = _needs_grad(*(part for part in parts if part is not None))
    return fused_convolved.attend_convolved(graph, score, value, bias, train)


def coefficients(graph: Graph, score: PairScore, dropout: Dropout | None = None) -> Coefficients:
    """See :meth:`.Backend.coefficients`."""
    assert isinstance(score, (GATScore, GATv2Score))  # `can` lists no other
    return fused_extended.coefficients(graph, score, dropout)


def statistics(graph: Graph, score: PairScore, receiver: Tensor, sender: Tensor, names: Sequence[str]) -> Tensor:
    """See :meth:`.Backend.statistics`."""
    if isinstance(score, EqualScore):
        return message_statistics(graph, receiver, sender, names)
    return message_statistics(graph, receiver, sender, names, attention_weights(graph, score))


def message_statistics(
    graph: Graph, receiver: Tensor, sender: Tensor, names: Sequence[str], weight: Tensor | None = None
) -> Tensor:
    """Statistics of the messages ``weight_ij (receiver_i + sender_j)``, as :meth:`.Backend.statistics` has them.

    ``weight`` is ``[E, H]`` in the order of the fused layout, where H divides F; None for 1.
    """
    if graph.edge_index.size(1) > pna.MAX_EDGES:
        raise RuntimeError(f"the fused statistics count up to {pna.MAX_EDGES} edges; use backend='torch'")
    heads = 1 if weight is None else weight.size(1)
    channels = sender.size(1) // heads
    more = padding(heads, channels)[1]
    if more:
        receiver, sender = (F.pad(t.unflatten(1, (heads, channels)), (0, more)).flatten(1) for t in (receiver, sender))
    kinds = tuple(STATISTICS.index(name) for name in names)
    inputs = (receiver, sender) if weight is None else (receiver, sender, weight)
    if torch.compiler.is_compiling():
        operator = pna.plain_operator if weight is None else pna.weighted_operator
        out = operator(*ops.handle(graph), *inputs, list(kinds))[0]
    elif _needs_grad(*inputs):
        out = pna.Statistics.apply(graph.compact, kinds, *inputs)
    else:
        out, _ = pna.forward(graph.compact, kinds, False, *(t.contiguous() for t in inputs))
    return out.unflatten(1, (len(kinds), heads, channels + more))[..., :channels].flatten(1) if more else out


def attention_weights(graph: Graph, score: PairScore) -> Tensor:
    r"""The attention adjacency :math:`n_i \gamma_{ij}`, ``[E, H]`` in the order of the fused layout, as ``layout.col``."""
    heads = score.key.size(1)
    if isinstance(score, GATScore):
        weight = _gat_weights(graph, score)
    else:
        assert isinstance(score, GATv2Score)  # `can` lists no other
        weight = _gatv2_weights(graph, score)
    return weight if weight.size(1) == heads else weight[:, :heads]


def _gat_weights(graph: Graph, score: GATScore) -> Tensor:
    query, key, slope = score.query, score.key, score.negative_slope
    more_heads, _ = padding(key.size(1), library.LANES)
    if more_heads:
        query, key = (F.pad(t, (0, more_heads)) for t in (query, key))
    if torch.compiler.is_compiling():
        return adjacency.gat_operator(*ops.handle(graph), query, key, slope)
    if _needs_grad(query, key):
        return adjacency.GATWeights.apply(graph.compact, rows(query), rows(key), slope)
    return adjacency.gat_forward(graph.compact, rows(query), rows(key), slope)


def _gatv2_weights(graph: Graph, score: GATv2Score) -> Tensor:
    query, key, att, slope = score.query, score.key, score.att, score.negative_slope
    more_heads, more_depth = padding(*att.shape)
    if more_heads or more_depth:
        query, key, att = (F.pad(t, (0, more_depth, 0, more_heads)) for t in (query, key, att))
    if torch.compiler.is_compiling():
        return adjacency.gatv2_operator(*ops.handle(graph), query, key, att, slope)
    if _needs_grad(query, key, att):
        return adjacency.GATv2Weights.apply(graph.compact, query, key, att, slope)
    return adjacency.gatv2_forward(graph.compact, query.contiguous(), key.contiguous(), att.contiguous(), slope)


def _attend_gat(graph: Graph, score: GATScore, value: Tensor) -> Tensor:
    heads, channels = value.shape[1:]
    query, key, slope = score.query, score.key, score.negative_slope
    more_heads, more_channels = padding(heads, channels)
    if more_heads or more_channels:
        query, key = (F.pad(t, (0, more_heads)) for t in (query, key))
        value = F.pad(value, (0, more_channels, 0, more_heads))
    if torch.compiler.is_compiling():
        train = _needs_grad(query, key, value)
        out = ops.attend_gat(*ops.handle(graph), query, key, value, slope, train)[0]
    elif _needs_grad(query, key, value):
        out = _AttendGAT.apply(graph, query, key, value, slope)
    else:
        out, _ = calls.gat_forward(graph.compact, rows(query), rows(key), value.contiguous(), slope, False)
    return out[:, :heads, :channels] if more_heads or more_channels else out


def _attend_gatv2(graph: Graph, score: GATv2Score, value: Tensor) -> Tensor:
    heads, channels = value.shape[1:]
    query, key, att, slope = score.query, score.key, score.att, score.negative_slope
    more_heads, more_channels = padding(heads, channels)
    more_depth = padding(heads, key.size(2))[1]
    one = query is key
    if more_heads or more_channels or more_depth:
        query = F.pad(query, (0, more_depth, 0, more_heads))
        key = query if one else F.pad(key, (0, more_depth, 0, more_heads))
        att = F.pad(att, (0, more_depth, 0, more_heads))
        value = F.pad(value, (0, more_channels, 0, more_heads))
    if torch.compiler.is_compiling():
        out = ops.attend_gatv2(*ops.handle(graph), query, key, value, att, slope)[0]
    elif not _needs_grad(query, key, value, att):
        contiguous = query.contiguous(), key.contiguous(), value.contiguous(), att.contiguous()
        out, _, _ = calls.gatv2_forward(graph.compact, *contiguous, slope)
    elif one and graph.compact.symmetric:
        out = _AttendSymmetricGATv2.apply(graph, query, value, att, slope)
    else:
        out = _AttendGATv2.apply(graph, query, key, value, att, slope)
    return out[:, :heads, :channels] if more_heads or more_channels else out


def _needs_grad(*tensors: Tensor) -> bool:
    # In forward mode too: torch then reports that the kernels have no forward-mode derivatives.
    forward_mode = torch.autograd.forward_ad._current_level >= 0
    return forward_mode or (torch.is_grad_enabled() and any(t.requires_grad for t in tensors))


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
        lambda2, slope = ctx.saved_tensors
        return None, *calls.convolve_backward(ctx.layout, lambda2, slope, grad.contiguous())


class _AttendGAT(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph: Graph, query: Tensor, key: Tensor, value: Tensor, slope: float) -> Tensor:
        ctx.layout, ctx.slope = graph.compact, slope
        query, key, value = rows(query), rows(key), value.contiguous()
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
        inputs = query.contiguous(), key.contiguous(), value.contiguous(), att.contiguous()
        out, shift, scale = calls.gatv2_forward(ctx.layout, *inputs, slope)
        ctx.save_for_backward(*inputs, out, shift, scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):
        query, key, value, att, out, shift, scale = ctx.saved_tensors
        grad = grad.contiguous()
        grads = calls.gatv2_backward(ctx.layout, query, key, value, att, ctx.slope, out, shift, scale, grad)
        return None, *grads, None


class _AttendSymmetricGATv2(torch.autograd.Function):
    """Query and key are the same tensor and every edge goes both ways: ``i → j`` and ``j → i`` share one score, computed once."""

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
        features, value, att, out, shift, scale = ctx.saved_tensors
        grad = grad.contiguous()
        grads = calls.gatv2_backward_symmetric(ctx.layout, features, value, att, ctx.slope, out, shift, scale, grad)
        return None, *grads, None
