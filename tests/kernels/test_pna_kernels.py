"""Statistics of messages (PNA) by the fused kernels, against a dense oracle, PyG's aggregators and the torch path."""

import pytest
import torch
from fused_cases import CHANNELS, HEADS, assert_all_same, graphs
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from largest_tensor import LargestTensor
from torch_geometric.nn.aggr import MultiAggregation
from torch_geometric.utils import softmax

from graphgym_lcat.kernels import Graph, adjacency, fused, pna, torch_path
from graphgym_lcat.kernels.backend import STATISTICS, EqualScore, GATScore, GATv2Score

TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10}
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


def random_graph(num_src, num_dst, edges, seed=0):
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(num_src, (edges,), generator=generator)
    dst = torch.randint(num_dst, (edges,), generator=generator)
    return Graph.from_edge_index(torch.stack([src, dst]), (num_src, num_dst), add_self_loops=False)


def random_inputs(graph, heads, channels, weighted, dtype, seed=0, whole=False):
    """Receiver, sender and, in the order of the edges, weights; with ``whole`` small whole numbers, which tie often."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(graph.num_dst, heads * channels), (graph.num_src, heads * channels)]
    if weighted:
        shapes.append((graph.edge_index.size(1), heads))
    tensors = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [(t.round() if whole else t).to(dtype).requires_grad_() for t in tensors]


def in_layout_order(graph, values):
    src, dst = graph.edge_index
    order = torch.argsort(src, stable=True)
    return values[order[torch.argsort(dst[order], stable=True)]]


def fused_statistics(graph, names, receiver, sender, weight=None):
    if weight is not None:
        weight = in_layout_order(graph, weight)
    return fused.message_statistics(graph, receiver, sender, names, weight)


def messages(graph, receiver, sender, weight=None):
    src, dst = graph.edge_index
    message = receiver[dst] + sender[src]
    if weight is None:
        return message
    heads = weight.size(1)
    return (message.unflatten(1, (heads, message.size(1) // heads)) * weight.unsqueeze(-1)).flatten(1)


def oracle(graph, names, *inputs):
    """The definitions, one node after the other."""
    all_messages = messages(graph, *inputs)
    rows = []
    for node in range(graph.num_dst):
        m = all_messages[graph.edge_index[1] == node]
        if not len(m):
            rows.append(all_messages.new_zeros(len(names) * all_messages.size(1)))
            continue
        variance = ((m - m.mean(dim=0)) ** 2).mean(dim=0)
        deviation = torch.where(variance > 1e-5, variance.clamp(min=1e-5).sqrt(), 0.0)
        values = {"sum": m.sum(dim=0), "mean": m.mean(dim=0), "min": m.min(dim=0)[0], "max": m.max(dim=0)[0]}
        values |= {"var": variance, "std": deviation}
        rows.append(torch.cat([values[name] for name in names]))
    return torch.stack(rows)


def pyg(graph, names, *inputs):
    aggregation = MultiAggregation(list(names))
    return aggregation(messages(graph, *inputs), graph.edge_index[1], dim_size=graph.num_dst, dim=0)


def value_and_gradients(function, graph, names, inputs):
    out = function(graph, names, *inputs)
    direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return out.detach(), *torch.autograd.grad(out, inputs, direction.to(out.dtype))


def compare(graph, names, inputs, expected_function, tolerance):
    exact = [t.detach().double().requires_grad_() for t in inputs]
    actual = value_and_gradients(fused_statistics, graph, names, inputs)
    assert_all_same(actual, value_and_gradients(expected_function, graph, names, exact), tolerance)


@every_dtype
@weighted_or_not
@pytest.mark.parametrize("names", [*((name,) for name in STATISTICS), STATISTICS, ("std", "max", "mean")])
def test_values_and_gradients_equal_the_dense_oracle(names, weighted, dtype):
    graph = random_graph(9, 12, 80)
    inputs = random_inputs(graph, 2, 8, weighted, dtype)
    compare(graph, names, inputs, oracle, TOLERANCE[dtype])


@weighted_or_not
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("channels", CHANNELS)
def test_any_number_of_heads_and_channels(heads, channels, weighted):
    graph = random_graph(7, 6, 40, seed=heads)
    inputs = random_inputs(graph, heads, channels, weighted, torch.float64)
    compare(graph, STATISTICS, inputs, pyg, 1e-10)


@every_dtype
@weighted_or_not
def test_ties_share_the_gradient_as_in_pyg(weighted, dtype):
    graph = random_graph(8, 5, 60)
    inputs = random_inputs(graph, 2, 20, weighted, dtype, whole=True)
    compare(graph, STATISTICS, inputs, pyg, 1e-5)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([1.0, 3.0, 2.0], [0.0, 1.0, 0.0]),
        ([3.0, 3.0, 2.0], [0.5, 0.5, 0.0]),
        ([0.0, -1.0, -2.0], [0.5, 0.0, 0.0]),  # torch shares with the 0 that the result was initialised with
        ([0.0, 0.0, -2.0], [1 / 3, 1 / 3, 0.0]),
    ],
)
def test_who_receives_the_gradient_of_a_maximum(sent, expected):
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [0, 0, 0]]), (3, 1), add_self_loops=False)
    sender = torch.tensor(sent)[:, None].requires_grad_()
    fused.message_statistics(graph, torch.zeros(1, 1), sender, ["max"]).sum().backward()
    torch.testing.assert_close(sender.grad[:, 0], torch.tensor(expected))
    lowest = (-sender.detach()).requires_grad_()
    fused.message_statistics(graph, torch.zeros(1, 1), lowest, ["min"]).sum().backward()
    torch.testing.assert_close(lowest.grad[:, 0], torch.tensor(expected))


@settings(deadline=None, max_examples=60)
@given(
    graphs(),
    st.sampled_from(HEADS),
    st.sampled_from(CHANNELS),
    st.integers(0, 10**6),
    st.sampled_from(["", "gat", "gatv2"]),
)
def test_equals_the_torch_path(graph, heads, channels, seed, kind):
    assume(not graph.add_self_loops)
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    width = heads * channels
    receiver, sender = draw(graph.num_dst, width), draw(graph.num_src, width)
    if kind == "gat":
        score = GATScore(draw(graph.num_dst, heads), draw(graph.num_src, heads), 0.2)
        inputs = [receiver, sender, score.query, score.key]
    elif kind == "gatv2":
        score = GATv2Score(draw(graph.num_dst, heads, 3), draw(graph.num_src, heads, 3), draw(heads, 3), 0.2)
        inputs = [receiver, sender, score.query, score.key, score.att]
    else:
        score, inputs = EqualScore(sender.detach().view(-1, heads, channels)), [receiver, sender]
    results = []
    for backend in (fused, torch_path):
        out = backend.statistics(graph, score, receiver, sender, STATISTICS)
        results.append((out.detach(), *torch.autograd.grad(out.square().sum(), inputs)))
    assert_all_same(*results, 1e-9)


@every_dtype
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("depth", [None, 5, 8, 24])
def test_attention_weights_equal_a_softmax(depth, heads, dtype):
    """Of GAT's scores (no depth: a slice of columns) and of GATv2's, over short rows and one of 3,000 edges."""
    graph = random_graph(9, 300, 7000)
    graph.edge_index[1, :3000] = 7
    graph = Graph.from_edge_index(graph.edge_index, (9, 300), add_self_loops=False)
    generator = torch.Generator().manual_seed(heads)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype)

    if depth is None:
        inputs = [draw(n, 2 * heads)[:, :heads].requires_grad_() for n in (300, 9)]
    else:
        inputs = [draw(*shape).requires_grad_() for shape in ((300, heads, depth), (9, heads, depth), (heads, depth))]
    exact = [t.detach().double().requires_grad_() for t in inputs]
    src, dst = graph.edge_index
    score = torch.nn.functional.leaky_relu(exact[0][dst] + exact[1][src], 0.2)
    if depth is not None:
        score = (score * exact[2]).sum(dim=-1)
    sizes = torch.bincount(dst, minlength=300)[dst]
    expected = in_layout_order(graph, softmax(score, dst, num_nodes=300) * sizes[:, None])
    direction = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    expected_grads = torch.autograd.grad(expected, exact, direction)
    actual = fused.attention_weights(graph, GATScore(*inputs, 0.2) if depth is None else GATv2Score(*inputs, 0.2))
    grads = torch.autograd.grad(actual, inputs, direction.to(dtype))
    assert_all_same((actual.detach(), *grads), (expected.detach(), *expected_grads), TOLERANCE[dtype] / 10)


@weighted_or_not
def test_gradients_by_finite_differences(weighted):
    graph = random_graph(5, 4, 12)
    inputs = random_inputs(graph, 2, 3, weighted, torch.float64, seed=3)
    names = ("mean", "min", "max", "std")
    assert torch.autograd.gradcheck(lambda *tensors: fused_statistics(graph, names, *tensors), inputs)


@weighted_or_not
def test_a_row_of_a_hundred_thousand_neighbours(weighted):
    count = 100_000
    edges = torch.stack([torch.arange(count), torch.zeros(count, dtype=torch.long)])
    graph = Graph.from_edge_index(edges, (count, 2), add_self_loops=False)
    inputs = random_inputs(graph, 1, 8, weighted, torch.float32)
    compare(graph, ("mean", "min", "max", "std"), inputs, pyg, 1e-5)


def test_small_deviations_of_large_messages_keep_their_digits():
    graph = random_graph(40, 3, 120)
    sender = (1000 + 0.01 * torch.randn(40, 8, generator=torch.Generator().manual_seed(0))).requires_grad_()
    receiver = torch.zeros(3, 8)
    actual = fused.message_statistics(graph, receiver, sender, ["std"])
    torch.testing.assert_close(
        actual, oracle(graph, ["std"], receiver.double(), sender.double()).float(), rtol=1e-3, atol=0
    )


@weighted_or_not
@pytest.mark.parametrize(("num_src", "num_dst", "edges"), [(0, 0, 0), (3, 2, 0), (0, 4, 0), (4, 0, 0), (1, 5, 1)])
def test_nodes_without_edges_give_zeros(num_src, num_dst, edges, weighted):
    graph = random_graph(max(num_src, 1), max(num_dst, 1), edges)
    graph = Graph.from_edge_index(graph.edge_index, (num_src, num_dst), add_self_loops=False)
    inputs = random_inputs(graph, 2, 4, weighted, torch.float32)
    out = fused_statistics(graph, STATISTICS, *inputs)
    out.sum().backward()
    isolated = torch.bincount(graph.edge_index[1], minlength=num_dst) == 0
    assert out.shape == (num_dst, 6 * 8)
    assert not out[isolated].any() and not inputs[0].grad[isolated].any()
    assert all(t.grad.shape == t.shape for t in inputs)


def test_nan_spreads_into_every_statistic_of_its_row_and_no_other():
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2, 1], [0, 0, 1, 1]]), (3, 2), add_self_loops=False)
    sender = torch.zeros(3, 8)
    sender[0, 3] = torch.nan
    out = fused.message_statistics(graph, torch.zeros(2, 8), sender, STATISTICS).view(2, 6, 8)
    assert out[0, :, 3].isnan().all()
    assert out.isnan().sum() == 6


@weighted_or_not
def test_no_gradient_needed_gives_the_same_values(weighted):
    graph = random_graph(9, 12, 80)
    inputs = random_inputs(graph, 2, 8, weighted, torch.float32)
    expected = fused_statistics(graph, STATISTICS, *inputs)
    with torch.no_grad():
        assert torch.equal(fused_statistics(graph, STATISTICS, *inputs), expected)


@pytest.mark.parametrize("depth", [None, 8])
def test_attention_weights_repeat_bit_for_bit_with_any_number_of_threads(depth, monkeypatch):
    monkeypatch.setattr("graphgym_lcat.kernels.threads.MIN_WORK_PER_THREAD", 1)
    graph = random_graph(500, 700, 9000)
    shapes = [(700, 4), (500, 4)] if depth is None else [(700, 4, depth), (500, 4, depth), (4, depth)]
    inputs = [torch.randn(shape, generator=torch.Generator().manual_seed(0)).requires_grad_() for shape in shapes]
    score = GATScore(*inputs, 0.2) if depth is None else GATv2Score(*inputs, 0.2)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 2):
            torch.set_num_threads(threads)
            out = fused.attention_weights(graph, score)
            results.append((out, *torch.autograd.grad(out.square().sum(), inputs)))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("whole", [False, True])
@weighted_or_not
def test_results_repeat_bit_for_bit_with_any_number_of_threads(weighted, whole, monkeypatch):
    monkeypatch.setattr("graphgym_lcat.kernels.threads.MIN_WORK_PER_THREAD", 1)
    graph = random_graph(500, 700, 9000)
    graph.edge_index[1, :2000] = 5  # one long row
    graph = Graph.from_edge_index(graph.edge_index, (500, 700), add_self_loops=False)
    inputs = random_inputs(graph, 4, 24, weighted, torch.float32, whole=whole)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 2):
            torch.set_num_threads(threads)
            results.append(value_and_gradients(fused_statistics, graph, STATISTICS, inputs))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_no_tensor_grows_with_edges_times_channels():
    graph = random_graph(20, 20, 4000)
    heads, channels = 2, 24
    inputs = random_inputs(graph, heads, channels, False, torch.float32)
    query, key = (torch.randn(20, heads).requires_grad_() for _ in range(2))
    score = GATScore(query, key, 0.2)
    fused.statistics(graph, score, *inputs, STATISTICS).sum().backward()  # builds the layout
    with LargestTensor() as largest:
        fused.statistics(graph, score, *inputs, STATISTICS).sum().backward()
    assert 0 < largest.numel <= 4000 * heads


@pytest.mark.parametrize("operator", ["plain", "weighted", "gat", "gatv2"])
def test_operators_are_what_they_declare(operator):
    edge_index = random_graph(20, 20, 90).edge_index
    generator = torch.Generator().manual_seed(0)
    receiver, sender, weight, query, key, features, att = (
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((20, 16), (20, 16), (90, 2), (20, 2), (20, 2), (20, 2, 8), (2, 8))
    )
    arguments = {
        "plain": (pna.plain_operator, (receiver, sender, [1, 2, 3, 5])),
        "weighted": (pna.weighted_operator, (receiver, sender, weight, [1, 2, 3, 5])),
        "gat": (adjacency.gat_operator, (query, key, 0.2)),
        "gatv2": (adjacency.gatv2_operator, (features, features, att, 0.2)),
    }
    function, inputs = arguments[operator]
    checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(function, (edge_index, 20, 20, False, True, *inputs), test_utils=checks)


@pytest.mark.parametrize("changed", ["receiver", "sender", "score"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_different_dtypes_are_converted(changed, dtype):
    graph = random_graph(10, 10, 40)
    torch.manual_seed(0)
    inputs = {"receiver": torch.randn(10, 8), "sender": torch.randn(10, 8), "score": torch.randn(10, 2)}
    inputs[changed] = inputs[changed].to(dtype)

    def run(receiver, sender, score):
        return fused.statistics(graph, GATScore(score, score, 0.2), receiver, sender, ["mean", "max"])

    out = run(**inputs)
    assert out.dtype == inputs["sender"].dtype
    expected = run(**{name: value.double() for name, value in inputs.items()})
    bound = 0.02 if out.dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(out.double(), expected, rtol=bound, atol=bound)
