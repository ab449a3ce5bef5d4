"""The backend ``'torch'`` within transforms of torch: the same operators, edge by edge as in PyG.

``torch.func``, forward-mode derivatives and the export to ONNX need code without custom derivatives, sorting and shapes that
depend on data. It takes memory of edges × heads × channels, so :mod:`.torch_path` computes everything else.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgym_lcat.kernels import torch_path
from graphgym_lcat.kernels.backend import (
    Coefficients,
    Dropout,
    EqualScore,
    FunctionScore,
    GATScore,
    PairScore,
)
from graphgym_lcat.kernels.dropout import dropout_factors
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.torch_path import can, describe, name, unavailable

__all__ = [
    "attend",
    "can",
    "coefficients",
    "convolve",
    "describe",
    "name",
    "neighbor_mean",
    "statistics",
    "unavailable",
]


def neighbor_mean(graph: Graph, value: Tensor) -> Tensor:
    """See :meth:`.Backend.neighbor_mean`."""
    src, _ = graph.edge_index.long()
    total = _scatter_add(graph, _masked(value.index_select(0, src), _dropped(graph))) + _own(graph, value)
    return total / _neighborhood_sizes(graph).clamp(min=1).to(value.dtype).unsqueeze(-1)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
    """See :meth:`.Backend.convolve`."""
    src, dst = graph.edge_index.long()
    loops = src == dst if graph.shared_nodes else None
    total = _scatter_add(graph, _masked(source.index_select(0, src), loops))
    neighbors = _scatter_add(graph, _masked(source.new_ones(src.size(0), 1), loops))
    return (target + lambda2 * total) / (1 + lambda2 * neighbors)


def attend(graph: Graph, score: PairScore, value: Tensor, dropout: Dropout | None = None) -> Tensor:
    """See :meth:`.Backend.attend`."""
    gamma, loop_gamma = coefficients(graph, score, dropout)
    src, _ = graph.edge_index.long()
    total = _scatter_add(graph, gamma.unsqueeze(-1) * value.index_select(0, src))
    return total + _own(graph, loop_gamma.unsqueeze(-1) * value[: graph.self_loops])


def coefficients(graph: Graph, score: PairScore, dropout: Dropout | None = None) -> Coefficients:
    """See :meth:`.Backend.coefficients`."""
    src, dst = graph.edge_index.long()
    scores, loop_scores = _scores(graph, score, src, dst)
    dropped = _dropped(graph)
    if dropped is not None:
        scores = scores.masked_fill(dropped.unsqueeze(-1), -torch.inf)
    index = dst.unsqueeze(-1).expand_as(scores)
    lowest = scores.detach().new_full((graph.num_dst, scores.size(1)), -torch.inf)
    shift = lowest.scatter_reduce(0, index, scores.detach(), "amax")
    shift = torch.maximum(shift, _own(graph, loop_scores.detach(), -torch.inf))
    shift = shift.masked_fill(shift == -torch.inf, 0.0)
    weights = (scores - shift.index_select(0, dst)).exp()
    loop_weights = (loop_scores - shift[: graph.self_loops]).exp()
    total = _scatter_add(graph, weights) + _own(graph, loop_weights)
    total = total.clamp(min=torch.finfo(total.dtype).tiny)
    gamma, loop_gamma = weights / total.index_select(0, dst), loop_weights / total[: graph.self_loops]
    if dropout is not None:
        numbers = torch.arange(src.size(0) + graph.self_loops, device=src.device)
        factors = dropout_factors(dropout.seed, numbers, gamma.size(1), dropout.probability, gamma.dtype)
        gamma, loop_gamma = gamma * factors[: src.size(0)], loop_gamma * factors[src.size(0) :]
    return Coefficients(gamma, loop_gamma)


def statistics(graph: Graph, score: PairScore, receiver: Tensor, sender: Tensor, names: Sequence[str]) -> Tensor:
    """See :meth:`.Backend.statistics`."""
    gamma = None if isinstance(score, EqualScore) else coefficients(graph, score).edges
    return torch_path.statistics_of_messages(graph, gamma, _neighborhood_sizes(graph), receiver, sender, names)


def _scores(graph: Graph, score: PairScore, src: Tensor, dst: Tensor) -> tuple[Tensor, Tensor]:
    """The scores of the edges in their order, and of the added self-loops."""
    n = graph.self_loops
    if isinstance(score, EqualScore):
        heads = score.key.size(1)
        return score.key.new_zeros(src.size(0), heads), score.key.new_zeros(n, heads)
    ends = score.query.index_select(0, dst), score.key.index_select(0, src)
    loop_ends = score.query[:n], score.key[:n]
    if isinstance(score, FunctionScore):
        return score.function(*ends), score.function(*loop_ends)
    sums = [ends[0] + ends[1], loop_ends[0] + loop_ends[1]]
    if score.edge is not None:
        weight = score.edge.weight.flatten(0, -2)
        features = score.edge.features, torch_path.loop_features(graph, score.edge)
        sums = [both + F.linear(part, weight).view_as(both) for both, part in zip(sums, features, strict=True)]
    scores, loop_scores = (F.leaky_relu(both, score.negative_slope) for both in sums)
    if isinstance(score, GATScore):
        return scores, loop_scores
    return (scores * score.att).sum(dim=-1), (loop_scores * score.att).sum(dim=-1)


def _dropped(graph: Graph) -> Tensor | None:
    """Where the graph drops self-loops of the input."""
    return graph.edge_index[0] == graph.edge_index[1] if graph.add_self_loops else None


def _masked(rows: Tensor, mask: Tensor | None) -> Tensor:
    return rows if mask is None else rows.masked_fill(mask.unsqueeze(-1), 0.0)


def _scatter_add(graph: Graph, rows: Tensor) -> Tensor:
    """Sums of rows over the edges of each destination."""
    index = graph.edge_index[1].long().view(-1, *[1] * (rows.dim() - 1)).expand_as(rows)
    return rows.new_zeros(graph.num_dst, *rows.shape[1:]).scatter_add(0, index, rows)


def _own(graph: Graph, rows: Tensor, fill: float = 0.0) -> Tensor:
    """What the added self-loops contribute to each destination."""
    n, missing = graph.self_loops, graph.num_dst - graph.self_loops
    return torch.cat([rows[:n], rows.new_full((missing, *rows.shape[1:]), fill)])


def _neighborhood_sizes(graph: Graph) -> Tensor:
    dropped = _dropped(graph)
    kept = torch.ones_like(graph.edge_index[0]) if dropped is None else (~dropped).long()
    return _scatter_add(graph, kept.long()) + _own(graph, kept.new_ones(graph.self_loops).long())
