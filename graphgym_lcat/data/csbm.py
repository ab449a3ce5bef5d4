"""The contextual stochastic block model with three classes (paper, section 4).

Every node draws its community ε uniformly from {−1, 0, 1}. Its features are N(ε μ, σ² I) in d dimensions. Two nodes are joined
with probability p within a community and q between two communities. The task is to distinguish community 0 from the other two,
which no linear function of the features can do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lcat_core.errors import DatasetError

_ROWS = 256  # of the adjacency matrix, drawn at once


@dataclass(frozen=True)
class CSBM:
    """The parameters of the model; ``mu_norm`` is ‖μ‖, and ``d`` defaults to the paper's n / (5 ln² n)."""

    n: int = 1000
    p: float = 0.5
    q: float = 0.1
    mu_norm: float = 1.0
    sigma: float = 0.1
    d: int | None = None

    def __post_init__(self) -> None:
        expected = {
            "n of at least 3": self.n >= 3,
            "p in [0, 1]": 0 <= self.p <= 1,
            "q in [0, 1]": 0 <= self.q <= 1,
            "mu_norm above 0": 0 < self.mu_norm < math.inf,
            "sigma of at least 0": 0 <= self.sigma < math.inf,
            "d of at least 1": self.d is None or self.d >= 1,
        }
        wrong = [text for text, holds in expected.items() if not holds]
        if wrong:
            raise DatasetError(f"CSBM expects {', '.join(wrong)}; got {self}")

    @property
    def dimensions(self) -> int:
        return self.d if self.d is not None else max(1, int(self.n / (5 * math.log(self.n) ** 2)))


def _generator(seed: int, stream: int) -> np.random.Generator:
    """Return one of several independent streams, so that another μ or σ leaves the graph unchanged."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, stream])))


def sample_communities(n: int, seed: int) -> Tensor:
    """Draw ε of every node from {−1, 0, 1}."""
    return torch.from_numpy(_generator(seed, 0).integers(-1, 2, size=n))


@lru_cache(maxsize=1)  # several models, or several μ, use the same graph
def sample_adjacency(n: int, p: float, q: float, seed: int) -> Tensor:
    """Draw a symmetric 0/1 matrix (uint8, n × n) without self-loops: one Bernoulli draw per pair.

    The matrix is cached for the next call, so it must not be modified.
    """
    communities = sample_communities(n, seed).numpy()
    bits = _generator(seed, 1).bit_generator
    # A pair is joined when 32 random bits, as an integer, lie below its probability times 2³².
    thresholds = np.empty((3, n), dtype=np.uint64)
    for row, community in enumerate((-1, 0, 1)):
        thresholds[row] = np.where(communities == community, round(p * 2**32), round(q * 2**32))
    adjacency = np.zeros((n, n), dtype=np.uint8)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        height, width = stop - start, n - start
        words = bits.random_raw((height * width + 1) // 2)
        draws = words.view(np.uint32)[: height * width].reshape(height, width)
        joined = draws < thresholds[communities[start:stop] + 1, start:]
        joined[:, :height] = np.triu(joined[:, :height], k=1)
        joined[:, :height] |= joined[:, :height].T
        adjacency[start:stop, start:] = joined
        adjacency[stop:, start:stop] = joined[:, height:].T
    return torch.from_numpy(adjacency)


def sample_projection(parameters: CSBM, seed: int) -> Tensor:
    """Draw wᵀx of every node for w = μ / ‖μ‖, which is N(ε ‖μ‖, σ²) in any number of dimensions."""
    noise = sample_noise(parameters.n, seed)
    return sample_communities(parameters.n, seed) * parameters.mu_norm + parameters.sigma * noise


def sample_noise(n: int, seed: int) -> Tensor:
    """Draw the noise of the projection: one standard normal number per node."""
    return torch.from_numpy(_generator(seed, 2).standard_normal(n))


def csbm(
    n: int = 1000,
    p: float = 0.5,
    q: float = 0.1,
    mu_norm: float = 1.0,
    sigma: float = 0.1,
    d: int | None = None,
    seed: int = 0,
) -> Data:
    """Draw a sample as a PyG graph; ``y`` is 0 for community 0 and 1 for the others, ``community`` is ε + 1.

    μ points along the first axis. The edges are those of ``sample_adjacency``, and the first feature is ``sample_projection``,
    for the same parameters and seed.
    """
    parameters = CSBM(n, p, q, mu_norm, sigma, d)
    communities = sample_communities(n, seed)
    others = sigma * _generator(seed, 3).standard_normal((n, parameters.dimensions - 1))
    x = torch.cat([sample_projection(parameters, seed)[:, None], torch.from_numpy(others)], dim=1)
    edge_index = sample_adjacency(n, p, q, seed).nonzero().t().contiguous()
    return Data(x=x.float(), edge_index=edge_index, y=(communities != 0).long(), community=communities + 1)
