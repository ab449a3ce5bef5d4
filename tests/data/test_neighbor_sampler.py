"""What neighbour sampling draws: true edges, without duplicates, the right number of them, and uniformly."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampled_graphs import hetero_graph, random_graph
from scipy import stats
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput

from graphgym_lcat.data import NeighborSampler

PARTS = ("node", "row", "col", "edge", "num_sampled_nodes", "num_sampled_edges")


def sample(data, sizes, seeds, kind=None, **options):
    return NeighborSampler(data, sizes, **options).sample_from_nodes(NodeSamplerInput(None, seeds, input_type=kind))


def same(a, b):
    return all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y
        for x, y in ((getattr(a, p), getattr(b, p)) for p in PARTS)
    )


GRAPHS = st.tuples(st.integers(1, 40), st.integers(0, 400), st.integers(0, 10_000))
SIZES = st.lists(st.integers(-1, 9), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(GRAPHS, SIZES, st.integers(1, 10), st.booleans())
def test_a_sample_holds_true_edges_once_and_as_many_as_asked(graph, sizes, batch, native):
    data = random_graph(*graph)
    seeds = torch.randperm(data.num_nodes)[:batch]
    out = sample(data, sizes, seeds, native=native)
    assert torch.equal(out.node[: seeds.numel()], seeds)
    assert out.node.unique().numel() == out.node.numel() == sum(out.num_sampled_nodes)
    assert out.edge.unique().numel() == out.edge.numel() == sum(out.num_sampled_edges)
    assert torch.equal(out.node[torch.stack([out.row, out.col])], data.edge_index[:, out.edge])
    degree = torch.bincount(data.edge_index[1], minlength=data.num_nodes)
    hops = torch.split(out.node, out.num_sampled_nodes)
    expected = torch.zeros(out.node.numel(), dtype=torch.long)
    begin = 0
    for size, nodes in zip(sizes, hops, strict=False):
        expected[begin : begin + nodes.numel()] = degree[nodes] if size < 0 else degree[nodes].clamp(max=size)
        begin += nodes.numel()
    assert torch.equal(torch.bincount(out.col, minlength=out.node.numel()), expected)
    assert set(out.node[seeds.numel() :].tolist()) <= set(out.node[out.row].tolist())


@settings(max_examples=30, deadline=None)
@given(GRAPHS, SIZES, st.integers(-(2**63), 2**63 - 1))
def test_torch_and_any_number_of_threads_draw_what_c_draws(graph, sizes, seed):
    data = random_graph(*graph)
    seeds = torch.randperm(data.num_nodes)[:7]
    first = sample(data, sizes, seeds, seed=seed, threads=1)
    for options in ({"native": False}, {"threads": 2}, {"threads": 4}):
        assert same(first, sample(data, sizes, seeds, seed=seed, **options))


def test_threads_share_a_large_batch_and_change_nothing():
    data = random_graph(20_000, 400_000, 0)
    seeds = torch.arange(3_000)
    first = sample(data, [15, 10], seeds, threads=1)
    assert same(first, sample(data, [15, 10], seeds, threads=2))
    assert same(first, sample(data, [15, 10], seeds, threads=4))
    assert same(first, sample(data, [15, 10], seeds, native=False))


@pytest.mark.parametrize(("degree", "size"), [(10, 1), (10, 3), (10, 9), (200, 5)])
def test_every_set_of_neighbours_is_equally_likely(degree, size):
    """χ² of single neighbours and of pairs, over many nodes and seeds; the hash makes the outcome the same everywhere."""
    nodes, rounds = 400, 50
    source = torch.arange(degree).repeat(nodes)
    target = torch.arange(nodes).repeat_interleave(degree)
    sampler = NeighborSampler(Data(edge_index=torch.stack([source, target]), num_nodes=max(nodes, degree)), [size])
    single, pairs = np.zeros(degree), np.zeros((degree, degree))
    for sampler.seed in range(rounds):
        out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(nodes)))
        drawn = out.node[out.row].view(nodes, size).numpy()
        np.add.at(single, drawn.ravel(), 1)
        for a in range(size):
            for b in range(size):
                np.add.at(pairs, (drawn[:, a], drawn[:, b]), a != b)
    assert single.sum() == nodes * rounds * size
    # Drawn without replacement, counts vary less than a multinomial's, by (degree - size) / (degree - 1).
    statistic = ((single - single.mean()) ** 2 / single.mean()).sum() * (degree - 1) / (degree - size)
    assert 0.001 < stats.chi2.sf(statistic, degree - 1) < 0.999
    if 1 < size < degree - 1:
        upper = pairs[np.triu_indices(degree, 1)]
        assert stats.chisquare(upper).pvalue > 0.001


def test_neighbouring_nodes_epochs_and_seeds_draw_independently():
    degree, nodes = 64, 2_000
    source, target = torch.arange(degree).repeat(nodes), torch.arange(nodes).repeat_interleave(degree)
    data = Data(edge_index=torch.stack([source, target]), num_nodes=nodes)
    sampler = NeighborSampler(data, [1])

    def drawn(seed, epoch):
        sampler.seed, sampler.epoch = seed, epoch
        out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(nodes)))
        return out.node[out.row]

    first = drawn(0, 0)
    for other in (drawn(0, 1), drawn(1, 0), first.roll(1)):
        assert int((first == other).sum()) == pytest.approx(nodes / degree, abs=5 * (nodes / degree) ** 0.5)
    assert torch.equal(first, drawn(0, 0))


@pytest.mark.parametrize("native", [True, False])
def test_a_heterogeneous_sample_holds_true_edges_of_every_relation(native):
    data = hetero_graph()
    seeds = torch.tensor([5, 0, 17])
    sizes = {relation: [3, 2] for relation in data.edge_types}
    sizes["field", "rev_topic", "paper"] = [-1, 0]
    out = sample(data, sizes, seeds, "paper", native=native)
    assert torch.equal(out.node["paper"][:3], seeds)
    for relation in data.edge_types:
        source, _, target = relation
        ends = torch.stack([out.node[source][out.row[relation]], out.node[target][out.col[relation]]])
        assert torch.equal(ends, data[relation].edge_index[:, out.edge[relation]])
        assert out.edge[relation].unique().numel() == out.edge[relation].numel()
        degree = torch.bincount(data[relation].edge_index[1], minlength=data[target].num_nodes)
        hops = torch.split(out.node[target], out.num_sampled_nodes[target])
        for hop, size in enumerate(sizes[relation]):
            expected = degree[hops[hop]] if size < 0 else degree[hops[hop]].clamp(max=size)
            assert out.num_sampled_edges[relation][hop] == int(expected.sum())
    assert sum(out.num_sampled_nodes["field"]) == out.node["field"].unique().numel() == out.node["field"].numel()


def test_heterogeneous_samples_of_torch_are_those_of_c():
    data, seeds = hetero_graph(), torch.arange(10)
    native = sample(data, [4, 3, 2], seeds, "author", native=True)
    plain = sample(data, [4, 3, 2], seeds, "author", native=False)
    for part in PARTS:
        for key, value in getattr(native, part).items():
            other = getattr(plain, part)[key]
            assert torch.equal(value, other) if isinstance(value, torch.Tensor) else value == other


@pytest.mark.parametrize("workers", [0, 2])
def test_pyg_s_node_loader_takes_the_sampler_with_any_number_of_workers(workers):
    data = random_graph(50, 400, 3)
    data.x = torch.arange(50.0).view(-1, 1)
    loader = NodeLoader(data, NeighborSampler(data, [4, 4]), torch.arange(20), batch_size=8, num_workers=workers)
    batches = list(loader)
    assert [batch.batch_size for batch in batches] == [8, 8, 4]
    for batch in batches:
        assert torch.equal(batch.x.view(-1).long(), batch.n_id)
        assert torch.equal(data.edge_index[:, batch.e_id], batch.n_id[batch.edge_index])
    alone = sample(data, [4, 4], torch.arange(8, 16))
    assert torch.equal(batches[1].n_id, alone.node)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([], "one number per hop"),
        ([3, -2], "whole numbers, or -1 for all neighbours, got \\[3, -2\\]"),
        ([1.5], "whole numbers"),
        ({("", "", "to"): [1]}, "must have the relations"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        NeighborSampler(random_graph(5, 9, 0), sizes)


@pytest.mark.parametrize(
    ("seeds", "message"),
    [([0, 5], r"must lie in \[0, 4\] .* got 0 to 5"), ([-1], "got -1 to -1"), ([1, 2, 1], "must be distinct")],
)
def test_seeds_that_are_not_distinct_nodes_are_refused(seeds, message):
    sampler = NeighborSampler(random_graph(5, 9, 0), [2])
    with pytest.raises(ValueError, match=message):
        sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor(seeds)))
    sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([1])))  # it still works


@pytest.mark.parametrize("native", [True, False])
def test_edges_of_nodes_that_do_not_exist_are_refused(native):
    with pytest.raises(ValueError, match=r"sources in \[0, 4\]"):
        NeighborSampler(Data(edge_index=torch.tensor([[0], [5]]), num_nodes=5), [1], native=native)


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"seed": 2**63}, {"seed": -(2**63) - 1}])
def test_impossible_threads_and_seeds_are_refused(wrong):
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must .* got {next(iter(wrong.values()))}"):
        NeighborSampler(random_graph(5, 10, 0), [2], **wrong)


def test_the_last_spare_numbering_may_be_taken_by_another_thread():
    class Emptied(list):
        def __bool__(self):
            return True

    sampler = NeighborSampler(random_graph(5, 10, 0), [2])
    sampler._spare = Emptied()
    assert sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(2))).node[:2].tolist() == [0, 1]
