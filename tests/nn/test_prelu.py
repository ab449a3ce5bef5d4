"""Our PReLU against torch's: values, gradients, and what it leaves to torch."""

import copy

import pytest
import torch

from graphgym_lcat.nn.prelu import PReLU


@pytest.mark.parametrize("weights", [1, 3])
@pytest.mark.parametrize("weight", [0.25, 0.0, -0.5, 1.5])
def test_equals_torch(weight: float, weights: int):
    torch.manual_seed(0)
    x = torch.randn(50, 3, dtype=torch.float64)
    x[::7] = 0  # the kink
    grad = torch.randn_like(x)
    results = []
    for kind in (torch.nn.PReLU, PReLU):
        act = kind(weights, init=weight).double()
        own = x.clone().requires_grad_()
        out = act(own)
        out.backward(grad)
        results.append((out.detach(), own.grad, act.weight.grad))
    torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=1e-12)


def test_gradients_by_differences():
    torch.manual_seed(1)
    x = torch.randn(20, 4, dtype=torch.float64, requires_grad=True)
    act = PReLU().double()
    assert torch.autograd.gradcheck(
        lambda x, weight: torch.func.functional_call(act, {"weight": weight}, x), (x, act.weight)
    )


def test_frozen_weight_and_no_grad():
    act = PReLU().requires_grad_(False)
    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    act(x).sum().backward()
    assert act.weight.grad is None
    assert x.grad.tolist() == [0.25, 1.0]
    with torch.no_grad():
        assert act(x).tolist() == [-0.5, 3.0]


def test_state_and_copies_are_those_of_torch():
    act = PReLU()
    act.load_state_dict(torch.nn.PReLU(init=0.7).state_dict())
    assert copy.deepcopy(act).weight.item() == pytest.approx(0.7)


def test_compiles():
    act = torch.compile(PReLU(), backend="eager", fullgraph=True)
    assert act(torch.tensor([-2.0])).item() == -0.5


def test_transforms_of_torch():
    act, x = PReLU(), torch.linspace(-1, 1, 8)
    jacobian = torch.func.vmap(torch.func.grad(lambda one: act(one).sum()))(x.view(-1, 1))
    torch.testing.assert_close(jacobian.flatten(), torch.where(x > 0, 1.0, 0.25))
