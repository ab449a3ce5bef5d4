"""Noise on features and edges."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.utils import is_undirected

from graphgym_lcat.data.block_model import block_model
from graphgym_lcat.data.features import sparse_features
from graphgym_lcat.data.noise import disturb, noisy_features, with_fake_edges
from lcat_core.errors import DatasetError


@pytest.fixture(scope="module")
def graph():
    data = block_model(num_nodes=300, avg_degree=8)
    loops = torch.tensor([[3, 7], [3, 7]])
    data.edge_index = torch.cat([data.edge_index, loops], dim=1)
    return data


def pairs(edge_index):
    return {tuple(sorted(edge)) for edge in edge_index.t().tolist() if edge[0] != edge[1]}


def test_levels_of_zero_leave_the_same_tensors(graph):
    same = disturb(graph, features=0.0, edges=0.0, seed=5)
    assert same.x is graph.x and same.edge_index is graph.edge_index and same is not graph


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 2.0])
def test_exactly_the_asked_number_of_pairs_is_added_and_none_was_an_edge(graph, p):
    edge_index = with_fake_edges(graph.edge_index, 300, p, seed=1)
    added = edge_index[:, graph.edge_index.size(1) :]
    true = pairs(graph.edge_index)
    assert added.size(1) == 2 * round(p * len(true)) == 2 * len(pairs(added))
    assert not pairs(added) & true
    assert (added[0] != added[1]).all()
    assert is_undirected(added)


def test_the_true_edges_stay_in_their_order(graph):
    edge_index = with_fake_edges(graph.edge_index, 300, 0.3)
    assert torch.equal(edge_index[:, : graph.edge_index.size(1)], graph.edge_index)


def test_the_same_seed_gives_the_same_noise_and_another_seed_another(graph):
    first, again, other = (disturb(graph, features=0.5, edges=0.5, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.x, again.x) and torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.x, other.x) and pairs(first.edge_index) != pairs(other.edge_index)


def test_a_higher_level_contains_the_fake_edges_of_a_lower_one(graph):
    low, high = (pairs(with_fake_edges(graph.edge_index, 300, p)) for p in (0.2, 0.5))
    assert low < high


def test_noise_does_not_touch_the_global_random_state(graph):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    disturb(graph, features=1.0, edges=0.5)
    assert torch.equal(torch.rand(3), expected)


def test_feature_noise_is_standard_normal_times_sigma(graph):
    noise = noisy_features(graph.x, 0.25, seed=3) - graph.x
    assert noise.mean().item() == pytest.approx(0, abs=0.01)
    assert noise.std().item() == pytest.approx(0.25, rel=0.02)
    twice = noisy_features(graph.x, 0.5, seed=3) - graph.x
    torch.testing.assert_close(twice, 2 * noise, atol=1e-6, rtol=1e-4)


def test_sparse_features_become_dense_and_equal_those_of_the_dense_matrix():
    x = (torch.arange(600).view(30, 20) % 17 == 0).float()
    sparse = sparse_features(x)
    assert sparse.layout == torch.sparse_csr
    torch.testing.assert_close(noisy_features(sparse, 0.5), noisy_features(x, 0.5))


def test_a_complete_graph_has_no_room_for_fake_edges():
    complete = (1 - torch.eye(5)).nonzero().t()
    with pytest.raises(DatasetError, match=r"needs 2 fake edges, but only 0 pairs"):
        with_fake_edges(complete, 5, 0.2)


def test_all_missing_pairs_can_be_filled():
    path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    assert pairs(with_fake_edges(path, 4, 1.0)) == {(a, b) for a in range(4) for b in range(a + 1, 4)}


@pytest.mark.parametrize("level", [-0.1, float("nan"), float("inf")])
def test_a_level_that_cannot_be_is_refused(graph, level):
    with pytest.raises(DatasetError, match="expected a number of at least 0"):
        disturb(graph, features=level)


def test_edges_with_features_are_refused(graph):
    data = graph.__copy__()
    data.edge_attr = torch.ones(graph.num_edges, 1)
    with pytest.raises(DatasetError, match="fake edges have no features"):
        disturb(data, edges=0.1)
