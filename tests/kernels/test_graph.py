import copy
import gc
import pickle
import resource
import weakref

import pytest
import torch

from graphgym_lcat.kernels import Graph, clear_graph_cache, find_graph
from graphgym_lcat.kernels.cache import _CACHE, GraphCache

EDGES = torch.tensor([[2, 0, 1, 1, 2, 0], [0, 1, 1, 0, 2, 2]])  # 1 → 1 and 2 → 2 are self-loops


def test_rows_hold_the_in_edges_of_each_destination():
    graph = Graph.from_edge_index(EDGES, 3)
    assert graph.sorted_edges.rowptr.tolist() == [0, 2, 3, 4]
    assert graph.sorted_edges.src.tolist() == [2, 1, 0, 0]
    assert graph.sorted_edges.edge_id.tolist() == [0, 3, 1, 5]
    assert (graph.self_loops, graph.sorted_edges.neighbors.tolist()) == (3, [2, 1, 1])


def test_columns_hold_the_out_edges_of_each_source():
    graph = Graph.from_edge_index(EDGES, 3)
    assert graph.sorted_edges.colptr.tolist() == [0, 2, 3, 4]
    assert graph.sorted_edges.dst_by_src.tolist() == [1, 2, 0, 0]
    assert torch.equal(graph.sorted_edges.dst[graph.sorted_edges.slot_by_src], graph.sorted_edges.dst_by_src)


def test_self_loops_are_kept_on_request_but_are_not_neighbours():
    graph = Graph.from_edge_index(EDGES, 3, add_self_loops=False)
    assert graph.num_edges == 6
    assert graph.sorted_edges.explicit_loops.tolist() == [0, 1, 1]
    assert graph.sorted_edges.neighbors.tolist() == [2, 1, 1]


def test_two_sets_of_nodes_have_no_self_loops():
    graph = Graph.from_edge_index(EDGES, (3, 3), add_self_loops=False)
    assert graph.sorted_edges.explicit_loops is None
    assert graph.sorted_edges.neighbors.tolist() == [2, 2, 2]


def test_moving_a_graph_keeps_it():
    graph = Graph.from_edge_index(EDGES, 3)
    moved = graph.to("cpu")
    assert repr(moved) == repr(graph) == "Graph(num_src=3, num_dst=3, num_edges=4, self_loops=3)"


@pytest.fixture
def edge_index():
    clear_graph_cache()
    return EDGES.clone()


def find(edge_index, add_self_loops=True):
    return find_graph(edge_index, 3, 3, add_self_loops, True)


def test_the_same_tensor_finds_its_layout_again(edge_index):
    assert find(edge_index) is find(edge_index)
    assert find(edge_index) is not find(edge_index, add_self_loops=False)
    assert find(edge_index) is not find(edge_index.clone())


def test_a_change_in_place_is_seen(edge_index):
    before = find(edge_index)
    edge_index[0, 0] = 1
    after = find(edge_index)
    assert after is not before
    assert after.sorted_edges.src.tolist() == [1, 1, 0, 0]


def test_a_change_through_a_view_is_seen(edge_index):
    before = find(edge_index)
    edge_index[0].copy_(edge_index[0].flip(0))
    assert find(edge_index) is not before


def test_a_change_of_shape_is_seen(edge_index):
    before = find(edge_index)
    edge_index.resize_(2, 2)
    assert find(edge_index) is not before


def test_a_layout_dies_with_its_tensor():
    edge_index = EDGES.clone()
    dead = weakref.ref(find(edge_index))
    del edge_index
    gc.collect()
    assert dead() is None


def test_the_cache_is_bounded():
    cache = GraphCache(max_graphs=2)
    tensors = [EDGES.clone() for _ in range(3)]
    graphs = [cache.find(t, 3, 3, True, True) for t in tensors]
    assert len(cache) == 2
    assert cache.find(tensors[2], 3, 3, True, True) is graphs[2]
    assert cache.find(tensors[0], 3, 3, True, True) is not graphs[0]


def test_inference_tensors_are_not_cached():
    cache = GraphCache()
    with torch.inference_mode():
        edge_index = EDGES.clone()
        cache.find(edge_index, 3, 3, True, True)
    assert len(cache) == 0


@pytest.mark.parametrize(
    ("edges", "symmetric"),
    [
        ([[0, 1, 1, 2], [1, 0, 2, 1]], True),
        ([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]], True),  # a self-loop is its own way back
        ([[0, 1, 2], [1, 2, 0]], False),  # equal degrees, but a cycle
        ([[0, 0, 1], [1, 1, 0]], False),  # one of the two copies has no way back
        ([[], []], True),
    ],
)
def test_the_compact_layout_knows_whether_edges_go_both_ways(edges, symmetric):
    edge_index = torch.tensor(edges, dtype=torch.long)
    assert Graph.from_edge_index(edge_index, 3).compact.symmetric is symmetric


def test_the_compact_layout_holds_the_edges_by_both_ends():
    layout = Graph.from_edge_index(EDGES, 3, add_self_loops=False).compact
    assert (layout.rowptr.tolist(), layout.col.tolist()) == ([0, 2, 4, 6], [1, 2, 0, 1, 0, 2])
    assert layout.colptr.tolist() == [0, 2, 4, 6]
    assert [sorted(layout.row[i : i + 2].tolist()) for i in (0, 2, 4)] == [[1, 2], [0, 1], [0, 2]]
    assert layout.loops.tolist() == [0, 1, 1]


def test_a_graph_whose_edges_were_changed_is_not_sorted(edge_index):
    graph = Graph.from_edge_index(edge_index, 3)
    edge_index[0, 0] = 1
    with pytest.raises(RuntimeError, match="was changed after this Graph was created"):
        _ = graph.compact


@pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_a_copy_of_a_graph_has_a_layout_of_its_own(duplicate, edge_index):
    edge_index[0, 0] = 2  # counted by torch, for the original only
    graph = Graph.from_edge_index(edge_index, 3)
    layout = graph.compact
    again = duplicate(graph)
    assert again.compact is not layout
    assert again.compact.by_row[1] == again.compact.rowptr.data_ptr()
    assert again.compact.col.tolist() == layout.col.tolist()


def test_a_layout_made_in_inference_mode_serves_training(edge_index):
    weight = torch.ones(3, requires_grad=True)
    graph = Graph.from_edge_index(edge_index, 3)
    with torch.inference_mode():
        assert graph.sorted_edges.src.tolist() == [2, 1, 0, 0]
    weight.index_select(0, graph.sorted_edges.src).sum().backward()
    assert weight.grad.tolist() == [2, 1, 1]


def test_ten_thousand_graphs_neither_fill_the_cache_nor_leak():
    """Batches die with their tensors: after 10,000 of them, there are as many layouts and bytes as after a few."""

    def count_tensors():
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    def train(steps):
        for _ in range(steps):
            assert find_graph(torch.randint(40, (2, 100)), 40, 40, True, True).compact.num_edges <= 100

    clear_graph_cache()
    train(100)
    gc.collect()
    tensors = count_tensors()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    train(10_000)
    gc.collect()
    assert len(_CACHE) == 0
    assert count_tensors() <= tensors + 2
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 20_000
    )  # KiB; the layouts of all graphs take 40 MB
