"""Which backend computes what, and what a backend chosen by name refuses."""

import re
from types import SimpleNamespace

import pytest
import torch

from graphgym_lcat.kernels import Graph, dispatch, fused, library, torch_path
from graphgym_lcat.kernels.backend import (
    Capabilities,
    Dropout,
    EdgeTerm,
    EqualScore,
    FunctionScore,
    GATScore,
    GATv2Score,
    Request,
    why_not,
)
from graphgym_lcat.nn import AttentionAdjacency, LCATConv, LCATGINConv, LCATPNAConv

NODES, HEADS, CHANNELS = 3, 2, 8
PLAIN = Request("attend", "cpu", (torch.float32,), (NODES, NODES), HEADS, "gat")


@pytest.fixture(autouse=True)
def without_triton(monkeypatch):
    """It may be installed or not; tests/triton has the tests of its choice."""
    monkeypatch.delitem(dispatch._BACKENDS, "triton")


@pytest.fixture
def graph():
    return Graph.from_edge_index(torch.tensor([[0, 1, 1], [1, 2, 1]]), NODES)


def edge_term(weight):
    return EdgeTerm(torch.randn(3, 4), torch.randn(NODES, 4), weight)


@pytest.fixture
def scores():
    numbers, features = torch.randn(NODES, HEADS), torch.randn(NODES, HEADS, CHANNELS)
    return {
        "gat": GATScore(numbers, numbers, 0.2),
        "gatv2": GATv2Score(features, features, torch.randn(HEADS, CHANNELS), 0.2),
        "equal": EqualScore(features),
        "function": FunctionScore(features, features, lambda u, v: (u * v).sum(-1)),
        "gat_edges": GATScore(numbers, numbers, 0.2, edge_term(torch.randn(HEADS, 4))),
        "gatv2_edges": GATv2Score(
            features, features, torch.randn(HEADS, CHANNELS), 0.2, edge_term(torch.randn(HEADS, CHANNELS, 4))
        ),
    }


@pytest.mark.parametrize("dtype", fused.can.dtypes, ids=str)
def test_auto_takes_the_fused_kernels(dtype):
    assert dispatch.choose("auto", PLAIN._replace(dtypes=(dtype,))) is fused


@pytest.mark.parametrize("half", [d for d in fused.can.dtypes if d in library.HALVES], ids=str)
def test_halves_and_float32_may_be_mixed(half):
    assert dispatch.choose("auto", PLAIN._replace(dtypes=(half, torch.float32))) is fused
    assert dispatch.choose("auto", PLAIN._replace(dtypes=(half, torch.float64))) is torch_path


UNSUPPORTED = {
    "number": (
        {"dtypes": (torch.complex64,)},
        f"it computes with {' or '.join(str(d).removeprefix('torch.') for d in fused.can.dtypes)}, the data is torch.complex64",
    ),
    "mixture": (
        {"dtypes": (torch.float32, torch.float64)},
        "it computes with numbers of one type, the data is torch.float32 and torch.float64",
    ),
    "device": ({"device": "cuda"}, "it computes on 'cpu', the data is on 'cuda'"),
    "heads": ({"heads": 65}, "it computes up to 64 heads, the layer has 65"),
    "nodes": ({"nodes": (1, 2**31)}, "it counts up to 2147483647 nodes, the graph has 2147483648"),
    "score": ({"score": "function"}, "it computes the scores 'gat' and 'gatv2', not 'function'"),
    "statistics with edges": (
        {"operator": "statistics", "edge_term": True},
        "it does not support edge features",
    ),
    "derivatives": ({"derivatives": 2}, "it has derivatives up to order 1, not 2"),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_auto_takes_the_torch_path_for_what_the_fused_kernels_cannot_compute(case):
    assert dispatch.choose("auto", PLAIN._replace(**UNSUPPORTED[case][0])) is torch_path


@pytest.mark.parametrize("change", [{"edge_term": True}, {"dropout": True}, {"operator": "coefficients"}])
def test_auto_takes_the_fused_kernels_for_extras(change):
    assert dispatch.choose("auto", PLAIN._replace(**change)) is fused


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"edge_term": True}, "it does not support edge features"),
        ({"dropout": True}, "it does not support dropout of attention coefficients"),
        ({"operator": "coefficients"}, "it does not compute attention coefficients"),
    ],
)
def test_a_backend_without_extras_says_which_it_lacks(change, reason):
    can = Capabilities(frozenset({"attend"}), frozenset({"gat"}), edge_term=False, dropout=False)
    assert can.why_not(PLAIN) is None
    assert can.why_not(PLAIN._replace(**change)) == reason


