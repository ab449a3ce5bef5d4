"""One point of the synthetic experiments: one model, one graph, one pair (q, ‖μ‖).

``run_point`` returns what the figures show: ``accuracy``; ``lambda1`` and ``lambda2``; ``C``; and ``gamma``, the mean attention of
three groups of pairs (receiver i, sender j), as in the appendix:

- ``same``: both in C₀ or both in C₁ (solid lines),
- ``opposite``: i in C₋₁ and j in C₁ (dashed lines),
- ``rest``: all others (dotted lines).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from graphgym_lcat.data.csbm import CSBM, sample_adjacency, sample_communities, sample_noise, sample_projection
from graphgym_lcat.nn.interpolation import Interpolation
from graphgym_lcat.synthetic.learned import PairwiseAttentionLoss
from graphgym_lcat.synthetic.models import Ansatz, attend, convolve, neighbour_sums, score_terms
from lcat_core.errors import DatasetError, unknown_name

#: λ1 and λ2 of each model; None if they are learned.
MODELS: dict[str, tuple[float | None, float | None]] = {
    "gcn": (0.0, 0.0),
    "gat": (1.0, 0.0),
    "cat": (1.0, 1.0),
    "lcat": (None, None),
}


@dataclass(frozen=True)
class _Graph:
    """A sampled graph and the sums that every model needs; ``members`` has one column for each of C₋₁, C₀, C₁."""

    adjacency: Tensor
    z: Tensor
    z_sums: Tensor
    degrees: Tensor
    members: Tensor
    member_sums: Tensor

    @property
    def targets(self) -> Tensor:
        return 1 - self.members[:, 1]


def run_point(
    model: str,
    *,
    n: int = 10_000,
    p: float = 0.5,
    q: float = 0.1,
    mu_norm: float = 0.1,
    sigma: float = 0.1,
    d: int | None = None,
    slope: float = 0.01,
    seed: int = 0,
    learned: bool = False,
    steps: int = 100,
    lr: float = 0.05,
    logit_gain: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Sample the graph of ``seed`` and evaluate ``model`` on it, after learning C (and λ) if ``learned``.

    All models with the same seed see the same graph, and all ‖μ‖ the same noise. ``d`` has no effect: the models depend on a node
    only through wᵀX, whose distribution does not depend on ``d``.

    Args:
        model: A key of ``MODELS``; ``lcat`` exists only as a learned model.
        slope: Slope of LeakyReLU. The paper's 1/5 for GAT contradicts its own proof, which needs less than 1/25.
        steps, lr: Steps and learning rate of Adam, if ``learned``.
        logit_gain: None trains on plain logits, as the paper does. A number k trains on k/‖μ‖ times the logits: if ‖μ‖ is small,
            plain logits stay so close to zero that the loss is almost linear in them, and C drifts until the larger class is
            predicted everywhere.
        progress: Called with (steps done, steps) after each step of learning.
    """
    if model not in MODELS:
        raise DatasetError(unknown_name("synthetic model", model, MODELS))
    if model == "lcat" and not learned:
        raise DatasetError("the synthetic model 'lcat' has no fixed parameters, so it needs learned = True")
    if not 0 <= slope < 1 or steps < 1 or lr <= 0 or (logit_gain is not None and logit_gain <= 0):
        raise DatasetError(
            "expected slope in [0, 1), steps of at least 1, lr and logit_gain above 0; "
            f"got {slope=}, {steps=}, {lr=}, {logit_gain=}"
        )
    parameters = CSBM(n, p, q, mu_norm, sigma, d)
    graph = _sample(parameters, seed)
    ansatz = Ansatz(slope, scale=7 / mu_norm)
    if learned:
        logit_scale = 1.0 if logit_gain is None else logit_gain / mu_norm
        c, lambda1, lambda2 = _learn(model, graph, ansatz, mu_norm, steps, lr, logit_scale, progress)
    else:
        c = {"gcn": 0.0, "gat": 1.0, "cat": (p - q) / (p + 2 * q) if p + 2 * q else 1.0}[model]
        lambda1, lambda2 = (0.0 if value is None else value for value in MODELS[model])  # none is learned here
    mean_z, gamma = _evaluate(graph, ansatz, c * mu_norm, lambda1, lambda2)
    predicted = (mean_z - c * mu_norm / 2 >= 0).to(mean_z.dtype)
    return {
        "accuracy": (predicted == graph.targets).double().mean().item(),
        "gamma": gamma,
        "C": c,
        "lambda1": lambda1,
        "lambda2": lambda2,
        "nodes": n,
        "edges": int(graph.degrees.double().sum().item()),
    }


