from __future__ import annotations

import copy

import pytest
import torch

from graphgym_lcat.data.features import sparse_features
from graphgym_lcat.nn.sparse_linear import SparseLinear


@pytest.fixture
def x():
    generator = torch.Generator().manual_seed(1)
    dense = torch.randn(30, 50, generator=generator, dtype=torch.double)
    return dense * (torch.rand(30, 50, generator=generator) < 0.1)


def run(layer, x):
    layer.zero_grad()
    out = layer(x)
    out.square().sum().backward()
    return [out, *(parameter.grad.clone() for parameter in layer.parameters())]


@pytest.mark.parametrize("bias", [True, False])
def test_a_csr_input_gives_the_output_and_gradients_of_a_dense_one(x, bias):
    layer = SparseLinear(50, 7, bias=bias).double()
    for ours, expected in zip(run(layer, sparse_features(x)), run(layer, x), strict=True):
        assert torch.allclose(ours, expected)


def test_initial_weights_are_those_of_linear():
    torch.manual_seed(3)
    ours = SparseLinear(5, 4)
    torch.manual_seed(3)
    expected = torch.nn.Linear(5, 4)
    assert list(ours.state_dict()) == list(expected.state_dict())
    assert torch.equal(ours.weight, expected.weight)


def test_gradients_are_right_by_finite_differences(x):
    layer = SparseLinear(50, 2).double()
    sparse = sparse_features(x)

    def forward(weight):
        return torch.func.functional_call(layer, {"weight": weight}, (sparse,))

    assert torch.autograd.gradcheck(forward, layer.weight.detach().clone().requires_grad_())


def test_another_matrix_gets_its_own_transpose(x):
    layer = SparseLinear(50, 3).double()
    run(layer, sparse_features(x))
    for ours, expected in zip(run(layer, sparse_features(2 * x)), run(layer, 2 * x), strict=True):
        assert torch.allclose(ours, expected)


def test_a_used_layer_can_be_copied(x):
    layer = SparseLinear(50, 3).double()
    run(layer, sparse_features(x))
    assert torch.equal(copy.deepcopy(layer)(sparse_features(x)), layer(sparse_features(x)))


def test_a_wrong_number_of_columns_is_named(x):
    with pytest.raises(ValueError, match=r"49 columns, got torch.sparse_csr of shape \(30, 50\)"):
        SparseLinear(49, 3).double()(sparse_features(x))


def test_frozen_weights_are_fine(x):
    layer = SparseLinear(50, 3).double()
    layer.weight.requires_grad_(False)
    layer(sparse_features(x)).sum().backward()
    assert layer.weight.grad is None
