"""Awkward numbers and graphs, as in the torch path."""

import pytest
import torch
from fused_cases import PRIMITIVES, Case, assert_all_same, compute, run

from graphgym_lcat.kernels import Graph, fused, torch_path
from graphgym_lcat.kernels.backend import Dropout, EdgeTerm, GATScore, GATv2Score

ATTENTION = ("attend_gat", "attend_gatv2")


@pytest.fixture
def graph():
    generator = torch.Generator().manual_seed(3)
    return Graph.from_edge_index(torch.randint(30, (2, 200), generator=generator), 30)


def compare(primitive, graph, inputs, tolerance):
    inputs = [t.detach().requires_grad_() for t in inputs]
    exact = [t.detach().double().requires_grad_() for t in inputs]
    assert_all_same(run(fused, primitive, graph, inputs), run(torch_path, primitive, graph, exact), tolerance)


@pytest.mark.parametrize("primitive", ATTENTION)
def test_scores_of_ten_thousand_neither_overflow_nor_vanish(primitive, graph):
    case = Case(graph, heads=4, channels=8, seed=0, scale=1e4)
    # Whole numbers, so that the scores themselves are exact in float32.
    inputs = [t.detach().round() for t in case.inputs(primitive, torch.float32)]
    value, *_ = run(fused, primitive, graph, [t.requires_grad_() for t in inputs])
    assert value.isfinite().all()
    compare(primitive, graph, inputs, 1e-5)


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_a_row_of_a_hundred_thousand_neighbours(primitive, add_self_loops):
    generator = torch.Generator().manual_seed(0)
    src = torch.randint(500, (100_000,), generator=generator)
    graph = Graph.from_edge_index(torch.stack([src, torch.zeros_like(src)]), 500, add_self_loops)
    compare(primitive, graph, Case(graph, 4, 8, seed=0).inputs(primitive, torch.float32), 1e-5)


@pytest.mark.parametrize("kind", ["gat", "gatv2"])
def test_a_hub_of_a_hundred_thousand_neighbours_with_dropout_and_edge_features(kind, monkeypatch):
    """As row and as column; the same bits with any number of threads."""
    monkeypatch.setattr("graphgym_lcat.kernels.threads.MIN_WORK_PER_THREAD", 1)
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(300, (100_000,), generator=generator)
    hub = torch.zeros_like(ends)
    graph = Graph.from_edge_index(torch.cat([torch.stack([ends, hub]), torch.stack([hub, ends])], dim=1), 300)
    query, key, value, *att = Case(graph, 4, 8, seed=0).inputs(f"attend_{kind}", torch.float32)
    shape = (4, 3) if kind == "gat" else (4, 8, 3)
    features, weight = torch.randn(200_000, 3, generator=generator), torch.randn(shape, generator=generator)
    given = [t.detach().requires_grad_() for t in (query, key, value, *att, features, weight)]

    def attend(backend, tensors):
        query, key, value, *att, features, weight = tensors
        edge, dropout = EdgeTerm(features, "mean", weight), Dropout(0.5, torch.tensor([1]))
        score = GATScore(query, key, 0.2, edge) if kind == "gat" else GATv2Score(query, key, *att, 0.2, edge)
        out = backend.attend(graph, score, value, dropout)
        return out.detach(), *torch.autograd.grad(out.square().sum(), tensors)

    exact = attend(torch_path, [t.detach().double().requires_grad_() for t in given])
    before, results = torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        results.append(attend(fused, given))
    torch.set_num_threads(before)
    assert_all_same(results[0], exact, 2e-5)
    # The gradient of the weight is a product of torch, whose order of sums depends on the number of threads.
    assert all(torch.equal(a, b) for a, b in zip(results[0][:-1], results[1][:-1], strict=True))


@pytest.mark.parametrize("primitive", PRIMITIVES)
@pytest.mark.parametrize("add_self_loops", [True, False])
def test_a_graph_without_edges(primitive, add_self_loops):
    graph = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3, add_self_loops)
    compare(primitive, graph, Case(graph, 2, 8, seed=0).inputs(primitive, torch.float32), 1e-6)


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_a_graph_without_nodes(primitive):
    graph = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 0)
    compare(primitive, graph, Case(graph, 2, 8, seed=0).inputs(primitive, torch.float32), 1e-6)


def same_kind(actual, expected):
    """NaN, +∞ and −∞ in the same places, and equal numbers elsewhere."""
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("primitive", "argument"),
    [(p, a) for p, count in zip(PRIMITIVES, (1, 3, 3, 4), strict=True) for a in range(count)],
)
def test_what_is_not_finite_propagates_as_in_the_torch_path(primitive, argument, bad, graph):
    inputs = Case(graph, heads=2, channels=8, seed=0).inputs(primitive, torch.float32)
    with torch.no_grad():
        inputs[argument].view(-1)[0] = bad
        outs = [compute(path, primitive, graph, inputs) for path in (fused, torch_path)]
    assert bad == bad or outs[1].isnan().any()
    same_kind(*outs)


@pytest.mark.parametrize("primitive", ATTENTION)
def test_a_nan_reaches_the_gradients_that_it_reaches_in_the_torch_path(primitive, graph):
    inputs = Case(graph, heads=2, channels=8, seed=0).inputs(primitive, torch.float32)
    with torch.no_grad():
        inputs[2][0, 0, 0] = float("nan")
    (_, *grads), (_, *expected) = (run(path, primitive, graph, inputs) for path in (fused, torch_path))
    for actual, wanted in zip(grads, expected, strict=True):
        # Where a NaN is multiplied by zero or left out is a matter of the order of operations; none may get lost.
        assert (actual.isnan() >= wanted.isnan()).all()
        assert actual.isfinite().any()


def test_a_row_whose_scores_are_all_minus_infinity_sums_to_zero():
    graph = Graph.from_edge_index(torch.tensor([[1, 2], [0, 0]]), 3)
    inputs = Case(graph, 1, 8, seed=0).inputs("attend_gat", torch.float32)
    with torch.no_grad():
        inputs[0][0] = float("-inf")
        outs = [compute(path, "attend_gat", graph, inputs) for path in (fused, torch_path)]
    assert torch.equal(outs[0][0], torch.zeros(1, 8))
    same_kind(*outs)