def _sample(parameters: CSBM, seed: int) -> _Graph:
    z = sample_projection(parameters, seed)
    adjacency, members, member_sums, noise_sums = _sample_graph(parameters.n, parameters.p, parameters.q, seed)
    # z is ε ‖μ‖ + σ noise, so its sums over neighbours follow from theirs, without another pass over the pairs.
    mean_sums = (member_sums[:, 2] - member_sums[:, 0]) * parameters.mu_norm
    z_sums = mean_sums + parameters.sigma * noise_sums
    return _Graph(
        adjacency, z.float(), z_sums.float(), member_sums.sum(dim=1).float(), members.float(), member_sums.float()
    )


@lru_cache(maxsize=1)  # like the adjacency itself
def _sample_graph(n: int, p: float, q: float, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sample what does not depend on model, μ and σ: adjacency, members, and the sums of members and noise over neighbours."""
    adjacency = sample_adjacency(n, p, q, seed)
    members = (sample_communities(n, seed)[:, None] == torch.tensor([-1, 0, 1])).double()
    sums = neighbour_sums(torch.cat([members, sample_noise(n, seed)[:, None]], dim=1).float(), adjacency).double()
    return adjacency, members, sums[:, :3], sums[:, 3]


def _evaluate(
    graph: _Graph, ansatz: Ansatz, m: float, lambda1: float, lambda2: float
) -> tuple[Tensor, dict[str, float | None]]:
    """Return Σ γ_ij z_j for every node, and the mean γ of the three groups (None for a group without edges)."""
    if lambda1 == 0:
        mean_z = convolve(graph.z, graph.z_sums, graph.degrees)
        attention = (graph.members + graph.member_sums) / (1 + graph.degrees)[:, None]
    else:
        score_input = convolve(graph.z, graph.z_sums, graph.degrees, lambda2)
        values = torch.cat([graph.z[:, None], graph.members], dim=1)
        out = attend(score_input, values, graph.adjacency, m, ansatz, lambda1)
        mean_z, attention = out[:, 0], out[:, 1:]
    receivers = graph.members.double().t()
    total = receivers @ attention.double()
    edges = receivers @ (graph.members + graph.member_sums).double()
    same = torch.tensor([[0, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=torch.bool)
    opposite = torch.tensor([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=torch.bool)
    groups = {"same": same, "opposite": opposite, "rest": ~(same | opposite)}
    return mean_z, {
        name: (total[group].sum() / edges[group].sum()).item() if edges[group].sum() > 0 else None
        for name, group in groups.items()
    }


def _learn(
    model: str,
    graph: _Graph,
    ansatz: Ansatz,
    mu_norm: float,
    steps: int,
    lr: float,
    logit_scale: float,
    progress: Callable[[int, int], None] | None,
) -> tuple[float, float, float]:
    """Learn C, λ1 and λ2 with Adam on the binary cross-entropy of "ε ≠ 0" over all nodes."""
    c = torch.nn.Parameter(torch.tensor(1.0))
    first, second = ("learn" if value is None else value for value in MODELS[model])
    interpolation = Interpolation(first, second)
    optimizer = torch.optim.Adam([c, *interpolation.parameters()], lr=lr)
    for step in range(steps):
        lambda1, lambda2 = (value.squeeze() if isinstance(value, Tensor) else value for value in interpolation())
        m = c * mu_norm
        if model == "gcn":
            logits = logit_scale * (convolve(graph.z, graph.z_sums, graph.degrees) - m / 2)
            loss = binary_cross_entropy_with_logits(logits, graph.targets)
        else:
            score_input = convolve(graph.z, graph.z_sums, graph.degrees, lambda2)
            terms = score_terms(score_input, m, ansatz, lambda1)
            data = (graph.z, graph.targets, graph.adjacency, logit_scale)
            loss = PairwiseAttentionLoss.apply(score_input, *terms, m / 2, *data)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if progress is not None:
            progress(step + 1, steps)
    learned1, learned2 = interpolation.lambdas()
    assert isinstance(learned1, float) and isinstance(learned2, float)  # one pair for all heads
    return c.item(), learned1, learned2
