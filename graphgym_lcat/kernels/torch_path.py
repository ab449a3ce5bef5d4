"""The torch path: the backend ``'torch'``, in plain torch operations, for any device and dtype.

Sums over edges are embedding bags: the rows of a CSR matrix are bags of source nodes, so that no row of features is copied for
an edge. What needs the features of both end points of an edge (the score of GATv2, the gradient of attention coefficients) walks
over the edges in chunks.

The edges are sorted by destination (see :class:`~graphgym_lcat.kernels.graph.SortedEdges`); the position of an edge in that order
is its slot. ``gamma`` always stands for the pair (coefficients of the stored edges in the order of their slots, ``[E, H]``;
coefficients of the added self-loops, ``[self_loops, H]``), and so does the pair of their scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from graphgym_lcat.kernels.backend import (
    DESCRIPTIONS,
    Capabilities,
    Coefficients,
    Dropout,
    EdgeTerm,
    EqualScore,
    FunctionScore,
    GATScore,
    GATv2Score,
    PairScore,
)
from graphgym_lcat.kernels.dropout import dropout_factors
from graphgym_lcat.kernels.graph import Graph

Gamma = tuple[Tensor, Tensor]

# Numbers per chunk: on a CPU, 4 MiB in float32 stay in the cache of one core.
CHUNK_NUMEL = 1 << 20
# A GPU hides nothing in a cache of that size, but every chunk costs a dozen launches of some microseconds: its chunks are as
# large as memory allows, up to a size whose launches no longer matter.
GPU_CHUNK_NUMEL = 1 << 28
# Bytes that one number of a chunk takes in the backward pass: some ten tensors in float32. Chunks use a quarter of what is free.
GPU_BYTES_PER_NUMBER = 40

# Where PyG takes a variance to be 0, and its square root to have no gradient.
MIN_VARIANCE = 1e-5

name = "torch"
can = Capabilities(
    operators=frozenset(DESCRIPTIONS) - {"attend_convolved"},
    scores=frozenset({"equal", "gat", "gatv2", "function"}),
    edge_term=True,
    dropout=True,
    transforms=True,  # by scatter_path
)


def unavailable() -> None:
    """It is available everywhere."""


def describe() -> str:
    return "torch path"


def chunk_numel(device: torch.device) -> int:
    """How many numbers a chunk of edges may have on ``device``."""
    if device.type != "cuda":
        return CHUNK_NUMEL
    if torch.compiler.is_compiling():  # a program is compiled once, whatever is free when it runs
        return GPU_CHUNK_NUMEL // 4
    free, _ = torch.cuda.mem_get_info(device)
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return max(CHUNK_NUMEL, min(GPU_CHUNK_NUMEL, free // (4 * GPU_BYTES_PER_NUMBER)))


def neighbor_mean(graph: Graph, value: Tensor) -> Tensor:
    """See :meth:`.Backend.neighbor_mean`."""
    total = neighbor_sum(graph, value)
    total = _add_self_loops(graph, total, value)
    return total / graph.neighborhood_sizes.clamp(min=1).to(value.dtype).unsqueeze(-1)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
    """See :meth:`.Backend.convolve`."""
    total = neighbor_sum(graph, source)
    edges = graph.sorted_edges
    if edges.explicit_loops is not None:
        total = total - source * edges.explicit_loops.to(source.dtype).unsqueeze(-1)
    neighbors = edges.neighbors.to(source.dtype).unsqueeze(-1)
    convolved = (target + lambda2 * total) / (1 + lambda2 * neighbors)
    return convolved.to(torch.promote_types(target.dtype, source.dtype))


def attend(graph: Graph, score: PairScore, value: Tensor, dropout: Dropout | None = None) -> Tensor:
    """See :meth:`.Backend.attend`."""
    return weighted_sum(graph, _gamma(graph, score, dropout), value)


def coefficients(graph: Graph, score: PairScore, dropout: Dropout | None = None) -> Coefficients:
    """See :meth:`.Backend.coefficients`."""
    gamma, loop_gamma = _gamma(graph, score, dropout)
    edges = graph.sorted_edges
    if edges.parked:
        gamma = gamma.masked_fill((edges.dst == graph.num_dst).unsqueeze(-1), 0.0)
    in_order = gamma.new_zeros(graph.edge_index.size(1), gamma.size(1)).index_copy(0, edges.edge_id, gamma)
    return Coefficients(in_order, loop_gamma)


def statistics(graph: Graph, score: PairScore, receiver: Tensor, sender: Tensor, names: Sequence[str]) -> Tensor:
    """See :meth:`.Backend.statistics`."""
    gamma = None if isinstance(score, EqualScore) else coefficients(graph, score).edges
    return statistics_of_messages(graph, gamma, graph.neighborhood_sizes, receiver, sender, names)


def statistics_of_messages(
    graph: Graph, gamma: Tensor | None, count: Tensor, receiver: Tensor, sender: Tensor, names: Sequence[str]
) -> Tensor:
    """:meth:`.Backend.statistics` with the coefficients γ of the edges (None: equal ones), and the numbers of in-edges."""
    src, dst = graph.edge_index.long()
    messages = receiver.index_select(0, dst) + sender.index_select(0, src)
    if gamma is not None:
        weight = gamma * count.to(gamma.dtype).unsqueeze(-1).index_select(0, dst)
        by_head = messages.unflatten(1, (gamma.size(1), messages.size(1) // gamma.size(1)))
        messages = (by_head * weight.unsqueeze(-1)).flatten(1)
    count = count.clamp(min=1).to(messages.dtype).unsqueeze(-1)
    zeros = messages.new_zeros(graph.num_dst, messages.size(1))
    index = dst.unsqueeze(-1).expand_as(messages)

    def compute(name: str) -> Tensor:
        if name in ("min", "max"):
            return zeros.scatter_reduce(0, index, messages, f"a{name}", include_self=False)
        total = zeros.scatter_add(0, index, messages)
        if name == "sum":
            return total
        mean = total / count
        if name == "mean":
            return mean
        variance = zeros.scatter_add(0, index, messages * messages) / count - mean * mean
        if name == "var":
            return variance
        deviation = variance.clamp(min=MIN_VARIANCE).sqrt()
        return deviation.masked_fill(deviation <= math.sqrt(MIN_VARIANCE), 0.0)

    return torch.cat([compute(name) for name in names], dim=1)


def _gamma(graph: Graph, score: PairScore, dropout: Dropout | None) -> Gamma:
    gamma, loop_gamma = softmax(graph, *_scores(graph, score))
    if dropout is None:
        return gamma, loop_gamma
    count, heads = graph.edge_index.size(1), gamma.size(1)
    loops = torch.arange(count, count + graph.self_loops, device=gamma.device)

    def factors(numbers: Tensor) -> Tensor:
        return dropout_factors(dropout.seed, numbers, heads, dropout.probability, gamma.dtype)

    return gamma * factors(graph.sorted_edges.edge_id), loop_gamma * factors(loops)


def _scores(graph: Graph, score: PairScore) -> Gamma:
    """The scores of the stored edges and of the added self-loops."""
    if isinstance(score, GATScore):
        return _gat_scores(graph, score)
    if isinstance(score, GATv2Score):
        return _gatv2_scores(graph, score)
    if isinstance(score, FunctionScore):
        return _pair_scores(graph, score.query, score.key, score.function)
    heads = score.key.size(1)
    return score.key.new_zeros(graph.num_edges, heads), score.key.new_zeros(graph.self_loops, heads)


def _gat_scores(graph: Graph, score: GATScore) -> Gamma:
    query, key, n = score.query, score.key, graph.self_loops
    scores = query.index_select(0, _clamped_destination(graph)) + key.index_select(0, graph.sorted_edges.src)
    self_scores = query[:n] + key[:n]
    if score.edge is not None:
        weight = score.edge.weight.t()
        scores = scores + _in_slots(graph, score.edge) @ weight
        self_scores = self_scores + loop_features(graph, score.edge) @ weight
    return F.leaky_relu(scores, score.negative_slope), F.leaky_relu(self_scores, score.negative_slope)


def _gatv2_scores(graph: Graph, score: GATv2Score) -> Gamma:
    def product(u: Tensor, v: Tensor, edge_features: Tensor | None = None) -> Tensor:
        both = u + v
        if edge_features is not None and score.edge is not None:
            both = both + F.linear(edge_features, score.edge.weight.flatten(0, 1)).view_as(both)
        return (F.leaky_relu(both, score.negative_slope) * score.att).sum(dim=-1)

    if score.edge is None:
        return _pair_scores(graph, score.query, score.key, product)
    features = _in_slots(graph, score.edge), loop_features(graph, score.edge)
    return _pair_scores(graph, score.query, score.key, product, features)


def loop_features(graph: Graph, edge: EdgeTerm) -> Tensor:
    """Features of the added self-loops, ``[self_loops, edge_dim]``."""
    if isinstance(edge.loop_features, Tensor):
        return edge.loop_features
    src, dst = graph.edge_index.long()
    dst = torch.where(src == dst, graph.num_dst, dst)  # dropped self-loops go into a row of their own
    total = edge.features.new_zeros(graph.num_dst + 1, edge.features.size(1)).index_add(0, dst, edge.features)
    if edge.loop_features == "mean":
        total = total / torch.bincount(dst, minlength=graph.num_dst + 1).clamp(min=1).to(total.dtype).unsqueeze(-1)
    return total[: graph.self_loops]


def _in_slots(graph: Graph, edge: EdgeTerm) -> Tensor:
    """Edge features in the order of the slots."""
    return edge.features.index_select(0, graph.sorted_edges.edge_id)


def _pair_scores(
    graph: Graph,
    query: Tensor,
    key: Tensor,
    score: Callable[..., Tensor],
    edge_features: tuple[Tensor, Tensor] | None = None,
) -> Gamma:
    """Scores ``score(query_i, key_j) → [edges, H]`` of features ``[nodes, H, D]``, over chunks of edges.

    ``edge_features`` (of the edges in the order of their slots, of the self-loops) are a third argument of ``score``.
    """
    dst = _clamped_destination(graph)

    def score_chunk(query: Tensor, key: Tensor, dst: Tensor, src: Tensor, *features: Tensor) -> Tensor:
        return score(query.index_select(0, dst), key.index_select(0, src), *features)

    if torch.compiler.is_compiling():  # the number of edges, and so of chunks, may be unknown
        scores = score_chunk(query, key, dst, graph.sorted_edges.src, *(edge_features or ())[:1])
        return scores, score(query[: graph.self_loops], key[: graph.self_loops], *(edge_features or ())[1:])
    size = max(1, chunk_numel(key.device) // max(1, key[0].numel())) if key.size(0) else 1
    bounds = range(0, graph.num_edges, size) if graph.num_edges else (0,)
    chunks = []
    for start in bounds:
        slots = slice(start, start + size)
        features = () if edge_features is None else (edge_features[0][slots],)
        arguments = (query, key, dst[slots], graph.sorted_edges.src[slots], *features)
        if graph.num_edges > size and torch.is_grad_enabled():
            # Recomputing the score in the backward pass keeps one chunk of E·H·D numbers alive, not all.
            chunks.append(checkpoint(score_chunk, *arguments, use_reentrant=False, preserve_rng_state=False))
        else:
            chunks.append(score_chunk(*arguments))
    scores = torch.cat(chunks) if len(chunks) > 1 else chunks[0]
    of_loops = () if edge_features is None else (edge_features[1],)
    return scores, score(query[: graph.self_loops], key[: graph.self_loops], *of_loops)


def softmax(graph: Graph, scores: Tensor, self_scores: Tensor) -> Gamma:
    """Softmax over the in-edges of each destination, its self-loop included."""
    return _Softmax.apply(graph, scores, self_scores)


def weighted_sum(graph: Graph, gamma: Gamma, value: Tensor) -> Tensor:
    """``Σ_j gamma_ij value_j`` for ``value`` ``[num_src, H, C]``."""
    wanted = value.dtype
    dtype = torch.promote_types(gamma[0].dtype, wanted)  # autocast lowers that of value only
    value = value.to(dtype)
    total = _WeightedSum.apply(graph, gamma[0].to(dtype), value)
    if graph.self_loops:
        own = gamma[1].to(dtype).unsqueeze(-1) * value[: graph.self_loops]
        total = total + F.pad(own, (0, 0, 0, 0, 0, graph.num_dst - graph.self_loops))
    return total.to(wanted)


def neighbor_sum(graph: Graph, source: Tensor) -> Tensor:
    """``Σ_j source_j`` over the stored in-edges of each destination, ``[num_src, F] → [num_dst, F]``."""
    _ = graph.sorted_edges  # torch.compile cannot sort them within an autograd.Function
    return _NeighborSum.apply(graph, source, False)


def _clamped_destination(graph: Graph) -> Tensor:
    edges = graph.sorted_edges
    return edges.dst.clamp(max=graph.num_dst - 1) if edges.parked else edges.dst


def _add_self_loops(graph: Graph, total: Tensor, value: Tensor) -> Tensor:
    if not graph.self_loops:
        return total
    if graph.self_loops == graph.num_dst:
        return total + value[: graph.num_dst]
    return total + F.pad(value[: graph.self_loops], (0, 0, 0, graph.num_dst - graph.self_loops))


def _bag(members: Tensor, offsets: Tensor, rows: Tensor, weights: Tensor | None = None) -> Tensor:
    """Row ``i`` of the result is the (weighted) sum of ``rows[members[offsets[i]:offsets[i + 1]]]``."""
    if offsets.size(0) == 1 or rows.numel() == 0:
        return rows.new_zeros(offsets.size(0) - 1, rows.size(1))
    if torch.compiler.is_compiling():
        # Parked slots go into a bag of their own: for embedding_bag, what comes after the last offset is undefined.
        offsets = torch.cat([offsets, torch.full_like(offsets[:1], members.size(0))])
    bags = F.embedding_bag(
        members,
        rows.contiguous(),
        offsets,
        mode="sum",
        per_sample_weights=None if weights is None else weights.contiguous(),
        include_last_offset=True,
    )
    return bags[:-1] if torch.compiler.is_compiling() else bags


class _NeighborSum(torch.autograd.Function):
    """``A @ source``, or ``Aᵀ @ source``; each is the other's gradient."""

    @staticmethod
    def forward(ctx, graph: Graph, source: Tensor, transpose: bool) -> Tensor:
        ctx.graph, ctx.transpose = graph, transpose
        edges = graph.sorted_edges
        if transpose:
            return _bag(edges.dst_by_src, edges.colptr, source)
        return _bag(edges.src, edges.rowptr, source)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return None, _NeighborSum.apply(ctx.graph, grad, not ctx.transpose), None


