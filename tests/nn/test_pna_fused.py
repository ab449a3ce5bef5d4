"""LCATPNAConv where its messages are never formed: PyG's PNAConv with the same weights, all settings, compiled code."""

import pytest
import torch
from torch_geometric.nn import PNAConv
from torch_geometric.nn.aggr import DegreeScalerAggregation, MultiAggregation, StdAggregation

from graphgym_lcat.kernels import fused, torch_path
from graphgym_lcat.nn import LCATPNAConv
from graphgym_lcat.nn.pna_aggregation import statistics_of

N, C = 40, 12
AGGREGATORS = ["mean", "min", "max", "std"]
SCALERS = ["identity", "amplification", "attenuation", "linear", "inverse_linear"]
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}
both_backends = pytest.mark.parametrize("backend", ["fused", "torch"])


@pytest.fixture
def edges():
    """With repeated edges, self-loops and a node without in-edges."""
    edge_index = torch.randint(N, (2, 300), generator=torch.Generator().manual_seed(0))
    return edge_index[:, edge_index[1] != 3]


@pytest.fixture
def x():
    return torch.randn(N, C, generator=torch.Generator().manual_seed(1))


def histogram(edges):
    return torch.bincount(torch.bincount(edges[1], minlength=N))


def layer(edges, aggregators=AGGREGATORS, scalers=SCALERS, **options):
    torch.manual_seed(0)
    return LCATPNAConv(C, 8, aggregators, scalers, histogram(edges), **options)


def value_and_gradients(conv, x, edges, names):
    x = x.detach().clone().requires_grad_()
    out = conv(x, edges)
    parameters = dict(conv.named_parameters())
    grads = torch.autograd.grad(out.square().sum(), [x, *(parameters[name] for name in names)])
    return out.detach(), *grads


def assert_same(actual, expected, tolerance):
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=tolerance, atol=tolerance * max(1.0, e.abs().max().item()))


@both_backends
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "aggregators", [AGGREGATORS, ["sum", "var"], ["max"], ["std", "mean", "sum", "min", "var", "max"]]
)
@pytest.mark.parametrize(
    "options", [{}, {"post_layers": 2}, {"train_norm": True}], ids=lambda o: "+".join(o) or "plain"
)
def test_without_attention_it_is_pna(options, aggregators, dtype, backend, x, edges):
    ours = layer(edges, aggregators, lambda1=0, backend=backend, **options).to(dtype)
    plain = PNAConv(C, 8, aggregators, SCALERS, histogram(edges), **options).to(dtype)
    plain.load_state_dict(ours.state_dict(), strict=False)
    names = [name for name, _ in plain.named_parameters()]
    x = x.to(dtype)
    expected = value_and_gradients(plain, x, edges, names)
    assert_same(value_and_gradients(ours, x, edges, names), expected, TOLERANCE[dtype])


@both_backends
@pytest.mark.parametrize("score_weights", ["shared", "separate"])
@pytest.mark.parametrize("score", ["gat", "gatv2", lambda u, v: (u * v).sum(dim=-1)], ids=["gat", "gatv2", "function"])
def test_equals_the_layer_that_forms_its_messages(score, score_weights, backend, x, edges):
    if callable(score) and backend == "fused":
        backend = "auto"
    conv = layer(edges, heads=3, score=score, score_weights=score_weights, backend=backend).double()
    names = [name for name, parameter in conv.named_parameters()]
    actual = value_and_gradients(conv, x.double(), edges, names)
    seen = []
    conv.backend = "torch"
    handle = conv.register_message_forward_hook(lambda *arguments: seen.append(1))
    expected = value_and_gradients(conv, x.double(), edges, names)
    handle.remove()
    assert seen == [1]
    assert_same(actual, expected, 1e-9)


def test_messages_are_not_formed(x, edges, monkeypatch):
    options = ({}, {"lambda1": 0}, {"score": "gatv2"}, {"heads": 4, "lambda_per_head": True})
    layers = [layer(edges, **chosen) for chosen in options]
    monkeypatch.setattr(LCATPNAConv, "message", None)
    monkeypatch.setattr(torch_path, "statistics", None)
    for conv in layers:
        assert conv(x, edges).isfinite().all()


def test_hooks_of_the_first_post_layer_see_its_input(x, edges):
    conv = layer(edges, heads=3)
    expected, seen = conv(x, edges), []
    conv.post_nns[0][0].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape))
    torch.testing.assert_close(conv(x, edges), expected)
    assert seen == [(N, (len(AGGREGATORS) * len(SCALERS) + 1) * C)]


@pytest.mark.parametrize("options", [{"towers": 2, "score_weights": "separate"}, {"pre_layers": 2}])
def test_other_messages_are_formed(options, x, edges, monkeypatch):
    conv = layer(edges, **options)
    expected = conv(x, edges)
    monkeypatch.setattr(fused, "statistics", None)
    torch.testing.assert_close(conv(x, edges), expected)


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        (DegreeScalerAggregation(AGGREGATORS, SCALERS, torch.ones(3)), ("mean", "min", "max", "std")),
        (DegreeScalerAggregation(["mean", "median"], SCALERS, torch.ones(3)), None),
        (DegreeScalerAggregation(["mean", "mean"], SCALERS, torch.ones(3)), None),
        (DegreeScalerAggregation([StdAggregation(semi_grad=True)], SCALERS, torch.ones(3)), None),
        (DegreeScalerAggregation(MultiAggregation(["mean", "max"], mode="sum"), SCALERS, torch.ones(3)), None),
        (StdAggregation(), None),
    ],
)
def test_which_aggregators_are_statistics(aggregation, expected):
    assert statistics_of(aggregation) == expected


def test_other_aggregators_are_pyg_s(x, edges):
    ours = layer(edges, ["mean", "median"], lambda1=0)
    plain = PNAConv(C, 8, ["mean", "median"], SCALERS, histogram(edges))
    plain.load_state_dict(ours.state_dict(), strict=False)
    torch.testing.assert_close(ours(x, edges), plain(x, edges))


def test_an_unknown_scaler_is_named(x, edges):
    with pytest.raises(ValueError, match="unknown scaler 'log'; `scalers` may hold identity, amplification"):
        layer(edges, scalers=["identity", "log"])(x, edges)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"lambda1": 0}, {"heads": 3}], ids=["pna", "lpnacat"])
def test_compiles_without_graph_breaks(options, x, edges):
    torch._dynamo.reset()
    conv = layer(edges, **options)
    compiled = torch.compile(conv, backend="aot_eager", fullgraph=True)
    results = []
    for call in (conv, compiled):
        inputs = x.clone().requires_grad_()
        out = call(inputs, edges)
        results.append((out.detach(), *torch.autograd.grad(out.square().sum(), (inputs, conv.lin.weight))))
    torch.testing.assert_close(*results)


@pytest.mark.slow
def test_exports_with_dynamic_sizes(x, edges):
    conv = layer(edges, heads=3)
    nodes, count = torch.export.Dim("nodes", min=2, max=10**6), torch.export.Dim("edges", min=2, max=10**6)
    shapes = {"x": {0: nodes}, "edge_index": {1: count}}
    program = torch.export.export(conv, (x, edges), dynamic_shapes=shapes)
    smaller, fewer = x[:20], edges[:, :90] % 20
    torch.testing.assert_close(program.module()(smaller, fewer), conv(smaller, fewer))
