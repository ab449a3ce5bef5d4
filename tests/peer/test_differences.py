"""Every row of the table of differences in docs/layer.md is true."""

import pytest
import torch
from differences import DIFFERENCES
from torch_geometric.nn import GATConv, GATv2Conv

from graphgym_lcat.nn import LCATConv, LCATv2Conv

X = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.tensor([[0, 1, 2, 3, 0, 2], [1, 0, 1, 2, 3, 2]])


def aggregation():
    assert GATConv(5, 3, aggr="max")(X, EDGES).shape == (4, 3)
    with pytest.raises(ValueError, match="`aggr` must be 'add'"):
        LCATConv(5, 3, aggr="max")


def initial_values():
    assert (GATConv(5, 3).att_src != 1).any()
    assert (LCATConv(5, 3).att_src == 1).all()
    assert (LCATConv(5, 3, init="normal").att_src != 1).any()


def dropout_mask():
    theirs, ours = GATConv(5, 3, dropout=0.5), LCATConv(5, 3, dropout=0.5, lambda1=1, lambda2=0)
    ours.load_state_dict(theirs.state_dict())
    complete = torch.cartesian_prod(torch.arange(60), torch.arange(60)).t()
    kept = []
    for conv in (theirs, ours):
        torch.manual_seed(0)
        _, (_, alpha) = conv(torch.randn(60, 5), complete, return_attention_weights=True)
        kept.append(alpha > 0)
        assert abs(kept[-1].float().mean() - 0.5) < 0.05
    assert not torch.equal(*kept)


def edge_update():
    class Theirs(GATConv):
        def edge_update(self, alpha_j, alpha_i, index, ptr, dim_size):
            return torch.ones_like(alpha_j)

    class Ours(LCATConv):
        def edge_update(self, alpha):
            return torch.ones_like(alpha)

    theirs, ours = Theirs(5, 3), Ours(5, 3, lambda1=1, lambda2=0)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(X, EDGES), theirs(X, EDGES))


def ignored_edge_attr():
    assert GATConv(5, 3)(X, EDGES, torch.randn(6, 2)).shape == (4, 3)
    with pytest.raises(AssertionError):
        GATv2Conv(5, 3)(X, EDGES, torch.randn(6, 2))
    for layer in (LCATConv, LCATv2Conv):
        with pytest.warns(UserWarning, match="`edge_attr` is ignored"):
            assert layer(5, 3)(X, EDGES, torch.randn(6, 2)).shape == (4, 3)


def missing_edge_attr():
    for theirs, ours in ((GATConv, LCATConv), (GATv2Conv, LCATv2Conv)):
        assert theirs(5, 3, edge_dim=2)(X, EDGES).shape == (4, 3)
        with pytest.raises(ValueError, match="`edge_attr` must be given"):
            ours(5, 3, edge_dim=2)(X, EDGES)


def missing_targets():
    with pytest.raises(AssertionError):
        GATv2Conv(5, 3)((X, None), EDGES)
    assert LCATv2Conv(5, 3)((X, None), EDGES).shape == (4, 3)


def unknown_node():
    with pytest.raises(IndexError):
        GATConv(5, 3)(X, EDGES + 1)
    with pytest.raises(ValueError, match="got 4"):
        LCATConv(5, 3)(X, EDGES + 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def torch_jit():
    torch.jit.trace(GATConv(5, 3).eval(), (X, EDGES))
    with pytest.raises(RuntimeError, match=r"do not support torch\.jit\.trace"):
        torch.jit.trace(LCATConv(5, 3).eval(), (X, EDGES))


def repr():
    assert str(GATConv(5, 3)) == "GATConv(5, 3, heads=1)"
    assert str(LCATConv(5, 3, lambda2=0)) == "LCATConv(5, 3, heads=1, score='gat', lambda1=0.5 (learned), lambda2=0)"


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_difference_exists(name):
    globals()[name]()
