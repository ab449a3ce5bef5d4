"""The fused kernels: the backend ``'fused'``, compiled C for the CPU.

No tensor grows with the number of edges (unless edges have features): attention coefficients are computed again in the backward
pass. The results do not depend on the number of threads, which is torch's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgym_lcat.kernels import adjacency, calls, fused_attention, fused_convolved, library, ops, pna
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
from graphgym_lcat.kernels.derivatives import first_derivative
from graphgym_lcat.kernels.fused_attention import needs_grad
from graphgym_lcat.kernels.fused_inputs import padding, rows
from graphgym_lcat.kernels.graph import Graph

_LIBRARY = library.load()

name = "fused"
can = Capabilities(
    operators=frozenset({"neighbor_mean", "convolve", "attend", "attend_convolved", "coefficients", "statistics"}),
    plain_operators=frozenset({"statistics"}),
    scores=frozenset({"gat", "gatv2"}),
    edge_term=True,
    dropout=True,
    devices=frozenset({"cpu"}),
    dtypes=tuple(library.NUMBERS) if isinstance(_LIBRARY, str) else _LIBRARY.dtypes,
    mixed_dtypes=frozenset({torch.float32, *library.HALVES}),
    max_heads=64,
    max_nodes=MAX_NODES,
    derivatives=1,
)

# Why there are no compiled kernels at all, or None.
UNAVAILABLE = _LIBRARY if isinstance(_LIBRARY, str) else None
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
    if not needs_grad(value):
        return calls.mean_forward(graph.compact, value.contiguous())
    return _NeighborMean.apply(graph, value)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
    """See :meth:`.Backend.convolve`."""
    dtype = torch.promote_types(target.dtype, source.dtype)
    target, source = target.to(dtype), source.to(dtype)
    lambda2 = torch.as_tensor(lambda2, dtype=library.real_dtype(dtype)).view(-1)
    if torch.compiler.is_compiling():
        return ops.convolve(*ops.handle(graph), target, source, lambda2, needs_grad(lambda2))[0]
    if not needs_grad(target, source, lambda2):
        return calls.convolve_forward(
            graph.compact, target.contiguous(), source.contiguous(), lambda2.contiguous(), False
        )[0]
    return _Convolve.apply(graph, target, source, lambda2)


def attend(graph: Graph, score: PairScore, value: Tensor, dropout: Dropout | None = None) -> Tensor:
    """See :meth:`.Backend.attend`."""
    assert isinstance(score, (GATScore, GATv2Score))  # `can` lists no other
    return fused_attention.attend(graph, score, value, dropout)


def attend_convolved(
    graph: Graph, score: ConvolvedScore, value: Tensor, bias: Tensor | None, dropout: Dropout | None
) -> Tensor:
    """See :meth:`.ConvolvingBackend.attend_convolved`."""
    return fused_convolved.attend_convolved(graph, score, value, bias, dropout)


def coefficients(graph: Graph, score: PairScore, dropout: Dropout | None = None) -> Coefficients:
    """See :meth:`.Backend.coefficients`."""
    assert isinstance(score, (GATScore, GATv2Score))  # `can` lists no other
    return fused_attention.coefficients(graph, score, dropout)


def statistics(graph: Graph, score: PairScore, receiver: Tensor, sender: Tensor, names: Sequence[str]) -> Tensor:
    """See :meth:`.Backend.statistics`. Half types and different dtypes are converted to float32, or float64."""
    dtypes = {part.dtype for part in (receiver, sender, *score) if isinstance(part, Tensor)}
    if len(dtypes) > 1 or not dtypes.isdisjoint(library.HALVES):
        wide = torch.float64 if torch.float64 in dtypes else torch.float32
        parts: list[Any] = [part.to(wide) if isinstance(part, Tensor) else part for part in score]
        return statistics(graph, type(score)(*parts), receiver.to(wide), sender.to(wide), names).to(sender.dtype)
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
    elif needs_grad(*inputs):
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
    if needs_grad(query, key):
        return adjacency.GATWeights.apply(graph.compact, rows(query), rows(key), slope)
    return adjacency.gat_forward(graph.compact, rows(query), rows(key), slope)


def _gatv2_weights(graph: Graph, score: GATv2Score) -> Tensor:
    query, key, att, slope = score.query, score.key, score.att, score.negative_slope
    more_heads, more_depth = padding(*att.shape)
    if more_heads or more_depth:
        query, key, att = (F.pad(t, (0, more_depth, 0, more_heads)) for t in (query, key, att))
    if torch.compiler.is_compiling():
        return adjacency.gatv2_operator(*ops.handle(graph), query, key, att, slope)
    if needs_grad(query, key, att):
        return adjacency.GATv2Weights.apply(graph.compact, query, key, att, slope)
    return adjacency.gatv2_forward(graph.compact, query.contiguous(), key.contiguous(), att.contiguous(), slope)


class _NeighborMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph: Graph, value: Tensor) -> Tensor:
        ctx.layout = graph.compact
        return calls.mean_forward(ctx.layout, value.contiguous())

    @staticmethod
    @first_derivative
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
    @first_derivative
    def backward(ctx, grad: Tensor):
        lambda2, slope = ctx.saved_tensors
        return None, *calls.convolve_backward(ctx.layout, lambda2, slope, grad.contiguous())
