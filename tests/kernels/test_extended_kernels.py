"""The kernels with dropout, edge terms and coefficients, called directly, against dense attention in double precision."""

from dataclasses import dataclass

import pytest
import torch
from dense_attention import aggregate, dropped, edge_list, gat_scores, gatv2_scores, softmax
from fused_cases import REALS, assert_all_same

from graphgym_lcat.kernels import Graph, calls, calls_gat, calls_gatv2, fused
from graphgym_lcat.kernels.edge_numbers import EdgeNumbers

pytestmark = pytest.mark.skipif(fused.UNAVAILABLE is not None, reason=str(fused.UNAVAILABLE))

SLOPE = 0.2
SEED = -0x123456789ABCDEF
TOLERANCES = {torch.float32: 2e-5, torch.float64: 1e-13}


@dataclass
class Edges:
    edge_index: torch.Tensor
    num_src: int
    num_dst: int
    add_self_loops: bool

    @classmethod
    def random(cls, num_src, num_dst, count, add_self_loops, seed=0):
        generator = torch.Generator().manual_seed(seed)
        ends = [torch.randint(n, (count,), generator=generator) for n in (num_src, num_dst)]
        return cls(torch.stack(ends), num_src, num_dst, add_self_loops)

    def call(self, seed=SEED, probability=0.0):
        graph = Graph.from_edge_index(self.edge_index, (self.num_src, self.num_dst), self.add_self_loops)
        layout = graph.compact
        return calls.Call(layout, EdgeNumbers(self.edge_index, layout), seed, probability)

    def listed(self):
        return edge_list(self.edge_index, self.num_src, self.num_dst, self.add_self_loops)

    @property
    def rows(self):
        return self.edge_index.size(1) + (min(self.num_src, self.num_dst) if self.add_self_loops else 0)


HUB = torch.cat(
    [torch.stack([torch.arange(1400) % 30, torch.zeros(1400, dtype=torch.long)]), torch.tensor([[0], [3]])], 1
)
GRAPHS = {
    "multigraph": Edges.random(9, 9, 60, True),
    "without self-loops": Edges.random(9, 9, 60, False),
    "bipartite": Edges.random(7, 12, 50, True),
    "more sources": Edges.random(12, 5, 40, False),
    "hub": Edges(HUB, 30, 30, True),
    "no edges": Edges(torch.empty(2, 0, dtype=torch.long), 4, 4, True),
    "nothing": Edges(torch.empty(2, 0, dtype=torch.long), 3, 3, False),
    "symmetric": Edges(torch.tensor([[0, 1, 1, 2, 2, 3, 1, 0, 2], [1, 0, 2, 1, 3, 2, 0, 1, 2]]), 5, 5, True),
}
HEADS = (1, 2, 4, 8, 16)


def random_inputs(dtype, *shapes):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def in_double(tensors):
    return [None if t is None else t.double().requires_grad_() for t in tensors]


def oracle_grads(out, inputs, grad):
    wanted = [t for t in inputs if t is not None]
    if not out.requires_grad:
        return [torch.zeros_like(t) for t in wanted]
    grads = torch.autograd.grad(out, wanted, grad.double(), allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(wanted, grads, strict=True)]


def edge_rows(edges, rows):
    """What stands at the edges that the layout holds; the others are zero."""
    _, _, number = edges.listed()
    held = torch.zeros(edges.rows, dtype=torch.bool)
    held[number] = True
    assert not rows[~held].any()
    return held


