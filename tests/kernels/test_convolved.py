"""A layer in one autograd function gives the values and gradients of the torch path, and takes one thread if it is small."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from graphgym_lcat.kernels import calls, fused, threads
from graphgym_lcat.nn import LCATConv
from graphgym_lcat.nn.init import Projection

pytestmark = pytest.mark.skipif(fused.UNAVAILABLE is not None, reason=str(fused.UNAVAILABLE))


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def evaluate(conv, x, edge_index):
    """Output, and the gradients of the input and all parameters."""
    x = x.clone().requires_grad_()
    out = conv(x, edge_index)
    direction = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return [out, *torch.autograd.grad(out, [x, *conv.parameters()], direction)]


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.integers(1, 14),
    edges=st.integers(0, 60),
    heads=st.sampled_from([1, 2, 3, 4, 5, 8, 9]),
    channels=st.sampled_from([1, 7, 8, 20]),
    score=st.sampled_from(["gat", "gatv2"]),
    weights=st.sampled_from(["shared", "separate"]),
    lambda1=st.sampled_from(["learn", 1.0, 0.3]),
    lambda2=st.sampled_from(["learn", 0.0, 1.0]),
    per_head=st.booleans(),
    loops=st.booleans(),
    bias=st.booleans(),
    undirected=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_values_and_gradients_are_those_of_the_torch_path(
    nodes, edges, heads, channels, score, weights, lambda1, lambda2, per_head, loops, bias, undirected, seed
):
    torch.manual_seed(seed)
    options = {"score": score, "score_weights": weights, "lambda1": lambda1, "lambda2": lambda2}
    options |= {"lambda_per_head": per_head, "add_self_loops": loops, "bias": bias, "init": "normal"}
    conv = LCATConv(5, channels, heads, backend="fused", **options).double()
    for parameter in conv.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    reference = LCATConv(5, channels, heads, backend="torch", **options).double()
    reference.load_state_dict(conv.state_dict())
    edge_index = torch.randint(nodes, (2, edges))
    if undirected:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    x = torch.randn(nodes, 5, dtype=torch.float64)
    expected = evaluate(reference, x, edge_index)
    torch.testing.assert_close(evaluate(conv, x, edge_index), expected, rtol=1e-9, atol=1e-9)
    with torch.no_grad():
        torch.testing.assert_close(conv(x, edge_index), expected[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_only_what_requires_gradients_gets_them(score):
    conv = LCATConv(5, 8, 4, score=score)
    conv.lin.weight.requires_grad_(False)
    conv(torch.randn(6, 5), torch.randint(6, (2, 20))).sum().backward()
    assert conv.lin.weight.grad is None
    assert all(p.grad is not None for name, p in conv.named_parameters() if name != "lin.weight")


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_the_output_may_be_changed_in_place(score):
    for bias in (True, False):
        conv = LCATConv(5, 8, 4, score=score, bias=bias)
        x, edge_index = torch.randn(6, 5), torch.randint(6, (2, 20))
        plain = torch.autograd.grad((2 * conv(x, edge_index)).sum(), conv.lin.weight)
        torch.testing.assert_close(torch.autograd.grad(conv(x, edge_index).mul_(2).sum(), conv.lin.weight), plain)


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_threads_change_nothing(score, two_threads, monkeypatch):
    torch.manual_seed(0)
    conv = LCATConv(32, 8, 4, score=score)
    key, edge_index = torch.randn(700, 32), torch.randint(700, (2, 9000))
    small = evaluate(conv, key, edge_index)
    monkeypatch.setattr(threads, "MIN_WORK_PER_THREAD", 1)
    several = evaluate(conv, key, edge_index)
    # The sums over all nodes in matrix products and for the bias are torch's, which depend on the number of threads.
    names = ["out", "x", *(name for name, _ in conv.named_parameters())]
    for name, first, second in zip(names, small, several, strict=True):
        if name != "bias":
            assert torch.equal(first, second), name


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_a_small_layer_takes_one_thread_forward_and_backward(score, two_threads, monkeypatch):
    seen = []
    call = calls.library.Library.call

    def observe(self, name, dtype, *arguments):
        seen.append((torch.get_num_threads(), arguments[-1]))
        call(self, name, dtype, *arguments)

    monkeypatch.setattr(calls.library.Library, "call", observe)
    conv = LCATConv(32, 8, 4, score=score)
    conv(torch.randn(2708, 32, requires_grad=True), torch.randint(2708, (2, 10_556))).sum().backward()
    assert len(seen) >= 4 and set(seen) == {(1, 1)}
    assert torch.get_num_threads() == 2
    seen.clear()
    conv(torch.randn(20_000, 32), torch.randint(20_000, (2, 80_000)))
    assert (2, 2) in seen


def test_a_small_projection_takes_one_thread(two_threads, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "graphgym_lcat.nn.init.limited_threads", lambda number: seen.append(number) or threads.limited_threads(number)
    )
    conv = LCATConv(32, 8, 4)
    projected = conv.lin(torch.randn(2708, 32))
    assert seen == [1]
    projected.sum().backward()
    assert seen == [1, 1]
    conv.lin(torch.randn(200_000, 32))
    assert seen == [1, 1]


@pytest.mark.parametrize("bias", [False, True])
def test_a_small_projection_is_linear_and_has_second_derivatives(bias, two_threads):
    projection = Projection(3, 2, "normal", bias).double()
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    if bias:
        torch.nn.init.normal_(projection.bias)
    torch.testing.assert_close(projection(x), F.linear(x, projection.weight, projection.bias))
    assert torch.autograd.gradcheck(projection, (x,)) and torch.autograd.gradgradcheck(projection, (x,))


def test_the_number_of_threads_is_restored_after_an_error(two_threads):
    with pytest.raises(RuntimeError, match="an error"), threads.limited_threads(1):
        assert torch.get_num_threads() == 1
        raise RuntimeError("an error")
    assert torch.get_num_threads() == 2