@pytest.mark.parametrize("case", UNSUPPORTED)
@pytest.mark.parametrize("by", ["argument", "variable"])
def test_fused_by_name_refuses_what_it_cannot_compute(case, by, monkeypatch):
    change, reason = UNSUPPORTED[case]
    if by == "variable":
        monkeypatch.setenv(dispatch.ENVIRONMENT_VARIABLE, "fused")
    expected = f"backend='fused' was asked for, but {reason}; use 'auto' or 'torch'"
    with pytest.raises(RuntimeError, match=f"^{re.escape(expected)}$"):
        dispatch.choose("fused" if by == "argument" else "auto", PLAIN._replace(**change))


def test_the_environment_variable_chooses_for_auto_only(monkeypatch):
    monkeypatch.setenv(dispatch.ENVIRONMENT_VARIABLE, "torch")
    assert dispatch.choose("auto", PLAIN) is torch_path
    assert dispatch.choose("fused", PLAIN) is fused


def test_an_unknown_name_in_the_environment_variable_is_an_error(monkeypatch):
    monkeypatch.setenv(dispatch.ENVIRONMENT_VARIABLE, "fast")
    message = "LCAT_BACKEND must be one of auto, torch, fused, got 'fast'"
    with pytest.raises(ValueError, match=message):
        dispatch.choose("auto", PLAIN)
    assert dispatch.describe_backend() == f"none ({message})"


def test_the_description_says_which_backend_computes_and_why(monkeypatch):
    assert dispatch.describe_backend().startswith("fused kernels (")
    monkeypatch.setenv(dispatch.ENVIRONMENT_VARIABLE, "torch")
    assert dispatch.describe_backend() == "torch path (LCAT_BACKEND=torch)"


@pytest.mark.parametrize("name", ["gat", "gatv2", "equal", "function", "gat_edges", "gatv2_edges"])
@pytest.mark.parametrize("dropout", [None, Dropout(0.5, torch.tensor([7]))])
def test_every_score_has_sums_and_coefficients(name, dropout, graph, scores):
    value = torch.randn(NODES, HEADS, CHANNELS)
    torch.manual_seed(0)
    out = dispatch.attend("auto", graph, scores[name], value, dropout)
    torch.manual_seed(0)
    gamma = dispatch.coefficients("auto", graph, scores[name], dropout)
    src, dst = graph.edge_index
    expected = gamma.loops.unsqueeze(-1) * value
    expected = expected.index_add(0, dst, gamma.edges.unsqueeze(-1) * value[src])
    torch.testing.assert_close(out, expected)


def test_coefficients_have_the_order_of_the_input_and_are_0_for_dropped_self_loops(graph, scores):
    gamma = dispatch.coefficients("auto", graph, scores["gat"])
    assert gamma.edges.shape == (3, HEADS) and gamma.loops.shape == (NODES, HEADS)
    assert gamma.edges[2].tolist() == [0.0] * HEADS
    torch.testing.assert_close(gamma.edges[0] + gamma.loops[1], torch.ones(HEADS))
    torch.testing.assert_close(gamma.edges[1] + gamma.loops[2], torch.ones(HEADS))


