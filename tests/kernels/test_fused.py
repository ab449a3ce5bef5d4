"""The fused kernels compute what the torch path computes."""

import pytest
import torch
from fused_cases import PRIMITIVES, Case, assert_all_same, cases, compute, run
from hypothesis import given, settings
from hypothesis import strategies as st

from graphgym_lcat.kernels import Graph, calls, dispatch, fused, library, torch_path
from graphgym_lcat.kernels.backend import GATScore, GATv2Score

TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-10}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("primitive", PRIMITIVES)
@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_fused_equals_the_torch_path_in_value_and_gradient(primitive, dtype, case):
    inputs = case.inputs(primitive, dtype)
    actual = run(fused, primitive, case.graph, inputs)
    expected = run(torch_path, primitive, case.graph, [t.detach().double().requires_grad_() for t in inputs])
    assert {t.dtype for t in actual} == {dtype}
    assert_all_same(actual, expected, TOLERANCES[dtype])


@pytest.fixture
def dense_case():
    """Rows of many blocks of edges, explicit self-loops, repeated edges."""
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(40, (2, 20_000), generator=generator)
    return Case(Graph.from_edge_index(edge_index, 40, add_self_loops=False), heads=4, channels=8, seed=0)


@pytest.mark.parametrize("instruction_set", library.INSTRUCTION_SETS)
@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_every_instruction_set_gives_the_same(primitive, instruction_set, dense_case, monkeypatch):
    best = library.load().instruction_set
    if library.INSTRUCTION_SETS.index(instruction_set) > library.INSTRUCTION_SETS.index(best):
        pytest.skip(f"this processor has no {instruction_set}")
    monkeypatch.setenv(library.ENVIRONMENT_VARIABLE, instruction_set)
    chosen = library.load.__wrapped__()
    assert chosen.instruction_set == instruction_set
    monkeypatch.setattr(library, "load", lambda: chosen)
    for dtype, tolerance in TOLERANCES.items():
        if dtype not in chosen.dtypes:
            continue
        inputs = dense_case.inputs(primitive, dtype)
        exact = [t.detach().double().requires_grad_() for t in inputs]
        actual, expected = (
            run(path, primitive, dense_case.graph, tensors) for path, tensors in ((fused, inputs), (torch_path, exact))
        )
        assert_all_same(actual, expected, tolerance)


def test_lambda2_may_differ_by_column(dense_case):
    target, source, _ = dense_case.inputs("convolve", torch.float64)
    lambda2 = torch.rand(32, dtype=torch.float64, requires_grad=True)
    inputs = [target, source, lambda2]
    assert_all_same(*(run(path, "convolve", dense_case.graph, inputs) for path in (fused, torch_path)), 1e-10)


def test_key_and_value_may_be_one_tensor(dense_case):
    query, key, _, att = dense_case.inputs("attend_gatv2", torch.float64)
    grads = []
    for path in (fused, torch_path):
        out = compute(path, "attend_gatv2", dense_case.graph, [query, key, key, att])
        grads.append((out, *torch.autograd.grad(out.square().sum(), (query, key, att))))
    assert_all_same(*grads, 1e-10)


@pytest.mark.parametrize("dtype", TOLERANCES)
@settings(max_examples=60, deadline=None)
@given(case=cases(), both_ways=st.booleans())
def test_query_and_key_may_be_one_tensor(dtype, case, both_ways):
    edge_index, nodes = case.graph.edge_index, max(case.graph.num_src, case.graph.num_dst)
    if both_ways:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    graph = Graph.from_edge_index(edge_index, nodes, case.graph.add_self_loops)
    assert graph.compact.symmetric or not both_ways
    _, features, value, att = Case(graph, case.heads, case.channels, case.seed).inputs("attend_gatv2", dtype)
    results = []
    for path, exact in ((fused, False), (torch_path, True)):
        inputs = [t.detach().to(torch.float64 if exact else dtype).requires_grad_() for t in (features, value, att)]
        out = compute(path, "attend_gatv2", graph, [inputs[0], *inputs])
        # Not out itself as the direction: where all neighbours are equal the gradient is a difference of equal sums of squares.
        direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.dtype)
        results.append((out.detach(), *torch.autograd.grad(out, inputs, direction)))
    assert_all_same(*results, TOLERANCES[dtype])


@pytest.mark.parametrize("heads", [1, 4, 9])
def test_what_the_forward_pass_does_not_keep_is_computed_again(heads, dense_case, monkeypatch):
    case = Case(dense_case.graph, heads, channels=8, seed=0)
    expected = run(torch_path, "attend_gat", case.graph, case.inputs("attend_gat", torch.float64))
    monkeypatch.setattr(calls, "MAX_KEPT_BYTES", 0)
    assert_all_same(run(fused, "attend_gat", case.graph, case.inputs("attend_gat", torch.float64)), expected, 1e-10)


def test_columns_of_one_tensor_may_be_query_and_key(dense_case):
    _, _, value = dense_case.inputs("attend_gat", torch.float64)
    both = torch.randn(40, 8, dtype=torch.float64)
    inputs = [both[:, :4], both[:, 4:], value]
    outs = [compute(path, "attend_gat", dense_case.graph, inputs) for path in (fused, torch_path)]
    assert_all_same(*([out] for out in outs), 1e-10)


@pytest.mark.parametrize("slope", [0.0, 1.0, -0.5, 2.0])
def test_any_negative_slope(slope, dense_case):
    for primitive in ("attend_gat", "attend_gatv2"):
        inputs = dense_case.inputs(primitive, torch.float64)
        results = []
        for path in (fused, torch_path):
            out = compute(path, primitive, dense_case.graph, inputs, slope)
            results.append((out, *torch.autograd.grad(out.square().sum(), inputs)))
        assert_all_same(*results, 1e-10)


def test_more_heads_than_the_kernels_support_take_the_torch_path():
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)
    case = Case(graph, heads=65, channels=2, seed=0)
    query, key, value = case.inputs("attend_gat", torch.float32)
    _, features, _, att = case.inputs("attend_gatv2", torch.float32)
    for score in (GATScore(query, key, 0.2), GATv2Score(features, features, att, 0.2)):
        expected = torch_path.attend(graph, score, value)
        assert torch.equal(dispatch.attend("auto", graph, score, value), expected)
        with pytest.raises(RuntimeError, match="it computes up to 64 heads, the layer has 65"):
            dispatch.attend("fused", graph, score, value)


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_without_gradients_the_values_are_the_same_bits(primitive, dense_case):
    inputs = dense_case.inputs(primitive, torch.float32)
    trained, *_ = run(fused, primitive, dense_case.graph, inputs)
    with torch.no_grad():
        assert torch.equal(compute(fused, primitive, dense_case.graph, inputs), trained)


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_gradients_of_gradients_are_refused(primitive, dense_case):
    inputs = dense_case.inputs(primitive, torch.float32)
    out = compute(fused, primitive, dense_case.graph, inputs)
    (grad,) = torch.autograd.grad(out.square().sum(), inputs[0], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_forward_mode_derivatives_are_refused(primitive, dense_case):
    inputs = [t.detach() for t in dense_case.inputs(primitive, torch.float64)]
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(inputs[0], torch.ones_like(inputs[0]))
        with pytest.raises((RuntimeError, NotImplementedError), match=r"jvp|forward"):
            compute(fused, primitive, dense_case.graph, [dual, *inputs[1:]])
