"""The corners of the λ square are layers that PyG already has."""

import dataclasses

import pytest
import torch
from torch_geometric.nn import GATConv, GATv2Conv, SAGEConv

from graphgym_lcat.nn import CATConv, LCATConv
from graphgym_lcat.nn.scores import SCORES


def input_gradient(out, x):
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return torch.autograd.grad((out * weights).sum(), x)[0]


def assert_same(ours, theirs, x):
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(input_gradient(ours, x), input_gradient(theirs, x))


@pytest.mark.parametrize(
    "options", [{}, {"concat": False}, {"residual": True}, {"add_self_loops": False}, {"bias": False}]
)
def test_lambdas_1_0_are_gat_with_the_weights_of_gat(options, x, edge_index):
    gat = GATConv(5, 3, heads=2, **options).double()
    conv = LCATConv(5, 3, heads=2, lambda1=1, lambda2=0, **options).double()
    conv.load_state_dict(gat.state_dict())
    assert_same(conv(x.requires_grad_(), edge_index), gat(x, edge_index), x)


@pytest.mark.parametrize("fill_value", ["mean", "max", 0.5])
def test_lambdas_1_0_are_gat_with_edge_features(fill_value, x, edge_index):
    edge_attr = torch.randn(edge_index.size(1), 4, dtype=torch.double)
    gat = GATConv(5, 3, heads=2, edge_dim=4, fill_value=fill_value).double()
    conv = LCATConv(5, 3, heads=2, edge_dim=4, fill_value=fill_value, lambda1=1, lambda2=0).double()
    conv.load_state_dict(gat.state_dict())
    assert_same(conv(x.requires_grad_(), edge_index, edge_attr), gat(x, edge_index, edge_attr), x)


def test_lambdas_1_0_are_gatv2_with_the_weights_of_gatv2(x, edge_index):
    edge_attr = torch.randn(edge_index.size(1), 4, dtype=torch.double)
    gat = GATv2Conv(5, 3, heads=2, edge_dim=4, share_weights=True).double()
    conv = LCATConv(5, 3, heads=2, edge_dim=4, score="gatv2", lambda1=1, lambda2=0).double()
    with torch.no_grad():
        conv.lin.weight.copy_(gat.lin_l.weight)
        conv.lin_edge.weight.copy_(gat.lin_edge.weight)
        conv.att.copy_(gat.att)
        gat.lin_l.bias.zero_()
    assert_same(conv(x.requires_grad_(), edge_index, edge_attr), gat(x, edge_index, edge_attr), x)


def test_lambda1_0_is_a_sage_mean_with_one_weight_over_the_closed_neighbourhood(x, edge_index):
    from torch_geometric.utils import add_self_loops, remove_self_loops

    closed = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=12)[0]
    sage = SAGEConv(5, 6, root_weight=False).double()
    conv = LCATConv(5, 3, heads=2, lambda1=0).double()
    with torch.no_grad():
        conv.lin.weight.copy_(sage.lin_l.weight)
        conv.bias.copy_(sage.lin_l.bias)
    assert_same(conv(x.requires_grad_(), edge_index), sage(x, closed), x)


def test_lambda1_0_computes_no_score(x, edge_index, monkeypatch):
    def unexpected(*args):
        raise AssertionError("a score was computed")

    monkeypatch.setitem(SCORES, "gat", dataclasses.replace(SCORES["gat"], prepare=unexpected, at_once=None))
    LCATConv(5, 3, heads=2, lambda1=0).double()(x, edge_index)
    with pytest.raises(AssertionError, match="a score was computed"):
        LCATConv(5, 3, heads=2, lambda1=1).double()(x, edge_index)


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_cat_is_lcat_with_both_lambdas_1(score, x, edge_index):
    cat = CATConv(5, 3, heads=2, score=score).double()
    lcat = LCATConv(5, 3, heads=2, score=score, lambda1=1, lambda2=1).double()
    lcat.load_state_dict(cat.state_dict())
    assert cat.lambdas() == (1.0, 1.0)
    assert_same(cat(x.requires_grad_(), edge_index), lcat(x, edge_index), x)


def test_cat_on_a_complete_graph_is_gcn(x):
    """All convolved features are equal there, so all scores are."""
    complete = torch.ones(12, 12).nonzero().t()
    cat = CATConv(5, 3, heads=2).double()
    gcn = LCATConv(5, 3, heads=2, lambda1=0).double()
    gcn.load_state_dict(cat.state_dict(), strict=False)
    torch.testing.assert_close(cat(x, complete), gcn(x, complete))


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_learned_lambdas_start_in_the_middle(score):
    assert LCATConv(5, 3, score=score).lambdas() == pytest.approx((0.5, 0.5), abs=1e-6)
