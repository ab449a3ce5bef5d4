"""Dense O(N²) attention, written from the equations and independently of the layers.

``counts[i, j]`` is the number of edges from source j to destination i, so duplicate edges weigh twice.
"""

from __future__ import annotations

import torch
from torch import Tensor


def edge_counts(edge_index: Tensor, num_src: int, num_dst: int) -> Tensor:
    counts = torch.zeros(num_dst, num_src, dtype=torch.double)
    for src, dst in edge_index.t().tolist():
        counts[dst, src] += 1
    return counts


def with_self_loops(counts: Tensor) -> Tensor:
    """Drops the self-loops of the input, then adds one to every node that is both source and destination."""
    result = counts.clone()
    for i in range(min(counts.shape)):
        result[i, i] = 1
    return result


def without_self_loops(counts: Tensor) -> Tensor:
    result = counts.clone()
    for i in range(min(counts.shape)):
        result[i, i] = 0
    return result


def convolved(own: Tensor, of_sources: Tensor, neighbors: Tensor, lambda2) -> Tensor:
    """Equation 7, row by row."""
    return torch.stack(
        [(own[i] + lambda2 * (neighbors[i] @ of_sources)) / (1 + lambda2 * neighbors[i].sum()) for i in range(len(own))]
    )


def leaky(z: Tensor, slope: float) -> Tensor:
    return torch.where(z > 0, z, slope * z)


def gat_alpha(u: Tensor, v: Tensor, att_dst: Tensor, att_src: Tensor, slope: float) -> Tensor:
    """``LeakyReLU(aᵀ[u_i ‖ v_j])`` for all pairs."""
    pairs = torch.cat([u[:, None].expand(-1, len(v), -1), v[None].expand(len(u), -1, -1)], dim=-1)
    return leaky(pairs @ torch.cat([att_dst, att_src]), slope)


def gatv2_alpha(u: Tensor, v: Tensor, att: Tensor, slope: float) -> Tensor:
    """``aᵀ LeakyReLU(u_i + v_j)`` for all pairs."""
    return leaky(u[:, None] + v[None], slope) @ att


def coefficients(psi: Tensor, counts: Tensor) -> Tensor:
    """Softmax over the edges of each row; rows without edges are 0."""
    weights = counts * torch.exp(psi - psi.max().detach())
    total = weights.sum(dim=1, keepdim=True)
    return torch.where(total > 0, weights / total.clamp(min=1e-300), torch.zeros_like(weights))


def attention_layer(
    x: Tensor,
    counts: Tensor,
    value_weight: Tensor,
    score_weight: Tensor,
    alpha,
    heads: int,
    lambda1,
    lambda2,
    add_self_loops: bool = True,
) -> list[Tensor]:
    """The layer of one set of nodes, head by head, before heads are joined. ``alpha(head, u, v)`` scores all pairs."""
    attended = with_self_loops(counts) if add_self_loops else counts
    neighbors = without_self_loops(counts)
    x_hat = convolved(x, x, neighbors, lambda2)
    channels = value_weight.size(0) // heads
    outputs = []
    for head in range(heads):
        rows = slice(head * channels, (head + 1) * channels)
        projected = x_hat @ score_weight[rows].t()
        gamma = coefficients(lambda1 * alpha(head, projected, projected), attended)
        outputs.append(gamma @ (x @ value_weight[rows].t()))
    return outputs