@pytest.fixture
def counting(monkeypatch):
    """A backend that only computes means, and counts them."""
    backend = SimpleNamespace(
        name="counting",
        can=Capabilities(frozenset({"neighbor_mean"}), frozenset(), edge_term=False, dropout=False),
        unavailable=lambda: None,
        describe=lambda: "counting",
        calls=0,
    )

    def neighbor_mean(graph, value):
        backend.calls += 1
        return torch_path.neighbor_mean(graph, value)

    backend.neighbor_mean = neighbor_mean
    monkeypatch.setattr(dispatch, "_BACKENDS", dict(dispatch._BACKENDS))
    dispatch.register_backend(backend)
    return backend


def test_auto_tries_the_last_registered_backend_first(counting, graph):
    mean, attention = LCATConv(4, 3, lambda1=0), LCATConv(4, 3)
    mean(torch.randn(NODES, 4), graph)
    assert counting.calls == 1
    attention(torch.randn(NODES, 4), graph)
    assert counting.calls == 1


def test_a_registered_backend_has_a_name(counting, graph):
    assert dispatch.backend_names() == ("auto", "torch", "fused", "counting")
    LCATConv(4, 3, lambda1=0, backend="counting")(torch.randn(NODES, 4), graph)
    assert counting.calls == 1
    with pytest.raises(RuntimeError, match=r"backend='counting' was asked for, .* use 'auto' or 'torch' or 'fused'"):
        LCATConv(4, 3, backend="counting", lambda2=0)(torch.randn(NODES, 4), graph)


def test_a_name_is_registered_once(counting):
    with pytest.raises(ValueError, match="there is already a backend 'counting'"):
        dispatch.register_backend(counting)


def test_a_backend_that_is_unavailable_says_why():
    backend = SimpleNamespace(unavailable=lambda: "there is no such device", can=torch_path.can)
    assert why_not(backend, PLAIN) == "there is no such device"


def pna(**options):
    options = {"towers": 2, "score_weights": "separate", **options}  # with one tower, no coefficients are needed
    return LCATPNAConv(4, 4, ["mean"], ["identity"], torch.tensor([0, 3]), backend="fused", **options)


REFUSED_LAYERS = {
    "score": (lambda: LCATConv(4, 3, score=lambda u, v: (u * v).sum(-1), backend="fused"), "not 'function'"),
}
EXTENDED_LAYERS = {
    "dropout": lambda: LCATConv(4, 3, dropout=0.5, backend="fused"),
    "edges": lambda: LCATConv(4, 3, edge_dim=4, backend="fused"),
    "adjacency": lambda: AttentionAdjacency(4, backend="fused"),
    "pna": pna,
    "eps": lambda: LCATGINConv(torch.nn.Linear(4, 3), eps=0.5, backend="fused"),
}


@pytest.mark.parametrize("case", REFUSED_LAYERS)
def test_a_layer_with_a_named_backend_refuses_what_that_cannot_compute(case, graph):
    build, reason = REFUSED_LAYERS[case]
    x = torch.randn(NODES, 4)
    with pytest.raises(RuntimeError, match=f"backend='fused' was asked for, .*{reason}.*; use 'auto' or 'torch'"):
        build()(x, graph.edge_index)


@pytest.mark.parametrize("case", EXTENDED_LAYERS)
def test_extras_are_computed_with_a_named_backend(case, graph):
    arguments = (torch.randn(3, 4),) if case == "edges" else ()
    EXTENDED_LAYERS[case]()(torch.randn(NODES, 4), graph.edge_index, *arguments)


def test_a_layer_with_dropout_is_evaluated_without_it_with_a_named_backend(graph):
    layer, x = LCATConv(4, 3, dropout=0.5, backend="fused").eval(), torch.randn(NODES, 4)
    assert torch.equal(layer(x, graph), layer(x, graph))


def test_attention_weights_are_computed_with_a_named_backend(graph):
    conv = LCATConv(4, 3, backend="fused")
    _, (edges, alpha) = conv(torch.randn(NODES, 4), graph, return_attention_weights=True)
    torch.testing.assert_close(torch.zeros(NODES, 1).index_add(0, edges[1], alpha), torch.ones(NODES, 1))
