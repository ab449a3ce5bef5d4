"""The fused kernels in compiled and exported programs."""

import pytest
import torch
from fused_cases import Case

from graphgym_lcat.kernels import Graph, compact, ops, ops_attention
from graphgym_lcat.nn import LCATConv

OPTIONS = {
    "gcn": {"lambda1": 0},
    "lcat": {},
    "lcatv2": {"score": "gatv2"},
    "padded": {"heads": 3, "out_channels": 5, "lambda_per_head": True},
}
EXTRAS = {
    "dropout": ({"dropout": 0.4}, {}),
    "edge features": ({"edge_dim": 3}, {"edge_attr": 3}),
    "coefficients": ({}, {"return_attention_weights": True}),
    "all": ({"dropout": 0.4, "edge_dim": 3}, {"edge_attr": 3, "return_attention_weights": True}),
}


@pytest.fixture
def edge_index():
    return torch.randint(50, (2, 400), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def x():
    return torch.randn(50, 16, generator=torch.Generator().manual_seed(1))


def layer(name):
    torch.manual_seed(0)
    return LCATConv(**{"in_channels": 16, "out_channels": 8, "heads": 4, "backend": "fused", **OPTIONS[name]})


NO_DROPOUT = (torch.zeros(1, dtype=torch.int64), 0.0, 0.2)
NOTHING = torch.empty(0, dtype=torch.float64)


@pytest.mark.parametrize(
    ("module", "primitive", "extra"),
    [
        (ops, "neighbor_mean", ()),
        (ops, "convolve", (True,)),
        (ops_attention, "attend_gat", (NOTHING, *NO_DROPOUT, True)),
        (ops_attention, "attend_gatv2", (*[NOTHING] * 3, *NO_DROPOUT)),
    ],
)
def test_operators_are_what_they_declare(module, primitive, extra, edge_index):
    graph = Graph.from_edge_index(edge_index, 50)
    inputs = Case(graph, heads=2, channels=8, seed=0).inputs(primitive, torch.float64)
    handle = (edge_index, 50, 50, True, True)
    checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(getattr(module, primitive), (*handle, *inputs, *extra), test_utils=checks)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_compiles_without_graph_breaks(name, x, edge_index):
    torch._dynamo.reset()
    conv = layer(name)
    backend = "inductor" if name == "lcat" else "aot_eager"  # Inductor takes long to compile
    compiled = torch.compile(conv, backend=backend, fullgraph=True)
    for edges in (edge_index, edge_index[:, :100].contiguous()):
        grads = []
        for call in (conv, compiled):
            inputs = x.clone().requires_grad_()
            out = call(inputs, edges)
            grads.append(torch.autograd.grad(out.square().sum(), (inputs, conv.lin.weight)))
            with torch.no_grad():
                torch.testing.assert_close(call(x, edges), out.detach(), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_compiled_code_finds_layouts_again(x, edge_index, monkeypatch):
    torch._dynamo.reset()
    built = []
    build = compact.CompactLayout.__init__
    monkeypatch.setattr(compact.CompactLayout, "__init__", lambda *args: (built.append(1), build(*args))[1])
    compiled = torch.compile(layer("lcat"), backend="aot_eager", fullgraph=True)
    for _ in range(3):
        compiled(x.clone().requires_grad_(), edge_index).sum().backward()
    assert len(built) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_exports_with_dynamic_sizes(name, x, edge_index):
    conv = layer(name)
    nodes, edges = torch.export.Dim("nodes", min=2, max=10**6), torch.export.Dim("edges", min=2, max=10**6)
    program = torch.export.export(conv, (x, edge_index), dynamic_shapes={"x": {0: nodes}, "edge_index": {1: edges}})
    assert any("lcat" in str(node.target) for node in program.graph.nodes)
    smaller, fewer = x[:20], edge_index[:, :90] % 20
    torch.testing.assert_close(program.module()(smaller, fewer), conv(smaller, fewer))


def test_memory_that_compiled_code_uses_again_has_a_layout_of_its_own(x, edge_index):
    other = edge_index.flip(0).clone()
    expected = ops.neighbor_mean(other, 50, 50, True, True, x)
    first = ops.neighbor_mean(edge_index, 50, 50, True, True, x)
    version = edge_index._version
    # The same Python object, memory and version: what compiled code does to intermediate results.
    edge_index.numpy()[:] = other
    assert edge_index._version == version
    again = ops.neighbor_mean(edge_index, 50, 50, True, True, x)
    assert torch.equal(again, expected) and not torch.equal(again, first)


@pytest.mark.slow
def test_compiled_layers_on_graphs_made_within_the_program(x, edge_index):
    torch._dynamo.reset()
    first, second = layer("lcat"), layer("lcatv2")

    def two_graphs(x, edge_index):
        middle = first(x, edge_index.flip(0) + 0)
        return second(middle[:, :16], (edge_index + 1) % 50)

    with torch.no_grad():
        torch.testing.assert_close(torch.compile(two_graphs)(x, edge_index), two_graphs(x, edge_index))


def test_a_compiled_program_refuses_nodes_that_do_not_exist(x, edge_index):
    edge_index[0, 0] = 50
    with pytest.raises(ValueError, match=r"must hold source nodes in \[0, 49\].*got 50"):
        ops.neighbor_mean(edge_index, 50, 50, True, True, x)


@pytest.mark.slow
@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("name", EXTRAS)
def test_extras_compile_without_graph_breaks(name, score, x, edge_index):
    torch._dynamo.reset()
    options, arguments = EXTRAS[name]
    conv = LCATConv(16, 8, heads=4, score=score, backend="fused", **options)
    arguments = dict(arguments)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]  # compiled code keeps dropped self-loops in its list
    if "edge_attr" in arguments:
        arguments["edge_attr"] = torch.randn(edge_index.size(1), arguments["edge_attr"])
    # The default generator of eager code, so that both draw the same seeds.
    torch._inductor.config.fallback_random = True
    results = []
    backend = "inductor" if (name, score) == (next(iter(EXTRAS)), "gat") else "aot_eager"
    for call in (conv, torch.compile(conv, backend=backend, fullgraph=True)):
        torch.manual_seed(5)
        inputs = x.clone().requires_grad_()
        out = call(inputs, edge_index, **arguments)
        parts = (out[0], out[1][1]) if isinstance(out, tuple) else (out,)
        loss = sum((part * part).sum() for part in parts)
        results.append([*parts, *torch.autograd.grad(loss, (inputs, conv.lin.weight))])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
