"""L-CAT with the parameters of GATv2Conv, against the dense equations."""

import oracle
import pytest
import torch
from graphs import random_edges
from torch_geometric.nn import GATv2Conv

from graphgym_lcat.nn import LCATConv, LCATv2Conv, infer_layer

SOURCES, TARGETS = 10, 6


def dense(conv, x_src, x_dst, counts, lambda1, lambda2):
    """One head: queries and keys are projections of convolved features."""
    value = x_src @ conv.lin_l.weight.t() + conv.lin_l.bias
    neighbors = oracle.without_self_loops(counts)
    if x_src.size(1) == x_dst.size(1):
        query = oracle.convolved(x_dst, x_src, neighbors, lambda2) @ conv.lin_r.weight.t() + conv.lin_r.bias
    else:
        query = oracle.convolved(x_dst @ conv.lin_r.weight.t() + conv.lin_r.bias, value, neighbors, lambda2)
    n = len(x_dst)
    key = torch.cat([oracle.convolved(value[:n], value, neighbors, lambda2), value[n:]])
    alpha = lambda1 * oracle.gatv2_alpha(query, key, conv.att[0, 0], 0.2)
    return oracle.coefficients(alpha, oracle.with_self_loops(counts)) @ value + conv.bias


@pytest.mark.parametrize("share_weights", [False, True])
@pytest.mark.parametrize("kind", ["one set", "block", "pair"])
@pytest.mark.parametrize("backend", ["fused", "torch"])
def test_values_and_gradients_equal_the_dense_equations(kind, share_weights, backend):
    torch.manual_seed(3)
    channels = 4 if kind == "pair" and not share_weights else 5
    x_src = torch.randn(SOURCES, 5, dtype=torch.double, requires_grad=True)
    x_dst = x_src if kind == "one set" else torch.randn(TARGETS, channels, dtype=torch.double)
    edges = random_edges(SOURCES, len(x_dst), 25, seed=5)
    conv = LCATv2Conv(
        (5, channels) if kind == "pair" else 5, 3, share_weights=share_weights, init="normal", backend=backend
    ).double()
    torch.nn.init.normal_(conv.lin_l.bias), torch.nn.init.normal_(conv.lin_r.bias)
    lambda1, lambda2 = conv.interpolation()
    expected = dense(conv, x_src, x_dst, oracle.edge_counts(edges, SOURCES, len(x_dst)), lambda1, lambda2)
    out = conv(x_src if kind == "one set" else (x_src, x_dst), edges)
    torch.testing.assert_close(out, expected)
    inputs = [x_src, *conv.parameters()]
    weights = torch.randn_like(out)
    torch.testing.assert_close(
        torch.autograd.grad((out * weights).sum(), inputs), torch.autograd.grad((expected * weights).sum(), inputs)
    )


@pytest.mark.parametrize("share_weights", [False, True])
@pytest.mark.parametrize("channels", [5, (5, 5)])
def test_state_dicts_of_gatv2conv_load(share_weights, channels, x, edge_index):
    theirs = GATv2Conv(channels, 3, heads=2, share_weights=share_weights, edge_dim=2, residual=True).double()
    ours = LCATv2Conv(
        channels, 3, heads=2, share_weights=share_weights, edge_dim=2, residual=True, lambda1=1, lambda2=0
    ).double()
    ours.load_state_dict(theirs.state_dict())
    edge_attr = torch.randn(40, 2, dtype=torch.double)
    torch.testing.assert_close(ours(x, edge_index, edge_attr), theirs(x, edge_index, edge_attr))
    theirs.load_state_dict(ours.state_dict())


def test_with_shared_weights_and_no_bias_it_is_the_model_of_the_paper(x, edge_index):
    conv = LCATv2Conv(5, 3, heads=2, bias=False, share_weights=True).double()
    paper = LCATConv(5, 3, heads=2, bias=False, score="gatv2").double()
    state = conv.state_dict()
    paper.load_state_dict({"lin.weight": state["lin_l.weight"], **{k: v for k, v in state.items() if "lin_" not in k}})
    torch.testing.assert_close(conv(x, edge_index), paper(x, edge_index))


def test_blocks_give_the_outputs_of_the_full_graph(x, edge_index):
    conv = LCATv2Conv(5, 3, heads=2, init="normal").double().eval()
    torch.testing.assert_close(infer_layer(conv, x, edge_index, batch_size=5), conv(x, edge_index))


@pytest.mark.parametrize("name", ["score", "score_weights"])
def test_the_score_is_fixed(name):
    with pytest.raises(TypeError, match=f"`{name}` is not an argument of LCATv2Conv; use LCATConv"):
        LCATv2Conv(5, 3, **{name: "gat"})
