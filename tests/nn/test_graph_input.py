"""Every way to give a graph gives the same result."""

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.utils import coalesce, remove_self_loops, to_edge_index

from graphgym_lcat.kernels.cache import MAX_GRAPHS
from graphgym_lcat.nn import Graph, LCATConv
from graphgym_lcat.nn.graph_input import _EDGES


@pytest.fixture
def simple_edges(edge_index):
    return coalesce(remove_self_loops(edge_index)[0], num_nodes=12)


def sparse(edges, layout):
    adj = torch.sparse_coo_tensor(edges.flip(0), torch.ones(edges.size(1), dtype=torch.double), (12, 12))
    return {"coo": adj, "csr": adj.to_sparse_csr(), "csc": adj.to_sparse_csc()}[layout]


@pytest.fixture(params=["gat", "gatv2"])
def conv(request):
    return LCATConv(5, 3, heads=2, score=request.param).double()


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_torch_sparse_equals_edge_index(conv, layout, x, simple_edges):
    adj_t = sparse(simple_edges, layout)
    torch.testing.assert_close(conv(x, adj_t), conv(x, simple_edges))
    torch.testing.assert_close(conv(x, adj_t), conv(x, simple_edges))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_torch_sparse_returns_attention_as_a_matrix(conv, layout, x, simple_edges):
    _, (edges, expected) = conv(x, simple_edges, return_attention_weights=True)
    _, (adj, alpha) = conv(x, sparse(simple_edges, layout), return_attention_weights=True)
    assert adj.layout == {"coo": torch.sparse_coo, "csr": torch.sparse_csr, "csc": torch.sparse_csc}[layout]
    index, values = to_edge_index(adj)
    dense = torch.zeros(12, 12, 2, dtype=torch.double).index_put((index[0], index[1]), values)
    expected_dense = torch.zeros(12, 12, 2, dtype=torch.double).index_put((edges[1], edges[0]), expected)
    torch.testing.assert_close(dense, expected_dense)
    torch.testing.assert_close(values, alpha)


def test_values_of_a_sparse_matrix_are_edge_features(x, simple_edges):
    conv = LCATConv(5, 3, edge_dim=1).double()
    weights = torch.rand(simple_edges.size(1), dtype=torch.double)
    adj_t = torch.sparse_coo_tensor(simple_edges.flip(0), weights, (12, 12)).to_sparse_csr()
    torch.testing.assert_close(conv(x, adj_t), conv(x, simple_edges, weights))


def test_edge_index_class_equals_tensor(conv, x, edge_index):
    sorted_edges = EdgeIndex(edge_index, sparse_size=(12, 12)).sort_by("col")[0]
    torch.testing.assert_close(conv(x, sorted_edges), conv(x, edge_index))
    torch.testing.assert_close(conv(x, EdgeIndex(edge_index)), conv(x, edge_index))


def test_edge_index_class_changed_in_place(conv, x, edge_index):
    edges = EdgeIndex(edge_index % 11)
    conv(x, edges)
    edges.add_(1)
    torch.testing.assert_close(conv(x, edges), conv(x, edge_index % 11 + 1))


def test_prebuilt_graph_equals_edge_index(conv, x, edge_index):
    torch.testing.assert_close(conv(x, Graph.from_edge_index(edge_index, 12)), conv(x, edge_index))


def test_prebuilt_graph_must_match_the_layer(x, edge_index):
    graph = Graph.from_edge_index(edge_index, 12, add_self_loops=False)
    with pytest.raises(ValueError, match="add_self_loops=False, but the layer has add_self_loops=True"):
        LCATConv(5, 3).double()(x, graph)
    pair = Graph.from_edge_index(edge_index, (12, 12), add_self_loops=False)
    with pytest.raises(ValueError, match="shared_nodes=False, but `x` is one set of nodes"):
        LCATConv(5, 3, add_self_loops=False).double()(x, pair)


def test_edge_index_of_32_bits(conv, x, edge_index):
    torch.testing.assert_close(conv(x, edge_index.int()), conv(x, edge_index))


def test_sparse_tensor_of_torch_sparse(conv, x, simple_edges):
    torch_sparse = pytest.importorskip("torch_sparse", reason="torch-sparse is not installed")
    adj_t = torch_sparse.SparseTensor.from_edge_index(simple_edges, sparse_sizes=(12, 12)).t()
    torch.testing.assert_close(conv(x, adj_t), conv(x, simple_edges))
    _, adj = conv(x, adj_t, return_attention_weights=True)
    assert adj.sizes() == [12, 12, 2]


def test_matrices_that_stay_alive_keep_a_bounded_number_of_edge_lists(x, simple_edges):
    conv = LCATConv(5, 3).double()
    alive = [sparse(simple_edges, "csr") for _ in range(MAX_GRAPHS + 8)]
    for adj in alive:
        conv(x, adj)
    assert len(_EDGES) == MAX_GRAPHS
    torch.testing.assert_close(conv(x, alive[0]), conv(x, simple_edges))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_a_matrix_of_the_wrong_size_is_refused(layout, x, simple_edges):
    conv = LCATConv(5, 3).double()
    with pytest.raises(ValueError, match="declares 12 destination nodes, but `x` has 11"):
        conv((x, x[:11]), sparse(simple_edges, layout))
    with pytest.raises(ValueError, match="declares 12 source nodes, but `x` has 11"):
        conv(x[:11], sparse(simple_edges, layout))
    with pytest.raises(ValueError, match="flow='target_to_source'` needs an `edge_index`"):
        LCATConv(5, 3, flow="target_to_source").double()(x, sparse(simple_edges, layout))


def test_an_edge_index_of_the_wrong_size_is_refused(x, edge_index):
    with pytest.raises(ValueError, match="declares 12 source nodes, but `x` has 11"):
        LCATConv(5, 3).double()(x[:11], EdgeIndex(edge_index, sparse_size=(12, 12)))


def test_a_prebuilt_graph_says_how_many_destinations_have_no_features(x, edge_index):
    graph = Graph.from_edge_index(edge_index, (12, 13))
    assert LCATConv(5, 3).double()((x, None), graph).shape == (13, 3)
