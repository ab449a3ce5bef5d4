from __future__ import annotations

import pytest
import torch
from torch_geometric.utils import homophily as edge_homophily

from graphgym_lcat.data.block_model import block_model
from lcat_core.errors import DatasetError


@pytest.mark.parametrize("avg_degree", [0, 2, 10, 50, 150])
@pytest.mark.parametrize("homophily", [0.3, 0.6])
def test_degree_and_homophily_come_out_as_asked(avg_degree, homophily):
    data = block_model(400, avg_degree=avg_degree, homophily=homophily, num_classes=2)
    assert data.num_edges == 400 * avg_degree
    if avg_degree:
        assert edge_homophily(data.edge_index, data.y) == pytest.approx(homophily, abs=1 / data.num_edges)


def test_the_graph_is_simple_and_undirected():
    data = block_model(avg_degree=30)
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert data.is_coalesced()


def test_classes_have_equal_sizes():
    assert block_model(1000, num_classes=5).y.bincount().tolist() == [200] * 5


def test_class_means_have_the_length_of_the_signal():
    data = block_model(20000, num_features=4, signal=2.5, avg_degree=0)
    means = torch.stack([data.x[data.y == label].mean(dim=0) for label in range(5)])
    assert means.norm(dim=1).tolist() == pytest.approx([2.5] * 5, abs=0.1)
    assert (data.x - means[data.y]).std().item() == pytest.approx(1.0, abs=0.02)


def test_equal_seeds_give_equal_graphs_and_others_do_not():
    first, same, other = block_model(seed=4), block_model(seed=4), block_model(seed=5)
    assert torch.equal(first.x, same.x)
    assert torch.equal(first.edge_index, same.edge_index)
    assert not torch.equal(first.edge_index, other.edge_index)


def test_pairs_are_drawn_uniformly():
    counts = torch.zeros(6, 6)
    for seed in range(300):
        data = block_model(6, num_classes=2, avg_degree=1, homophily=1 / 3, seed=seed)
        counts[data.edge_index[0], data.edge_index[1]] += 1
    off_diagonal = counts[~torch.eye(6, dtype=torch.bool)]
    assert off_diagonal.min() > 0.6 * off_diagonal.mean()
    assert off_diagonal.max() < 1.5 * off_diagonal.mean()


def test_more_edges_than_pairs_are_refused():
    with pytest.raises(DatasetError, match="edges within classes, but 20 nodes have only"):
        block_model(20, num_classes=5, avg_degree=10, homophily=0.9)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"homophily": 1.5}, r"homophily in \[0, 1\]"),
        ({"num_classes": 1}, "num_classes of at least 2"),
        ({"avg_degree": -1}, "avg_degree of at least 0"),
        ({"num_nodes": 3}, "num_nodes of at least num_classes"),
    ],
)
def test_bad_parameters_are_refused(wrong, message):
    with pytest.raises(DatasetError, match=f"BlockModel expects {message}"):
        block_model(**wrong)
