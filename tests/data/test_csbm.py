from __future__ import annotations

import hashlib
import math

import pytest
import torch

from graphgym_lcat.data.csbm import CSBM, csbm, sample_adjacency, sample_communities, sample_projection
from graphgym_lcat.data.datasets import load_dataset
from lcat_core.errors import DatasetError


def densities(n: int, p: float, q: float, seed: int) -> tuple[float, float, int, int]:
    """Share of joined pairs inside and between communities, and the number of such pairs."""
    communities = sample_communities(n, seed)
    inside = (communities[:, None] == communities).triu(1)
    between = (communities[:, None] != communities).triu(1)
    adjacency = sample_adjacency(n, p, q, seed).bool()
    counts = [int(pairs.sum()) for pairs in (inside, between)]
    return (*(float(adjacency[pairs].float().mean()) for pairs in (inside, between)), *counts)


@pytest.mark.parametrize("seed", range(3))
def test_edges_have_the_probabilities_asked_for(seed):
    p, q = 0.5, 0.13
    inside, between, inside_pairs, between_pairs = densities(900, p, q, seed)
    assert abs(inside - p) < 5 * math.sqrt(p * (1 - p) / inside_pairs)
    assert abs(between - q) < 5 * math.sqrt(q * (1 - q) / between_pairs)


@pytest.mark.parametrize(("p", "q"), [(1.0, 0.0), (0.0, 1.0)])
def test_probabilities_zero_and_one_are_exact(p, q):
    assert densities(300, p, q, 0)[:2] == (p, q)


def test_degrees_vary_as_independent_edges_do():
    degrees = sample_adjacency(1500, 0.3, 0.3, 0).sum(dim=1).double()
    assert degrees.var().item() == pytest.approx(1499 * 0.3 * 0.7, rel=0.15)


@pytest.mark.parametrize("n", [3, 255, 256, 257, 600])
def test_the_adjacency_is_symmetric_without_self_loops(n):
    adjacency = sample_adjacency(n, 0.5, 0.2, 1)
    assert torch.equal(adjacency, adjacency.t())
    assert adjacency.diagonal().sum() == 0


def test_communities_are_equally_likely():
    counts = (sample_communities(30_000, 0) + 1).bincount()
    assert counts.tolist() == pytest.approx([10_000] * 3, rel=0.03)


def test_the_projection_has_mean_and_deviation_of_its_community():
    parameters = CSBM(n=30_000, mu_norm=2.0, sigma=0.3)
    z, communities = sample_projection(parameters, 0), sample_communities(30_000, 0)
    for community in (-1, 0, 1):
        own = z[communities == community]
        assert own.mean().item() == pytest.approx(2.0 * community, abs=0.02)
        assert own.std().item() == pytest.approx(0.3, rel=0.03)


def test_a_seed_gives_the_same_sample_for_ever():
    digest = hashlib.sha256(sample_adjacency(300, 0.5, 0.1, 7).numpy().tobytes()).hexdigest()
    assert digest[:16] == "da1941d0b41b7c75"


def test_changing_the_features_keeps_the_graph():
    near, far = csbm(n=100, mu_norm=0.1), csbm(n=100, mu_norm=9.0)
    assert torch.equal(near.edge_index, far.edge_index)
    assert not torch.equal(near.x, far.x)


def test_as_a_graph_it_has_the_sampled_edges_and_features():
    data = load_dataset("csbm", n=200, q=0.2, d=5, mu_norm=3.0, seed=2)
    assert torch.equal(data.edge_index, sample_adjacency(200, 0.5, 0.2, 2).nonzero().t())
    assert data.x.shape == (200, 5)
    assert torch.equal(data.x[:, 0], sample_projection(CSBM(200, q=0.2, mu_norm=3.0), 2).float())
    assert data.x[:, 1:].mean().abs() < 0.02
    assert torch.equal(data.y, (sample_communities(200, 2) != 0).long())
    assert data.is_undirected()


def test_the_paper_has_23_dimensions():
    assert CSBM(n=10_000).dimensions == 23


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 2}, "n of at least 3"),
        ({"p": 1.5}, r"p in \[0, 1\]"),
        ({"q": -0.1}, r"q in \[0, 1\]"),
        ({"mu_norm": 0}, "mu_norm above 0"),
        ({"sigma": -1}, "sigma of at least 0"),
        ({"d": 0}, "d of at least 1"),
    ],
)
def test_bad_parameters_are_named(wrong, message):
    with pytest.raises(DatasetError, match=f"CSBM expects {message}"):
        csbm(**wrong)