def joined(grads):
    """Gradients that exist, those of edges and self-loops in one tensor."""
    *grads, edges, loops, weight = grads
    return grads if weight is None else [*grads, torch.cat([edges, loops]), weight]


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("with_term", [False, True])
@pytest.mark.parametrize("probability", [0.0, 0.4])
@pytest.mark.parametrize("name", GRAPHS)
def test_gat_equals_dense_attention(name, probability, with_term, heads, dtype):
    edges = GRAPHS[name]
    channels = 8 if heads == 4 else 24
    query, key, value, term, grad = random_inputs(
        dtype,
        (edges.num_dst, heads),
        (edges.num_src, heads),
        (edges.num_src, heads, channels),
        (edges.rows, heads),
        (edges.num_dst, heads, channels),
    )
    term = term if with_term else None
    inputs = in_double((query, key, value, term))
    src, dst, number = edges.listed()
    gamma = softmax(gat_scores(src, dst, number, inputs[0], inputs[1], inputs[3], SLOPE), dst, edges.num_dst)
    expected = aggregate(dropped(gamma, number, SEED, probability), src, dst, inputs[2], edges.num_dst)

    call = edges.call(probability=probability)
    for train in (True, False):
        out, state = calls_gat.forward(call, query, key, value, term, SLOPE, train)
        grads = calls_gat.backward(call, query, key, value, term, SLOPE, out, state, grad)
        if with_term:
            edge_rows(edges, grads[3])
        actual = [out, *(g for g in grads if g is not None)]
        assert_all_same(actual, [expected.detach(), *oracle_grads(expected, inputs, grad)], TOLERANCES[dtype])
        inputs = in_double((query, key, value, term))
        gamma = softmax(gat_scores(src, dst, number, inputs[0], inputs[1], inputs[3], SLOPE), dst, edges.num_dst)
        expected = aggregate(dropped(gamma, number, SEED, probability), src, dst, inputs[2], edges.num_dst)


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("with_term", [False, True])
@pytest.mark.parametrize("probability", [0.0, 0.4])
@pytest.mark.parametrize("name", GRAPHS)
def test_coefficients_of_gat_equal_dense_ones(name, probability, with_term, heads, dtype):
    edges = GRAPHS[name]
    query, key, term, grad = random_inputs(
        dtype, (edges.num_dst, heads), (edges.num_src, heads), (edges.rows, heads), (edges.rows, heads)
    )
    term = term if with_term else None
    inputs = in_double((query, key, term))
    src, dst, number = edges.listed()
    gamma = softmax(gat_scores(src, dst, number, *inputs, SLOPE), dst, edges.num_dst)
    expected = dropped(gamma, number, SEED, probability)

    call = edges.call(probability=probability)
    actual, shift, scale = calls_gat.coefficients(call, query, key, term, SLOPE)
    grads = calls_gat.coefficients_backward(call, query, key, term, SLOPE, actual, shift, scale, grad)
    edge_rows(edges, actual)
    edge_rows(edges, grads[2])
    expected_grads = oracle_grads(expected, inputs, grad[number])
    given = [actual[number], *grads[: len(expected_grads)]]
    assert_all_same(given, [expected.detach(), *expected_grads], TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize(
    ("heads", "depth", "channels"), [(1, 8, 8), (2, 16, 8), (4, 8, 8), (4, 24, 16), (8, 8, 16), (16, 40, 8)]
)
@pytest.mark.parametrize("edge_dim", [None, 1, 5, 16])
@pytest.mark.parametrize("probability", [0.0, 0.4])
@pytest.mark.parametrize("name", GRAPHS)
def test_gatv2_equals_dense_attention(name, probability, edge_dim, heads, depth, channels, dtype):
    edges = GRAPHS[name]
    query, key, value, att, features, weight, grad, grad_gamma = random_inputs(
        dtype,
        (edges.num_dst, heads, depth),
        (edges.num_src, heads, depth),
        (edges.num_src, heads, channels),
        (heads, depth),
        (edges.rows, edge_dim or 0),
        (heads * depth, edge_dim or 0),
        (edges.num_dst, heads, channels),
        (edges.rows, heads),
    )
    count = edges.edge_index.size(1)
    edge = None if edge_dim is None else calls_gatv2.EdgeFeatures(features[:count], features[count:], weight)
    given = (query, key, value, att, features if edge else None, weight if edge else None)
    inputs = in_double(given)
    src, dst, number = edges.listed()

    def oracle_gamma():
        scores = gatv2_scores(src, dst, number, inputs[0], inputs[1], inputs[3], inputs[4], inputs[5], SLOPE)
        return dropped(softmax(scores, dst, edges.num_dst), number, SEED, probability)

    call = edges.call(probability=probability)
    expected = aggregate(oracle_gamma(), src, dst, inputs[2], edges.num_dst)
    out, shift, scale = calls_gatv2.forward(call, query, key, value, att, edge, SLOPE)
    grads = calls_gatv2.backward(call, query, key, value, att, edge, SLOPE, out, shift, scale, grad)
    actual = [out, *joined(grads)]
    assert_all_same(actual, [expected.detach(), *oracle_grads(expected, inputs, grad)], 4 * TOLERANCES[dtype])
    if edge is not None:
        edge_rows(edges, joined(grads)[4])
        fewer = calls_gatv2.backward(call, query, key, value, att, edge, SLOPE, out, shift, scale, grad, False)
        assert fewer[4] is None and fewer[5] is None
        assert all(torch.equal(a, b) for a, b in zip(fewer[:4] + fewer[6:], grads[:4] + grads[6:], strict=True))

    expected = oracle_gamma()
    del inputs[2]
    gamma, shift, scale = calls_gatv2.coefficients(call, query, key, att, edge, SLOPE)
    grads = calls_gatv2.coefficients_backward(call, query, key, att, edge, SLOPE, gamma, shift, scale, grad_gamma)
    edge_rows(edges, gamma)
    actual = [gamma[number], *joined(grads)]
    expected_grads = oracle_grads(expected, inputs, grad_gamma[number])
    assert_all_same(actual, [expected.detach(), *expected_grads], 4 * TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", REALS, ids=str)
@pytest.mark.parametrize(("heads", "channels"), [(1, 8), (2, 16), (4, 8), (8, 8)])
@pytest.mark.parametrize("nodes", [12, 40])
def test_the_symmetric_backward_pass_with_dropout_equals_the_two_passes(nodes, heads, channels, dtype):
    """Each direction of an edge has its own mask, and repeated edges too."""
    half = torch.randint(nodes, (2, 150), generator=torch.Generator().manual_seed(2))
    both = torch.cat([half, half.flip(0)], dim=1)
    edges = Edges(both[:, torch.randperm(300, generator=torch.Generator().manual_seed(3))], nodes, nodes, True)
    features, value, att, grad = random_inputs(
        dtype, (nodes, heads, channels), (nodes, heads, channels), (heads, channels), (nodes, heads, channels)
    )
    call = edges.call(probability=0.5)
    assert call.layout.symmetric
    state = calls_gatv2.forward(call, features, features, value, att, None, SLOPE)
    two = calls_gatv2.backward(call, features, features, value, att, None, SLOPE, *state, grad)
    one = calls_gatv2.backward_symmetric(call, features, value, att, SLOPE, *state, grad)
    assert_all_same(one, [two[0] + two[1], *two[2:4]], TOLERANCES[dtype])


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_self_loops_get_the_mean_or_sum_of_the_in_edges(name, mean):
    edges = GRAPHS[name]
    (rows,) = random_inputs(torch.float64, (edges.rows, 5))
    _, dst, number = edges.listed()
    count = edges.edge_index.size(1)
    call = edges.call()
    filled = rows.clone()
    calls.fill_loops(call, filled, filled[count:], mean)
    stored = number < count
    total = torch.zeros(edges.num_dst, 5, dtype=torch.float64).index_add(0, dst[stored], rows[number[stored]])
    sizes = torch.zeros(edges.num_dst, dtype=torch.float64).index_add(
        0, dst[stored], torch.ones(int(stored.sum())).double()
    )
    if mean:
        total /= sizes.clamp(min=1).unsqueeze(-1)
    torch.testing.assert_close(filled[count:], total[: edges.rows - count], rtol=0, atol=1e-12)
    assert torch.equal(filled[:count], rows[:count])

    # The transpose: ⟨fill(x), g⟩ = ⟨x, fillᵀ(g)⟩.
    grad = rows.flip(0).clone()
    through = grad.clone()
    calls.fill_loops_backward(call, grad[count:], through, mean)
    held = edge_rows(edges, torch.zeros(edges.rows, 1))
    held[count:] = False
    torch.testing.assert_close(
        (filled * grad)[held].sum() + (filled[count:] * grad[count:]).sum(), (rows * through)[held].sum()
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_every_slot_has_the_number_of_its_edge(name):
    edges = GRAPHS[name]
    call = edges.call()
    layout, numbers = call.layout, call.numbers
    by_row, by_col = numbers.by_row.long(), numbers.by_col.long()
    src, dst = edges.edge_index
    assert torch.equal(src[by_row], layout.col.long())
    assert torch.equal(dst[by_row], torch.repeat_interleave(layout.rowptr.diff()))
    assert torch.equal(dst[by_col], layout.row.long())
    assert torch.equal(src[by_col], torch.repeat_interleave(layout.colptr.diff()))
    kept = int(layout.rowptr[-1])
    assert by_row.unique().numel() == by_col.unique().numel() == kept
    # Edges with the same ends keep the order of the input.
    same = (src[by_row].diff() == 0) & (dst[by_row].diff() == 0)
    assert (by_row.diff()[same] > 0).all()


def run_all(edges, dtype, heads=4, depth=8, probability=0.3):
    query, key, value, att, features, weight, grad, term, grad_gamma = random_inputs(
        dtype,
        (edges.num_dst, heads, depth),
        (edges.num_src, heads, depth),
        (edges.num_src, heads, depth),
        (heads, depth),
        (edges.rows, 3),
        (heads * depth, 3),
        (edges.num_dst, heads, depth),
        (edges.rows, heads),
        (edges.rows, heads),
    )
    call = edges.call(probability=probability)
    results = []
    for used in (None, term):
        out, state = calls_gat.forward(call, query[:, :, 0], key[:, :, 0].contiguous(), value, used, SLOPE, True)
        grads = calls_gat.backward(
            call, query[:, :, 0].contiguous(), key[:, :, 0].contiguous(), value, used, SLOPE, out, state, grad
        )
        results += [out, *(g for g in grads if g is not None)]
        scalars = query[:, :, 0].contiguous(), key[:, :, 0].contiguous(), used, SLOPE
        gamma = calls_gat.coefficients(call, *scalars)
        results += [*gamma, *calls_gat.coefficients_backward(call, *scalars, *gamma, grad_gamma)]
    count = edges.edge_index.size(1)
    for edge in (None, calls_gatv2.EdgeFeatures(features[:count], features[count:], weight)):
        pairs = query, key, value, att, edge, SLOPE
        state = calls_gatv2.forward(call, *pairs)
        results += [*state, *(g for g in calls_gatv2.backward(call, *pairs, *state, grad) if g is not None)]
        pairs = query, key, att, edge, SLOPE
        gamma = calls_gatv2.coefficients(call, *pairs)
        grads = calls_gatv2.coefficients_backward(call, *pairs, *gamma, grad_gamma)
        results += [*gamma, *(g for g in grads if g is not None)]
    return results


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_results_do_not_depend_on_the_number_of_threads(dtype, monkeypatch):
    edges = Edges.random(500, 500, 4000, True)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = run_all(edges, dtype)
        torch.set_num_threads(2)
        monkeypatch.setattr("graphgym_lcat.kernels.threads.MIN_WORK_PER_THREAD", 1)
        two = run_all(edges, dtype)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("dtype", REALS, ids=str)
def test_without_extras_the_kernels_need_no_numbers_of_edges(dtype):
    edges = Edges.random(50, 50, 400, True)
    query, key, value, att, grad = random_inputs(dtype, *[(50, 4, 8)] * 3, (4, 8), (50, 4, 8))
    numbers = query[:, :, 0].contiguous(), key[:, :, 0].contiguous(), value, None, SLOPE
    pairs = query, key, value, att, None, SLOPE
    results = []
    for call in (edges.call(), calls.Call(edges.call().layout)):
        out, state = calls_gat.forward(call, *numbers, True)
        results.append([out, *state, *calls_gat.backward(call, *numbers, out, state, grad)[:3]])
        state = calls_gatv2.forward(call, *pairs)
        results[-1] += [*state, *calls_gatv2.backward(call, *pairs, *state, grad)[:4]]
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("probability", [1e-9, 1 - 1e-9, 1.0])
def test_extreme_probabilities_give_finite_results(probability):
    for result in run_all(GRAPHS["multigraph"], torch.float32, probability=probability):
        assert result.isfinite().all()
        if probability == 1.0 and result.shape[1:] == (4, 8):
            assert not result.any()
