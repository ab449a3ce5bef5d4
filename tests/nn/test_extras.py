"""Dropout, edge features and attention weights: the same with every backend."""

import pytest
import torch

from graphgym_lcat.kernels import fused
from graphgym_lcat.nn import LCATConv

pytestmark = pytest.mark.skipif(fused.UNAVAILABLE is not None, reason=str(fused.UNAVAILABLE))

NODES, EDGES, EDGE_DIM = 30, 200, 5


def compute(backend, score, heads, dropout, fill_value, weights):
    """Output, coefficients and all gradients of a layer."""
    torch.manual_seed(0)
    edge_dim = None if fill_value is None else EDGE_DIM
    conv = LCATConv(
        12, 7, heads, score=score, dropout=dropout, edge_dim=edge_dim, fill_value=fill_value or "mean", backend=backend
    )
    conv = conv.double()
    x = torch.randn(NODES, 12, dtype=torch.float64, requires_grad=True)
    edge_index = torch.randint(NODES, (2, EDGES))
    edge_attr = torch.randn(EDGES, EDGE_DIM, dtype=torch.float64, requires_grad=True) if edge_dim else None
    out = conv(x, edge_index, edge_attr, return_attention_weights=weights or None)
    results = [out[0], out[1][1]] if weights else [out]
    loss = sum((part * torch.linspace(0, 1, part.numel(), dtype=part.dtype).view_as(part)).sum() for part in results)
    inputs = [x, *([edge_attr] if edge_dim else []), *conv.parameters()]
    return [*results, *torch.autograd.grad(loss, inputs, allow_unused=True)]


@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("heads", [3, 4])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("fill_value", [None, "mean", "add", "max", 0.5])
@pytest.mark.parametrize("weights", [False, True])
def test_backends_agree(score, heads, dropout, fill_value, weights):
    torch.testing.assert_close(
        compute("fused", score, heads, dropout, fill_value, weights),
        compute("torch", score, heads, dropout, fill_value, weights),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("backend", ["fused", "torch"])
def test_the_seed_of_torch_determines_the_mask(backend):
    conv = LCATConv(8, 8, heads=2, dropout=0.5, backend=backend)
    x, edge_index = torch.randn(NODES, 8), torch.randint(NODES, (2, EDGES))
    torch.manual_seed(1)
    first, second = conv(x, edge_index), conv(x, edge_index)
    torch.manual_seed(1)
    assert torch.equal(conv(x, edge_index), first)
    assert torch.equal(conv(x, edge_index), second)
    assert not torch.equal(first, second)


def test_the_output_is_the_same_with_and_without_attention_weights():
    conv = LCATConv(8, 8, heads=2, dropout=0.5, backend="fused")
    x, edge_index = torch.randn(NODES, 8), torch.randint(NODES, (2, EDGES))
    torch.manual_seed(1)
    expected = conv(x, edge_index)
    torch.manual_seed(1)
    out, (edges, alpha) = conv(x, edge_index, return_attention_weights=True)
    torch.testing.assert_close(out, expected)
    assert edges.size(1) == alpha.size(0)
