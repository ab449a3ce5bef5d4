"""The torch path keeps its promises about memory, and about awkward numbers."""

import pytest
import torch
from largest_tensor import LargestTensor

from graphgym_lcat.kernels import torch_path
from graphgym_lcat.nn import LCATConv

NODES, EDGES, HEADS, CHANNELS = 50, 4000, 2, 16


@pytest.fixture
def graph_data():
    torch.manual_seed(0)
    return torch.randn(NODES, 8), torch.randint(NODES, (2, EDGES))


def test_gat_forward_allocates_no_tensor_of_edges_times_channels(graph_data):
    conv = LCATConv(8, CHANNELS, HEADS, backend="torch")
    conv(*graph_data)  # the layout is built once
    with LargestTensor() as largest:
        conv(*graph_data)
    assert largest.numel <= EDGES * HEADS


def test_gatv2_allocates_one_chunk_at_a_time(graph_data, monkeypatch):
    monkeypatch.setattr(torch_path, "CHUNK_NUMEL", 8192)
    conv = LCATConv(8, CHANNELS, HEADS, score="gatv2", backend="torch")
    conv(*graph_data)
    with LargestTensor() as largest:
        conv(*graph_data).sum().backward()
    assert largest.numel <= 8192
    assert EDGES * HEADS * CHANNELS > 10 * 8192


@pytest.mark.parametrize(
    ("free", "reserved", "chunk"),
    [
        (0, 0, torch_path.CHUNK_NUMEL),
        (160 << 22, 0, 1 << 22),
        (0, 160 << 22, 1 << 22),  # what torch's allocator keeps for itself
        (1 << 40, 0, torch_path.GPU_CHUNK_NUMEL),
    ],
)
def test_chunks_on_a_gpu_take_a_part_of_the_free_memory(free, reserved, chunk, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 1 << 40))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: reserved)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 0)
    assert torch_path.chunk_numel(torch.device("cuda")) == chunk
    assert torch_path.chunk_numel(torch.device("cpu")) == torch_path.CHUNK_NUMEL


@pytest.mark.parametrize("score", [-1e4, 1e4])
def test_large_scores_stay_finite(score, graph_data):
    x, edge_index = graph_data
    conv = LCATConv(8, CHANNELS, HEADS, lambda1=1, lambda2=0, backend="torch")
    with torch.no_grad():
        conv.att_src.mul_(score)
    out = conv(x.requires_grad_(), edge_index)
    out.sum().backward()
    assert torch.isfinite(out).all() and torch.isfinite(x.grad).all()


def test_softmax_of_a_row_of_minus_infinity_is_zero():
    from graphgym_lcat.kernels import Graph

    graph = Graph.from_edge_index(torch.tensor([[0, 1], [0, 0]]), (2, 1), add_self_loops=False)
    gamma, _ = torch_path.softmax(graph, torch.full((2, 1), -torch.inf), torch.empty(0, 1))
    assert gamma.tolist() == [[0.0], [0.0]]


def test_second_derivatives_exist():
    x = torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    conv = LCATConv(3, 2, backend="torch").double()
    assert torch.autograd.gradgradcheck(lambda x: conv(x, edge_index), x)
