"""Jacobians, ``torch.func``, forward mode, export with other sizes, ONNX: what users do with a model besides training it."""

import pytest
import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, vmap
from torch_geometric.data import Data
from torch_geometric.utils import total_influence

from graphgym_lcat.kernels import scatter_path, torch_path
from graphgym_lcat.nn import LCATConv, LCATGCN2Conv, LCATGINConv, LCATPNAConv

SCORES = ["gat", "gatv2"]
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


@pytest.fixture(params=[(score, edge_dim) for score in SCORES for edge_dim in (None, 4)])
def layer(request, edge_index):
    """A layer as a function of node features, the layer itself, and its other inputs."""
    torch.manual_seed(0)
    score, edge_dim = request.param
    conv = LCATConv(5, 3, heads=2, score=score, edge_dim=edge_dim, init="normal").double()
    edge_attr = None if edge_dim is None else torch.randn(40, edge_dim, dtype=torch.double)
    return lambda x: conv(x, edge_index, edge_attr), conv, (edge_index, edge_attr)


def test_jacobians(layer, x):
    function, _, _ = layer
    expected = torch.autograd.functional.jacobian(function, x)
    for compute in (jacrev, jacfwd):
        torch.testing.assert_close(compute(function)(x), expected)
    vectorized = torch.autograd.functional.jacobian(function, x, vectorize=True)
    torch.testing.assert_close(vectorized, expected)


def test_vmap_and_grad(layer, x):
    function, conv, inputs = layer
    batch = torch.stack([x, 2 * x, -x])
    torch.testing.assert_close(vmap(function)(batch), torch.stack([function(part) for part in batch]))
    parameters = dict(conv.named_parameters())
    loss = grad(lambda values: functional_call(conv, values, (x, *inputs)).square().sum())
    expected = torch.autograd.grad(function(x).square().sum(), list(parameters.values()))
    torch.testing.assert_close(list(loss(parameters).values()), list(expected))


def test_second_derivatives(layer, x):
    """Those of torch.func, which choose the path, equal those of the torch path."""
    function, conv, _ = layer
    computed = hessian(lambda part: function(part).square().sum())(x)
    conv.backend = "torch"
    expected = torch.autograd.functional.hessian(lambda part: function(part).square().sum(), x)
    torch.testing.assert_close(computed, expected)


def test_the_fused_kernels_say_that_they_cannot(layer, x):
    function, conv, _ = layer
    conv.backend = "fused"
    with pytest.raises(RuntimeError, match=r"it does not support torch\.func, .* use 'auto' or 'torch'"):
        vmap(function)(torch.stack([x, x]))


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("lambda1", [0.5, 0.0])
@pytest.mark.parametrize("score", [*SCORES, lambda u, v: (u * v).sum(dim=-1)], ids=[*SCORES, "function"])
def test_both_torch_paths_agree(add_self_loops, lambda1, score, x, edge_index, monkeypatch):
    torch.manual_seed(0)
    conv = LCATConv(
        5, 3, heads=2, score=score, lambda1=lambda1, dropout=0.5, add_self_loops=add_self_loops, backend="torch"
    ).double()
    pairs = [x, (x, torch.randn(14, 5, dtype=torch.double)), (x, None)]
    results = []
    for path in (torch_path, scatter_path):
        monkeypatch.setattr("graphgym_lcat.kernels.dispatch._variant", lambda backend, request, path=path: path)
        torch.manual_seed(1)
        outs = [part for pair in pairs for part in flatten(conv(pair, edge_index, return_attention_weights=True))]
        loss = sum((out * torch.arange(out.numel()).view_as(out)).sum() for out in outs if out.is_floating_point())
        grads = torch.autograd.grad(loss, list(conv.parameters()), allow_unused=True)
        results.append([*outs, *grads])
    torch.testing.assert_close(*results)


def flatten(result):
    out, (edges, alpha) = result
    return out, edges, alpha


@pytest.mark.parametrize("kind", ["pna", "gcn2", "gin"])
def test_layers_over_the_adjacency(kind, x, edge_index):
    x = torch.cat([x, x[:, :1]], dim=1)
    conv = {
        "pna": lambda: LCATPNAConv(6, 4, ["mean", "max", "std"], ["identity"], torch.tensor([0, 2, 3]), heads=2),
        "gcn2": lambda: LCATGCN2Conv(6, 0.1, 0.5, 1, heads=2),
        "gin": lambda: LCATGINConv(torch.nn.Linear(6, 4), heads=2),
    }[kind]().double()

    def function(x):
        return conv(x, x, edge_index) if kind == "gcn2" else conv(x, edge_index)

    expected = torch.autograd.functional.jacobian(function, x)
    torch.testing.assert_close(jacrev(function)(x), expected)
    torch.testing.assert_close(torch.autograd.functional.jacobian(function, x, vectorize=True), expected)


def test_total_influence(x, edge_index):
    conv = LCATConv(5, 3, lambda1=0, lambda2=0)
    data = Data(x=x.float(), edge_index=edge_index)
    influence, _ = total_influence(conv, data, max_hops=2, num_samples=12)
    assert influence[0] > 0 and influence[1] > 0 and influence[2] == 0


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize("score", SCORES)
def test_export_with_other_numbers_of_nodes_and_edges(score, backend, x, edge_index):
    conv = LCATConv(5, 3, heads=2, score=score, backend=backend).double().eval()
    sizes = {"x": {0: torch.export.Dim("nodes", min=2)}, "edge_index": {1: torch.export.Dim("edges", min=2)}}
    program = torch.export.export(conv, (x,), {"edge_index": edge_index}, dynamic_shapes=sizes).module()
    more, more_edges = torch.cat([x, x]), torch.cat([edge_index, edge_index + 12, edge_index], dim=1)
    torch.testing.assert_close(program(more, edge_index=more_edges), conv(more, more_edges))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnx_with_other_numbers_of_nodes_and_edges(x, edge_index):
    from onnx.reference import ReferenceEvaluator

    model = torch.nn.Sequential(LCATConv(5, 3, heads=2), LCATConv(6, 3, score="gatv2")).eval()
    model.forward = lambda x, edge_index: model[1](model[0](x, edge_index).relu(), edge_index)
    sizes = {"x": {0: torch.export.Dim("nodes", min=2)}, "edge_index": {1: torch.export.Dim("edges", min=2)}}
    x = x.float()
    program = torch.onnx.export(model, (x, edge_index), dynamo=True, dynamic_shapes=sizes, verbose=False)
    more, more_edges = torch.cat([x, x]), torch.cat([edge_index, edge_index + 12], dim=1)
    inputs = {"x": more.numpy(), "edge_index": more_edges.numpy()}
    (out,) = ReferenceEvaluator(program.model_proto).run(None, inputs)
    torch.testing.assert_close(torch.from_numpy(out), model(more, more_edges).detach())
