"""Pairs of sources and destinations, and the blocks that PyG's samplers give."""

import oracle
import pytest
import torch
from graphs import random_edges
from torch_geometric.nn import GATConv

from graphgym_lcat.nn import LCATConv, LCATGINConv

SOURCES, TARGETS = 10, 6


@pytest.fixture
def pair():
    generator = torch.Generator().manual_seed(4)
    return tuple(torch.randn(n, 5, generator=generator, dtype=torch.double) for n in (SOURCES, TARGETS))


@pytest.fixture
def edges():
    return random_edges(SOURCES, TARGETS, 25, seed=5)


@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("shared_nodes", [True, False])
def test_pair_equals_dense_oracle(score, shared_nodes, pair, edges):
    lambda1, lambda2 = 0.8, 0.6
    conv = LCATConv(
        (5, 5), 3, score=score, lambda1=lambda1, lambda2=lambda2, add_self_loops=shared_nodes, init="normal"
    ).double()
    counts = oracle.edge_counts(edges, SOURCES, TARGETS)
    attended = oracle.with_self_loops(counts) if shared_nodes else counts
    neighbors = oracle.without_self_loops(counts) if shared_nodes else counts
    key = pair[0] @ conv.lin_src.weight.t()
    query = oracle.convolved(pair[1] @ conv.lin_dst.weight.t(), key, neighbors, lambda2)
    key_hat = key.clone()
    if shared_nodes:
        key_hat[:TARGETS] = oracle.convolved(key[:TARGETS], key, neighbors, lambda2)
    if score == "gat":
        alpha = oracle.gat_alpha(query, key_hat, conv.att_dst[0, 0], conv.att_src[0, 0], 0.2)
    else:
        alpha = oracle.gatv2_alpha(query, key_hat, conv.att[0, 0], 0.2)
    expected = oracle.coefficients(lambda1 * alpha, attended) @ key
    torch.testing.assert_close(conv(pair, edges), expected + conv.bias)


@pytest.mark.parametrize("options", [{}, {"add_self_loops": False}])
def test_pair_at_lambdas_1_0_is_gat(options, pair, edges):
    gat = GATConv((5, 5), 3, heads=2, **options).double()
    conv = LCATConv((5, 5), 3, heads=2, lambda1=1, lambda2=0, **options).double()
    conv.load_state_dict(gat.state_dict())
    torch.testing.assert_close(conv(pair, edges), gat(pair, edges))
    torch.testing.assert_close(conv(pair, edges, size=(SOURCES, TARGETS)), gat(pair, edges))


@pytest.mark.parametrize("options", [{}, {"add_self_loops": False}])
def test_destinations_without_features_as_in_gat(options, pair, edges):
    gat = GATConv((5, 5), 3, heads=2, **options).double()
    conv = LCATConv((5, 5), 3, heads=2, lambda1=1, lambda2=0, **options).double()
    conv.load_state_dict(gat.state_dict())
    size = (SOURCES, TARGETS)
    torch.testing.assert_close(conv((pair[0], None), edges, size=size), gat((pair[0], None), edges, size=size))


def test_more_destinations_than_sources(pair, edges):
    conv = LCATConv((5, 5), 3, heads=2).double()
    assert conv(pair[::-1], edges.flip(0)).shape == (SOURCES, 6)


def test_block_whose_targets_come_first_equals_the_full_graph(pair, edges):
    """With λ2 = 0 a target needs nothing but its own in-edges."""
    x = pair[0]
    conv = LCATConv(5, 3, heads=2, lambda2=0).double()
    torch.testing.assert_close(conv((x, x[:TARGETS]), edges), conv(x, edges)[:TARGETS])


def test_pair_of_the_same_tensor_is_one_set_of_nodes(pair, edges):
    x = pair[0]
    conv = LCATConv(5, 3, heads=2).double()
    torch.testing.assert_close(conv((x, x), edges), conv(x, edges))
    torch.testing.assert_close(conv((x, x.clone()), edges), conv(x, edges))


def test_sampled_subgraph_convolves_what_was_sampled(pair):
    """Node 2 is on the border: its neighbour 3 was not sampled, so its convolved features are its own."""
    x = pair[0][:4]
    chain = torch.tensor([[1, 2, 3], [0, 1, 2]])
    conv = LCATConv(5, 3, lambda1=1, lambda2=1).double()
    block = conv(x[:3], chain[:, :2])
    full = conv(x, chain)
    torch.testing.assert_close(block[0], full[0])
    assert not torch.allclose(block[1], full[1])


def test_graph_objects_of_other_sizes_are_refused(pair, edges):
    from graphgym_lcat.nn import Graph

    conv = LCATConv(5, 3)
    graph = Graph.from_edge_index(edges, (SOURCES, TARGETS))
    with pytest.raises(ValueError, match="10 sources and 6 destinations, but `x` has 6 and 6"):
        conv(pair[1].float(), graph)


def test_small_integer_types_do_not_overflow_in_gin():
    generator = torch.Generator().manual_seed(0)
    pair = torch.randn(100, 5, generator=generator), torch.randn(90, 5, generator=generator)
    edges = torch.stack([torch.arange(10, 100), torch.arange(90)])
    conv = LCATGINConv(torch.nn.Linear(5, 5))
    torch.testing.assert_close(conv(pair, edges.to(torch.int8)), conv(pair, edges))
