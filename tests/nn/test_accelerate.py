"""``accelerate`` changes the layers of a PyG model and nothing else."""

import copy
import pickle

import pytest
import torch
from torch_geometric.nn import GAT, GATConv, GATv2Conv, GCNConv, Sequential

from graphgym_lcat.nn import LCATConv, LCATv2Conv, accelerate

NODES, EDGES = 12, 40
KINDS = {"gat": GATConv, "gatv2": GATv2Conv}
OPTIONS = {
    "plain": {},
    "heads": {"heads": 3, "concat": False, "negative_slope": 0.1, "bias": False},
    "edges": {"heads": 2, "edge_dim": 4, "fill_value": "add", "residual": True},
    "no_loops": {"heads": 2, "add_self_loops": False, "flow": "target_to_source"},
    "pair": {"in_channels": (5, 6), "heads": 2, "residual": True},
}


@pytest.fixture
def pair(x):
    return x, torch.randn(NODES, 6, dtype=torch.double)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", OPTIONS)
def test_outputs_gradients_and_state_stay(kind, options, pair, edge_index):
    torch.manual_seed(0)
    conv = KINDS[kind](**{"in_channels": 5, "out_channels": 3, **OPTIONS[options]}).double()
    theirs = copy.deepcopy(conv)
    parameters = dict(conv.named_parameters())
    report = accelerate(conv)
    assert list(report.replaced) == [""] and not report.kept
    assert type(conv) is {"gat": LCATConv, "gatv2": LCATv2Conv}[kind]
    assert all(parameter is parameters[name] for name, parameter in conv.named_parameters())
    assert list(conv.state_dict()) == list(theirs.state_dict())
    features = pair if options == "pair" else pair[0]
    edge_attr = torch.randn(EDGES, 4, dtype=torch.double) if options == "edges" else None
    results = []
    for layer in (conv, theirs):
        out, (edges, alpha) = layer(features, edge_index, edge_attr, return_attention_weights=True)
        (out.square().sum() + alpha.square().sum()).backward()
        results.append((out, edges, alpha, layer(features, edge_index, edge_attr)))
    torch.testing.assert_close(*results)
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(parameters[name].grad, parameter.grad)