class _WeightedSum(torch.autograd.Function):
    """``out[i, h] = Σ_j gamma[ij, h] value[j, h]``, a bag per head."""

    @staticmethod
    def forward(ctx, graph: Graph, gamma: Tensor, value: Tensor) -> Tensor:
        ctx.graph = graph
        ctx.save_for_backward(gamma, value)
        return _heads_bag(graph.sorted_edges.src, graph.sorted_edges.rowptr, value, gamma)

    @staticmethod
    def backward(ctx, grad: Tensor):
        gamma, value = ctx.saved_tensors
        graph, edges = ctx.graph, ctx.graph.sorted_edges
        grad_gamma = grad_value = None
        if ctx.needs_input_grad[1]:
            grad_gamma = _pair_products(graph, grad, value)
            if edges.parked:
                grad_gamma = grad_gamma.masked_fill((edges.dst == graph.num_dst).unsqueeze(-1), 0.0)
        if ctx.needs_input_grad[2]:
            # The transpose: bags of destinations, weighted by the same coefficients in the order of the sources.
            grad_value = _heads_bag(edges.dst_by_src, edges.colptr, grad, gamma.index_select(0, edges.slot_by_src))
        return None, grad_gamma, grad_value


def _heads_bag(members: Tensor, offsets: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    return torch.stack([_bag(members, offsets, rows[:, h], weights[:, h]) for h in range(rows.size(1))], dim=1)


def _pair_products(graph: Graph, target: Tensor, source: Tensor) -> Tensor:
    """``Σ_c target[i, h, c] source[j, h, c]`` for every slot."""
    dst = _clamped_destination(graph)
    if torch.compiler.is_compiling():
        return (target.index_select(0, dst) * source.index_select(0, graph.sorted_edges.src)).sum(dim=-1)
    size = max(1, chunk_numel(source.device) // max(1, source.size(1) * source.size(2)))
    chunks = [
        (target.index_select(0, d) * source.index_select(0, s)).sum(dim=-1)
        for d, s in zip(dst.split(size), graph.sorted_edges.src.split(size), strict=True)
    ]
    return torch.cat(chunks)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph: Graph, scores: Tensor, self_scores: Tensor):
        heads = scores.size(1)
        rows = graph.num_dst + 1  # the last row belongs to parked slots
        dst = graph.sorted_edges.dst
        index = dst.unsqueeze(-1).expand(-1, heads)
        shift = scores.new_full((rows, heads), -torch.inf).scatter_reduce(0, index, scores, "amax")
        n = graph.self_loops
        shift[:n] = torch.maximum(shift[:n], self_scores)
        # Rows whose scores are all -inf: exp(-inf - 0) = 0 instead of exp(nan), as in PyG's softmax.
        shift = shift.masked_fill(shift == -torch.inf, 0.0)
        weights = (scores - shift.index_select(0, dst)).exp_()
        self_weights = (self_scores - shift[:n]).exp_()
        total = weights.new_zeros(rows, heads).index_add_(0, dst, weights)
        total[:n] += self_weights
        total = total.clamp(min=torch.finfo(total.dtype).tiny)
        gamma = weights.div_(total.index_select(0, dst))
        self_gamma = self_weights.div_(total[:n])
        ctx.graph = graph
        ctx.save_for_backward(gamma, self_gamma)
        return gamma, self_gamma

    @staticmethod
    def backward(ctx, grad: Tensor, self_grad: Tensor):
        gamma, self_gamma = ctx.saved_tensors
        graph, dst = ctx.graph, ctx.graph.sorted_edges.dst
        n = graph.self_loops
        weighted, self_weighted = gamma * grad, self_gamma * self_grad
        mean = weighted.new_zeros(graph.num_dst + 1, gamma.size(1)).index_add(0, dst, weighted)
        mean = torch.cat([mean[:n] + self_weighted, mean[n:]])
        grad_scores = weighted - gamma * mean.index_select(0, dst)
        return None, grad_scores, self_weighted - self_gamma * mean[:n]
