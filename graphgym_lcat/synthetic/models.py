"""The one-layer models of the appendix "Synthetic experiments", evaluated on dense graphs of 10⁸ pairs.

Symbols: the models depend on a node only through z_i = wᵀX_i with w = μ/‖μ‖. u_i (receiver) and v_j (sender) are the inputs of the
score: z itself for GAT, its convolution (eq. 7 with λ2) for CAT and L-CAT. With m = C‖μ‖, slope β and L = LeakyReLU, the score
rᵀL(S [u, v]ᵀ + b) of the ansatz is

    Ψ/R = 2L(u+v−3m/2) − 2L(−u−v−3m/2) − 2L(u−v−3m/2) + 2L(−u+v−3m/2)
          − L(v−m/2) − L(u−m/2) − L(−v−m/2) − L(−u−m/2).

Since L(x) = βx + (1−β) max(x, 0), and terms of u alone cancel in the softmax over j, it can be replaced by

    Ψ/R = 2(1−β) [2v − clip(u+v) + clip(u−v)] + 8βv − (1−β) [max(v−m/2, 0) + max(−v−m/2, 0)]

with clip(x) = min(max(x, −3m/2), 3m/2), negated for m < 0: two clips per pair instead of eight LeakyReLUs. Everything is computed
in blocks of rows that stay in the cache; there is no array of edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgym_lcat.kernels.pairs import attend_pairs, pairs_are_fused

_BLOCK = 80_000  # pairs at a time, so that the few arrays in use stay in the cache
_ABSENT = 1e30  # subtracted from the score of a pair that is not an edge
# exp and products are slow where they underflow. The largest term of a row is 1, and e⁻⁵⁰ is negligible beside it, even multiplied
# by the number of nodes.
_SMALLEST = -50.0


@dataclass(frozen=True)
class Ansatz:
    """The constants that all models share: the slope β of LeakyReLU and the scale R of the score."""

    slope: float
    scale: float


def block_height(n: int) -> int:
    """Return the number of rows of n pairs to process at once."""
    return min(n, max(1, _BLOCK // n))


def row_blocks(n: int) -> Iterator[slice]:
    height = block_height(n)
    for start in range(0, n, height):
        yield slice(start, min(start + height, n))


def neighbour_sums(values: Tensor, adjacency: Tensor) -> Tensor:
    """Sum the rows of ``values`` (n × k) over N_i, without i itself."""
    return torch.cat([adjacency[rows].to(values.dtype) @ values for rows in row_blocks(len(values))])


def convolve(z: Tensor, sums: Tensor, degrees: Tensor, lambda2: float | Tensor = 1.0) -> Tensor:
    """Compute ĥ of eq. 7 from the sums of z over neighbours and the degrees."""
    return (z + lambda2 * sums) / (1 + lambda2 * degrees)


def attend(
    score_input: Tensor,
    values: Tensor,
    adjacency: Tensor,
    m: float,
    ansatz: Ansatz,
    lambda1: float = 1.0,
) -> Tensor:
    """Compute Σ_j γ_ij values_j with the softmax over N*_i; ``values`` and the result are n × k."""
    terms = score_terms(score_input, score_input.new_tensor(m), ansatz, lambda1)
    if pairs_are_fused(score_input, values):
        bound, pair_scale, column = terms
        return attend_pairs(adjacency, score_input, float(bound), float(pair_scale), column, values)
    return _attend_in_blocks(score_input, values, adjacency, *terms)


def _attend_in_blocks(
    score_input: Tensor, values: Tensor, adjacency: Tensor, bound: Tensor, pair_scale: Tensor, column: Tensor
) -> Tensor:
    n = len(score_input)
    weights = torch.cat([values, values.new_ones(n, 1)], dim=1)
    first, second = score_input.new_empty(2, block_height(n), n)
    out = []
    for rows in row_blocks(n):
        receivers = score_input[rows, None]
        plus, score = first[: len(receivers)], second[: len(receivers)]
        torch.add(receivers, score_input, out=plus).clamp_(-bound, bound)
        torch.sub(receivers, score_input, out=score).clamp_(-bound, bound)
        score.sub_(plus).mul_(pair_scale).add_(column)
        mask_and_shift(score, adjacency, rows, plus)
        sums = score.exp_() @ weights
        out.append(sums[:, :-1] / sums[:, -1:])
    return torch.cat(out)


def score_terms(v: Tensor, m: Tensor, ansatz: Ansatz, lambda1: float | Tensor = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``bound``, ``pair_scale`` and ``column`` of λ1 Ψ = pair_scale [clip(u−v) − clip(u+v)] + column(v)."""
    kink = torch.relu(v - m / 2) + torch.relu(-v - m / 2)
    column = lambda1 * ansatz.scale * ((4 + 4 * ansatz.slope) * v - (1 - ansatz.slope) * kink)
    pair_scale = lambda1 * 2 * (1 - ansatz.slope) * ansatz.scale * torch.where(m < 0, -1.0, 1.0)
    return 1.5 * m.abs(), torch.as_tensor(pair_scale, dtype=v.dtype), column


def mask_and_shift(score: Tensor, adjacency: Tensor, rows: slice, scratch: Tensor) -> None:
    """Shift the largest score over N*_i to zero, and make the scores of all other pairs negligible."""
    scratch.copy_(adjacency[rows]).sub_(1)
    scratch.diagonal(rows.start).zero_()
    score.add_(scratch, alpha=_ABSENT)
    score.sub_(score.amax(dim=1, keepdim=True)).clamp_(min=_SMALLEST)