@pytest.mark.parametrize("v2", [False, True])
def test_a_model_of_pyg(v2, x, edge_index):
    model = GAT(5, 8, num_layers=3, out_channels=4, heads=2, v2=v2, jk="cat", norm="batch_norm", dropout=0.5).double()
    theirs = copy.deepcopy(model)
    state = torch.get_rng_state()
    report = accelerate(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert str(report).startswith("replaced 3 of 3 attention layers\n  convs.0: GAT")
    assert accelerate(model).replaced == {}
    for mode in (theirs.eval(), model.eval(), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        torch.testing.assert_close(mode(x, edge_index), theirs(x, edge_index))
    theirs.load_state_dict(model.state_dict())


def test_an_optimizer_made_before_still_trains_the_model(x, edge_index):
    model = GAT(5, 8, num_layers=2, out_channels=4, heads=2).double()
    theirs = copy.deepcopy(model)
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.1) for m in (model, theirs)]
    accelerate(model)
    for _ in range(3):
        for net, optimizer in zip((model, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            net(x, edge_index).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(model.state_dict(), theirs.state_dict())


def test_learn_turns_the_layers_into_lcat(x, edge_index):
    model = GAT(5, 8, num_layers=2, out_channels=4, heads=2, v2=True).double()
    accelerate(model, learn=True)
    assert [conv.lambdas() for conv in model.convs] == [pytest.approx((0.5, 0.5))] * 2
    model(x, edge_index).square().sum().backward()
    assert all(conv.interpolation.y.grad.abs() > 0 for conv in model.convs)
    assert all(parameter.dtype == torch.double for parameter in model.parameters())


def test_hooks_modes_and_other_attributes_stay(x, edge_index):
    conv = GATConv(5, 3).double().eval()
    conv.label, seen = "mine", []
    conv.register_forward_hook(lambda module, arguments, out: seen.append("layer"))
    conv.lin.register_forward_hook(lambda module, arguments, out: seen.append("lin"))
    conv.register_message_forward_hook(lambda module, arguments, out: seen.append("message"))
    accelerate(conv)
    conv(x, edge_index)
    assert seen == ["lin", "message", "layer"]
    assert conv.label == "mine" and not conv.training


def test_a_layer_used_twice_is_replaced_once(x, edge_index):
    conv = GATConv(5, 5).double()
    model = Sequential("x, edge_index", [(conv, "x, edge_index -> x"), (conv, "x, edge_index -> x")])
    expected = model(x, edge_index)
    assert len(accelerate(model).replaced) == 1
    torch.testing.assert_close(model(x, edge_index), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_are_not_known_yet(kind, x, edge_index):
    conv = KINDS[kind](-1, 3, heads=2, edge_dim=-1, residual=True)
    accelerate(conv)
    assert conv(x.float(), edge_index, torch.randn(EDGES, 4)).shape == (NODES, 6)
    theirs = KINDS[kind](5, 3, heads=2, edge_dim=4, residual=True)
    theirs.load_state_dict(conv.state_dict())


def subclassed():
    class Mine(GATConv):
        pass

    return Mine(5, 3)


def patched():
    conv = GATConv(5, 3)
    conv.message = lambda x_j, alpha: x_j
    return conv


def explained():
    conv = GATConv(5, 3)
    conv.explain = True
    return conv


def pruned():
    conv = GATConv(5, 3)
    torch.nn.utils.prune.l1_unstructured(conv, "att_src", amount=1)
    return conv


def hooked():
    conv = GATv2Conv(5, 3, edge_dim=2)
    conv.lin_edge.register_forward_hook(lambda module, arguments, out: None)
    return conv


def parametrized():
    conv = GATConv(5, 3)
    torch.nn.utils.parametrizations.weight_norm(conv.lin)
    return conv


KEPT = [
    (subclassed, "Mine is a subclass of GATConv and may compute something else"),
    (lambda: GATConv(5, 3, aggr="max"), "it aggregates by 'max', attention by a sum"),
    (patched, "its method `message` was replaced"),
    (explained, "an explainer is using it"),
    (pruned, "its `att_src` is not a parameter but computed"),
    (hooked, "its `lin_edge` has hooks"),
    (parametrized, "its `lin` is a ParametrizedLinear"),
]


@pytest.mark.parametrize(("build", "reason"), KEPT)
def test_what_is_kept_and_why(build, reason):
    model = torch.nn.ModuleDict({"odd": build(), "plain": GATConv(5, 3), "other": GCNConv(5, 3)})
    kind = type(model["odd"])
    report = accelerate(model)
    assert list(report.replaced) == ["plain"]
    assert report.kept["odd"].startswith(reason)
    assert "replaced 1 of 2 attention layers\n  plain: GATConv(5, 3, heads=1) is now LCATConv(5" in str(report)
    assert f"  odd: kept: {reason}" in str(report)
    assert type(model["odd"]) is kind


def test_a_model_without_attention():
    assert str(accelerate(GCNConv(5, 3))) == "the model has no GATConv and no GATv2Conv"


@pytest.mark.parametrize("v2", [False, True])
def test_an_accelerated_model_compiles_and_exports(v2, edge_index):
    x = torch.randn(NODES, 5)
    model = GAT(5, 8, num_layers=2, out_channels=4, heads=2, v2=v2).eval()
    accelerate(model)
    expected = model(x, edge_index)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(x, edge_index), expected)
    torch.testing.assert_close(torch.export.export(model, (x, edge_index)).module()(x, edge_index), expected)


def test_full_backward_hooks_are_called(x, edge_index):
    conv = GATConv(5, 3).double()
    conv.register_buffer("note", torch.ones(1), persistent=False)
    calls = []
    conv.register_full_backward_hook(lambda module, grad_input, grad_output: calls.append(len(grad_output)))
    accelerate(conv)
    conv(x.clone().requires_grad_(), edge_index).sum().backward()
    assert calls == [1]
    assert "note" not in conv.state_dict()
