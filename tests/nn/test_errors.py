"""An error says what was expected, what came, and which argument is meant."""

import re

import pytest
import torch

from graphgym_lcat.nn import CATConv, Graph, LCATConv

CONSTRUCTOR = [
    (ValueError, {"lambda1": 1.5}, "`lambda1` must be 'learn' or a number in [0, 1], got 1.5"),
    (ValueError, {"lambda2": -0.1}, "`lambda2` must be 'learn' or a number in [0, 1], got -0.1"),
    (ValueError, {"lambda2": float("nan")}, "`lambda2` must be 'learn' or a number in [0, 1], got nan"),
    (TypeError, {"lambda1": "lern"}, "`lambda1` must be 'learn' or a number in [0, 1], got 'lern'"),
    (TypeError, {"lambda1": True}, "`lambda1` must be 'learn' or a number in [0, 1], got True"),
    (
        ValueError,
        {"score": "gatv3"},
        "`score` must be one of 'gat', 'gatv2', got 'gatv3'; did you mean 'gatv2'?",
    ),
    (
        ValueError,
        {"init": "unifrom"},
        "`init` must be one of 'uniform', 'normal', got 'unifrom'; did you mean 'uniform'?",
    ),
    (ValueError, {"score_weights": "seperate"}, "got 'seperate'; did you mean 'separate'?"),
    (ValueError, {"backend": "fast"}, "`backend` must be one of 'auto', 'torch', 'fused'"),
    (ValueError, {"heads": 0}, "`heads` must be a whole number of at least 1, got 0"),
    (ValueError, {"out_channels": 0}, "`out_channels` must be a whole number of at least 1, got 0"),
    (ValueError, {"fill_value": "median"}, "`fill_value` must be one of"),
    (ValueError, {"aggr": "max"}, "`aggr` must be 'add'"),
    (
        ValueError,
        {"score": len, "edge_dim": 2},
        "`edge_dim` needs a score that takes edge features, got len",
    ),
]


@pytest.mark.parametrize(("kind", "kwargs", "message"), CONSTRUCTOR)
def test_bad_argument_of_the_constructor(kind, kwargs, message):
    with pytest.raises(kind, match=re.escape(message)):
        LCATConv(5, **{"out_channels": 3, **kwargs})


@pytest.mark.parametrize("name", ["lambda1", "lambda2"])
def test_cat_takes_no_lambda(name):
    with pytest.raises(TypeError, match=f"`{name}` is not an argument of CATConv, where both λ are 1; use LCATConv"):
        CATConv(5, 3, **{name: 0.5})


@pytest.mark.parametrize(
    ("row", "node", "message"),
    [
        (0, 12, "`edge_index[0]` must hold source nodes in [0, 11] (the graph has 12), got 12"),
        (1, -1, "`edge_index[1]` must hold destination nodes in [0, 11] (the graph has 12), got -1"),
    ],
)
def test_node_outside_the_graph(row, node, message, x, edge_index):
    edge_index[row, 7] = node
    with pytest.raises(ValueError, match=re.escape(message)):
        LCATConv(5, 3).double()(x, edge_index)


def test_edge_index_of_floats(x, edge_index):
    with pytest.raises(TypeError, match=re.escape("`edge_index` must hold integers, got torch.float32")):
        LCATConv(5, 3).double()(x, edge_index.float())


def test_edge_index_of_wrong_shape(x, edge_index):
    with pytest.raises(ValueError, match=re.escape("`edge_index` must have shape [2, E], got [40, 2]")):
        LCATConv(5, 3).double()(x, edge_index.t())


def test_edge_index_of_wrong_type(x):
    with pytest.raises(TypeError, match=r"`edge_index` must be a tensor .* got list"):
        LCATConv(5, 3).double()(x, [[0, 1], [1, 0]])


def test_edge_attr_without_edge_dim_is_ignored_with_a_warning(x, edge_index):
    conv = LCATConv(5, 3).double()
    with pytest.warns(UserWarning, match="`edge_attr` is ignored: the layer has no `edge_dim`"):
        out = conv(x, edge_index, torch.randn(40, 4))
    assert torch.equal(out, conv(x, edge_index))


