"""The torch path: attention in plain torch operations, for any device and dtype.

Sums over edges are embedding bags: the rows of a CSR matrix are bags of source nodes, so that no row of features is copied for
an edge. What needs the features of both end points of an edge (the score of GATv2, the gradient of attention coefficients) walks
over the edges in chunks.

``gamma`` always stands for the pair (coefficients of the stored edges in the order of their slots, ``[E, H]``; coefficients of
the implicit self-loops, ``[self_loops, H]``).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from graphgym_lcat.kernels.graph import Graph

Gamma = tuple[Tensor, Tensor]

# Numbers per chunk: 4 MiB in float32 stay in the cache of one core.
CHUNK_NUMEL = 1 << 20


def neighbor_mean(graph: Graph, value: Tensor) -> Tensor:
    """Mean of ``value`` ``[num_src, F]`` over :math:`N^*_i`, the stored in-edges and the self-loop; 0 where there are none."""
    total = neighbor_sum(graph, value)
    total = _add_self_loops(graph, total, value)
    count = graph.rowptr.diff()
    if graph.self_loops:
        count = count + (torch.arange(graph.num_dst, device=count.device) < graph.self_loops)
    return total / count.clamp(min=1).to(value.dtype).unsqueeze(-1)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
    r"""Equation 7: :math:`(t_i + \lambda_2 \sum_{\ell \in N_i} s_\ell) / (1 + \lambda_2 |N_i|)`.

    Args:
        graph: The graph; its self-loops, implicit or stored, do not count as neighbours.
        target: ``[num_dst, F]``, the destinations' own features.
        source: ``[num_src, F]``, what their neighbours contribute.
        lambda2: A number, or a tensor that broadcasts against ``[F]``.
    """
    total = neighbor_sum(graph, source)
    if graph.explicit_loops is not None:
        total = total - source * graph.explicit_loops.to(source.dtype).unsqueeze(-1)
    neighbors = graph.neighbors.to(source.dtype).unsqueeze(-1)
    return (target + lambda2 * total) / (1 + lambda2 * neighbors)


def attend_gat(graph: Graph, query: Tensor, key: Tensor, value: Tensor, negative_slope: float) -> Tensor:
    """Attention with the score of GAT, ``LeakyReLU(query_i + key_j)``.

    Args:
        graph: The graph.
        query: ``[num_dst, H]``.
        key: ``[num_src, H]``.
        value: ``[num_src, H, C]``.
        negative_slope: Of the LeakyReLU.
    """
    return weighted_sum(graph, softmax(graph, *gat_scores(graph, query, key, negative_slope)), value)


def attend_gatv2(graph: Graph, query: Tensor, key: Tensor, value: Tensor, att: Tensor, negative_slope: float) -> Tensor:
    """Attention with the score of GATv2, ``att · LeakyReLU(query_i + key_j)``.

    Args:
        graph: The graph.
        query: ``[num_dst, H, D]``.
        key: ``[num_src, H, D]``.
        value: ``[num_src, H, C]``.
        att: ``[H, D]``.
        negative_slope: Of the LeakyReLU.
    """

    def score(u: Tensor, v: Tensor) -> Tensor:
        return (F.leaky_relu(u + v, negative_slope) * att).sum(dim=-1)

    return weighted_sum(graph, softmax(graph, *pair_scores(graph, query, key, score)), value)


def gat_scores(
    graph: Graph,
    query: Tensor,
    key: Tensor,
    negative_slope: float,
    edge_term: Gamma | None = None,
) -> tuple[Tensor, Tensor]:
    """Scores of GAT for the stored edges and the self-loops; ``edge_term`` is added before the LeakyReLU."""
    scores = at_destination(graph, query) + key.index_select(0, graph.src)
    self_scores = query[: graph.self_loops] + key[: graph.self_loops]
    if edge_term is not None:
        scores, self_scores = scores + edge_term[0], self_scores + edge_term[1]
    return F.leaky_relu(scores, negative_slope), F.leaky_relu(self_scores, negative_slope)


def pair_scores(
    graph: Graph,
    query: Tensor,
    key: Tensor,
    score: Callable[..., Tensor],
    edge_term: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Scores ``score(query_i, key_j) → [edges, H]`` of features ``[nodes, H, D]``, over chunks of edges.

    ``edge_term`` (for the edges in the order of their slots, for the self-loops) is a third argument of ``score``.
    """
    dst = _clamped_destination(graph)

    def score_chunk(query: Tensor, key: Tensor, dst: Tensor, src: Tensor, *term: Tensor) -> Tensor:
        return score(query.index_select(0, dst), key.index_select(0, src), *term)

    size = max(1, CHUNK_NUMEL // max(1, key[0].numel())) if key.size(0) else 1
    bounds = range(0, graph.num_edges, size) if graph.num_edges else (0,)
    chunks = []
    for start in bounds:
        slots = slice(start, start + size)
        term = () if edge_term is None else (edge_term[0][slots],)
        arguments = (query, key, dst[slots], graph.src[slots], *term)
        if graph.num_edges > size and torch.is_grad_enabled():
            # Recomputing the score in the backward pass keeps one chunk of E·H·D numbers alive, not all.
            chunks.append(checkpoint(score_chunk, *arguments, use_reentrant=False, preserve_rng_state=False))
        else:
            chunks.append(score_chunk(*arguments))
    scores = torch.cat(chunks) if len(chunks) > 1 else chunks[0]
    self_term = () if edge_term is None else (edge_term[1],)
    return scores, score(query[: graph.self_loops], key[: graph.self_loops], *self_term)


def softmax(graph: Graph, scores: Tensor, self_scores: Tensor) -> Gamma:
    """Attention coefficients: softmax over the in-edges of each destination, its self-loop included."""
    return _Softmax.apply(graph, scores, self_scores)


def weighted_sum(graph: Graph, gamma: Gamma, value: Tensor) -> Tensor:
    """``Σ_j gamma_ij value_j`` for ``value`` ``[num_src, H, C]``."""
    dtype = torch.promote_types(gamma[0].dtype, value.dtype)  # autocast lowers that of value only
    gamma, value = tuple(part.to(dtype) for part in gamma), value.to(dtype)
    total = _WeightedSum.apply(graph, gamma[0], value)
    if not graph.self_loops:
        return total
    own = gamma[1].unsqueeze(-1) * value[: graph.self_loops]
    return total + F.pad(own, (0, 0, 0, 0, 0, graph.num_dst - graph.self_loops))


def neighbor_sum(graph: Graph, source: Tensor) -> Tensor:
    """``Σ_j source_j`` over the stored in-edges of each destination, ``[num_src, F] → [num_dst, F]``."""
    _ = graph.sorted_edges  # torch.compile cannot sort them within an autograd.Function
    return _NeighborSum.apply(graph, source, False)


def at_destination(graph: Graph, target: Tensor) -> Tensor:
    """Rows of ``target`` ``[num_dst, …]`` at the destination of every slot."""
    return target.index_select(0, _clamped_destination(graph))


def _clamped_destination(graph: Graph) -> Tensor:
    return graph.dst.clamp(max=graph.num_dst - 1) if graph.parked else graph.dst


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
        # Parked slots go into a bag of their own: embedding_bag leaves undefined what happens behind the last offset.
        offsets = F.pad(offsets, (0, 1), value=members.size(0))
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
        if transpose:
            return _bag(graph.dst_by_src, graph.colptr, source)
        return _bag(graph.src, graph.rowptr, source)

    @staticmethod
    def backward(ctx, grad: Tensor):
        return None, _NeighborSum.apply(ctx.graph, grad, not ctx.transpose), None


class _WeightedSum(torch.autograd.Function):
    """``out[i, h] = Σ_j gamma[ij, h] value[j, h]``, a bag per head."""

    @staticmethod
    def forward(ctx, graph: Graph, gamma: Tensor, value: Tensor) -> Tensor:
        ctx.graph = graph
        ctx.save_for_backward(gamma, value)
        return _heads_bag(graph.src, graph.rowptr, value, gamma)

    @staticmethod
    def backward(ctx, grad: Tensor):
        gamma, value = ctx.saved_tensors
        graph = ctx.graph
        grad_gamma = grad_value = None
        if ctx.needs_input_grad[1]:
            grad_gamma = _pair_products(graph, grad, value)
            if graph.parked:
                grad_gamma = grad_gamma.masked_fill((graph.dst == graph.num_dst).unsqueeze(-1), 0.0)
        if ctx.needs_input_grad[2]:
            # The transpose: bags of destinations, weighted by the same coefficients in the order of the sources.
            grad_value = _heads_bag(graph.dst_by_src, graph.colptr, grad, gamma.index_select(0, graph.slot_by_src))
        return None, grad_gamma, grad_value


def _heads_bag(members: Tensor, offsets: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    return torch.stack([_bag(members, offsets, rows[:, h], weights[:, h]) for h in range(rows.size(1))], dim=1)


def _pair_products(graph: Graph, target: Tensor, source: Tensor) -> Tensor:
    """``Σ_c target[i, h, c] source[j, h, c]`` for every slot."""
    dst = _clamped_destination(graph)
    size = max(1, CHUNK_NUMEL // max(1, source.size(1) * source.size(2)))
    chunks = [
        (target.index_select(0, d) * source.index_select(0, s)).sum(dim=-1)
        for d, s in zip(dst.split(size), graph.src.split(size), strict=True)
    ]
    return torch.cat(chunks)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, graph: Graph, scores: Tensor, self_scores: Tensor):
        heads = scores.size(1)
        rows = graph.num_dst + 1  # the last row belongs to parked slots
        index = graph.dst.unsqueeze(-1).expand(-1, heads)
        shift = scores.new_full((rows, heads), -torch.inf).scatter_reduce(0, index, scores, "amax")
        n = graph.self_loops
        shift[:n] = torch.maximum(shift[:n], self_scores)
        # Rows whose scores are all -inf: exp(-inf - 0) = 0 instead of exp(nan), as in PyG's softmax.
        shift = shift.masked_fill(shift == -torch.inf, 0.0)
        weights = (scores - shift.index_select(0, graph.dst)).exp_()
        self_weights = (self_scores - shift[:n]).exp_()
        total = weights.new_zeros(rows, heads).index_add_(0, graph.dst, weights)
        total[:n] += self_weights
        total = total.clamp(min=torch.finfo(total.dtype).tiny)
        gamma = weights.div_(total.index_select(0, graph.dst))
        self_gamma = self_weights.div_(total[:n])
        ctx.graph = graph
        ctx.save_for_backward(gamma, self_gamma)
        return gamma, self_gamma

    @staticmethod
    def backward(ctx, grad: Tensor, self_grad: Tensor):
        gamma, self_gamma = ctx.saved_tensors
        graph = ctx.graph
        n = graph.self_loops
        weighted, self_weighted = gamma * grad, self_gamma * self_grad
        mean = weighted.new_zeros(graph.num_dst + 1, gamma.size(1)).index_add(0, graph.dst, weighted)
        mean = torch.cat([mean[:n] + self_weighted, mean[n:]])
        grad_scores = weighted - gamma * mean.index_select(0, graph.dst)
        return None, grad_scores, self_weighted - self_gamma * mean[:n]