def test_edge_dim_without_edge_attr(x, edge_index):
    with pytest.raises(ValueError, match="`edge_dim` is 4, so `edge_attr` must be given, got None"):
        LCATConv(5, 3, edge_dim=4).double()(x, edge_index)


def test_edge_attr_of_wrong_size(x, edge_index):
    conv = LCATConv(5, 3, edge_dim=4).double()
    with pytest.raises(ValueError, match="`edge_attr` must have edge_dim=4 columns, got 3"):
        conv(x, edge_index, torch.randn(40, 3))
    with pytest.raises(ValueError, match="`edge_attr` must have one row for each of the 40 edges, got 39"):
        conv(x, edge_index, torch.randn(39, 4))


def test_size_that_contradicts_x(x, edge_index):
    with pytest.raises(ValueError, match=re.escape("`size` must be (12, 6), the numbers of nodes in `x`, got (12, 7)")):
        LCATConv(5, 3).double()((x, x[:6]), edge_index.clamp(max=5), size=(12, 7))


def test_x_with_a_batch_dimension(x, edge_index):
    with pytest.raises(ValueError, match=re.escape("`x` must have shape [nodes, channels], got [1, 12, 5]")):
        LCATConv(5, 3).double()(x[None], edge_index)


@pytest.mark.parametrize("features", [lambda x: x[:, :4], lambda x: (x[:, :4], x)], ids=["one", "pair"])
def test_x_of_wrong_width(features, x, edge_index):
    with pytest.raises(ValueError, match=r"`x(\[0\])?` must have 5 channels, got 4"):
        LCATConv(5, 3).double()(features(x), edge_index)


@pytest.mark.parametrize(("features", "kind"), [(None, "NoneType"), ({}, "dict"), ((1,), "tuple")])
def test_x_that_is_neither_features_nor_a_pair(features, kind, edge_index):
    with pytest.raises(TypeError, match=f"`x` must be a tensor, or a pair for sources and destinations, got {kind}"):
        LCATConv(5, 3)(features, edge_index)


def test_edge_attr_of_a_prebuilt_graph(x, edge_index):
    conv = LCATConv(5, 3, edge_dim=4).double()
    with pytest.raises(ValueError, match="`edge_attr` must have one row for each of the 40 edges, got 41"):
        conv(x, Graph.from_edge_index(edge_index, 12), torch.randn(41, 4).double())


def test_edge_attr_of_three_dimensions(x, edge_index):
    with pytest.raises(ValueError, match=re.escape("`edge_attr` must have shape [edges, edge_dim], got [40, 1, 4]")):
        LCATConv(5, 3, edge_dim=4).double()(x, edge_index, torch.randn(40, 1, 4))


@pytest.mark.filterwarnings("ignore:Sparse BSR tensor support is in beta state:UserWarning")
def test_sparse_layout_that_is_not_a_list_of_edges(x):
    with pytest.raises(TypeError, match=r"`edge_index` must be a tensor .* got torch.sparse_bsr"):
        LCATConv(5, 3).double()(x, torch.eye(12).to_sparse_bsr((2, 2)))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_torch_jit_trace_is_refused(x, edge_index):
    conv = LCATConv(5, 3).double()
    with torch.no_grad(), pytest.raises(RuntimeError, match=r"do not support torch\.jit\.trace"):
        torch.jit.trace(conv, (x, edge_index))


def test_score_function_that_returns_no_tensor(x, edge_index):
    with pytest.raises(ValueError, match=r"`score` must turn .* got float"):
        LCATConv(5, 3, score=lambda u, v: 1.0).double()(x, edge_index)


def test_score_function_of_wrong_shape(x, edge_index):
    with pytest.raises(ValueError, match=re.escape("`score` must turn [edges, heads, channels]")):
        LCATConv(5, 3, score=lambda u, v: u * v).double()(x, edge_index)
