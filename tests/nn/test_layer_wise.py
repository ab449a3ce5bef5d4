"""Layer-wise inference and trimming give what the layers compute on the complete graph, also with λ2 ≠ 0."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, HeteroConv, PNAConv, SAGEConv
from torch_geometric.utils import to_undirected

from graphgym_lcat.data import NeighborLoader
from graphgym_lcat.nn import (
    CATConv,
    LCATConv,
    LCATGCN2Conv,
    LCATGINConv,
    LCATPNAConv,
    infer_layer,
    layer_wise,
    trim_to_layer,
)
from graphgym_lcat.nn.trimming import largest_reach

NODES, WIDTH = 50, 8


@pytest.fixture
def graph():
    generator = torch.Generator().manual_seed(0)
    edge_index = to_undirected(torch.randint(NODES, (2, 60), generator=generator), num_nodes=NODES)
    return torch.randn(NODES, WIDTH, generator=generator, dtype=torch.double), edge_index


HISTOGRAM = torch.tensor([2, 10, 10, 10, 10, 8])
LAYERS = {
    "lcat": lambda: LCATConv(WIDTH, 4, heads=2),
    "lambda per head": lambda: LCATConv(WIDTH, 4, heads=2, lambda_per_head=True),
    "catv2": lambda: CATConv(WIDTH, 4, heads=2, score="gatv2"),
    "separate weights": lambda: LCATConv(WIDTH, 4, heads=2, score_weights="separate", residual=True),
    "own score": lambda: LCATConv(WIDTH, 4, heads=2, score=lambda u, v: (u * v).sum(-1)),
    "no self-loops": lambda: LCATConv(WIDTH, 4, heads=2, add_self_loops=False),
    "gat": lambda: LCATConv(WIDTH, 4, heads=2, lambda2=0.0),
    "gcn": lambda: LCATConv(WIDTH, 4, heads=2, lambda1=0.0),
    "pna": lambda: LCATPNAConv(WIDTH, WIDTH, ["mean", "max"], ["identity", "amplification"], HISTOGRAM, heads=2),
    "gin": lambda: LCATGINConv(torch.nn.Linear(WIDTH, WIDTH), heads=2),
    "PyG's GAT": lambda: GATConv(WIDTH, 4, heads=2),
    "PyG's GCN": lambda: GCNConv(WIDTH, WIDTH),
    "PyG's SAGE": lambda: SAGEConv(WIDTH, WIDTH),
    "PyG's PNA": lambda: PNAConv(WIDTH, WIDTH, ["mean", "std"], ["attenuation"], HISTOGRAM),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("batch_size", [7, NODES])
def test_a_layer_computed_in_blocks_gives_the_same(name, batch_size, graph):
    torch.manual_seed(1)
    layer = LAYERS[name]().double().eval()
    torch.testing.assert_close(infer_layer(layer, *graph, batch_size=batch_size), layer(*graph).detach())


def test_edge_features_and_a_first_representation_go_with_their_block(graph):
    x, edge_index = graph
    edge_attr = torch.randn(edge_index.size(1), 3, dtype=torch.double)
    layer = LCATConv(WIDTH, 4, edge_dim=3, score="gatv2").double()
    torch.testing.assert_close(
        infer_layer(layer, x, edge_index, edge_attr, batch_size=9), layer(x, edge_index, edge_attr).detach()
    )
    layer = LCATGCN2Conv(WIDTH, 0.1, 0.5, 1, heads=2).double()
    torch.testing.assert_close(
        infer_layer(layer, x, x.flip(0), edge_index, batch_size=9), layer(x, x.flip(0), edge_index).detach()
    )


class Stack(torch.nn.Module):
    """Layers with an activation between them, trimmed if the numbers of hops are given."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x, edge_index, nodes=None, edges=None):
        for number, layer in enumerate(self.layers):
            if nodes is not None:
                hops = largest_reach(self)
                x, edge_index, _ = trim_to_layer(number, len(self.layers), nodes, edges, x, edge_index, reach=hops)
            x = layer(x, edge_index).tanh()
        return x


def test_a_model_computes_layer_by_layer_within_the_context_only(graph):
    model = Stack(LAYERS["lcat"](), LAYERS["PyG's GAT"](), LAYERS["catv2"]()).double()
    expected = model(*graph).detach()
    with layer_wise(model, 8):
        inside = model(*graph)
    torch.testing.assert_close(inside, expected)
    assert not inside.requires_grad
    assert model(*graph).requires_grad


@pytest.mark.parametrize("kind", ["lcat", "catv2", "gat", "PyG's GCN", "gin"])
@pytest.mark.parametrize("sizes", [[4, 4], [4, 4, 4], [-1] * 4])
def test_trimming_changes_no_output_of_the_nodes_that_were_asked_for(kind, sizes, graph):
    x, edge_index = graph
    torch.manual_seed(2)
    model = Stack(LAYERS[kind](), LAYERS[kind]()).double()
    data = Data(x=x, edge_index=edge_index)
    for batch in NeighborLoader(data, sizes, torch.arange(20), batch_size=5):
        expected = model(batch.x, batch.edge_index)[:5]
        trimmed = model(batch.x, batch.edge_index, batch.num_sampled_nodes, batch.num_sampled_edges)
        torch.testing.assert_close(trimmed[:5], expected)
        if len(sizes) > 2 and kind == "lcat":
            assert trimmed.size(0) == sum(batch.num_sampled_nodes[:3]) < batch.num_nodes


@pytest.mark.parametrize(("hops", "exact"), [(2, False), (4, True)])
def test_two_layers_with_lambda2_need_four_hops_for_an_exact_result(hops, exact, graph):
    x, edge_index = graph
    torch.manual_seed(3)
    model = Stack(LAYERS["catv2"](), LAYERS["catv2"]()).double()
    expected = model(x, edge_index)
    batch = next(iter(NeighborLoader(Data(x=x, edge_index=edge_index), [-1] * hops, torch.arange(10), batch_size=10)))
    out = model(batch.x, batch.edge_index, batch.num_sampled_nodes, batch.num_sampled_edges)[:10]
    assert torch.allclose(out, expected[:10]) == exact


def test_heterogeneous_layers_are_computed_in_blocks(graph):
    generator = torch.Generator().manual_seed(4)
    x = {"a": graph[0], "b": torch.randn(20, WIDTH, generator=generator, dtype=torch.double)}
    edges = torch.stack(
        [torch.randint(20, (90,), generator=generator), torch.randint(NODES, (90,), generator=generator)]
    )
    edge_index = {("a", "to", "a"): graph[1], ("b", "to", "a"): edges, ("a", "back", "b"): edges.flip(0)}
    conv = HeteroConv(
        {
            ("a", "to", "a"): LCATConv(WIDTH, 4, heads=2),
            ("b", "to", "a"): LCATConv((WIDTH, WIDTH), 4, heads=2, add_self_loops=False),
            ("a", "back", "b"): LCATConv((WIDTH, WIDTH), 4, heads=2, add_self_loops=False, score="gatv2"),
        }
    ).double()
    expected = conv(x, edge_index)
    with layer_wise(conv, 6):
        inside = conv(x, edge_index)
    for kind, out in expected.items():
        torch.testing.assert_close(inside[kind], out.detach())


def test_what_cannot_be_exact_is_refused(graph):
    class Unknown(GATConv.__base__):
        pass

    with pytest.raises(TypeError, match="layer-wise inference of Unknown may not be exact"), layer_wise(Unknown(), 5):
        pass
    layer = LCATConv(WIDTH, 4, flow="target_to_source").double()
    with pytest.raises(ValueError, match="needs flow='source_to_target'"):
        infer_layer(layer, *graph, batch_size=5)
    with pytest.raises(ValueError, match="does not support the argument `return_attention_weights`"):
        infer_layer(LAYERS["lcat"]().double(), *graph, return_attention_weights=True, batch_size=5)


@pytest.mark.parametrize("kind", [GCNConv, GCN2Conv])
def test_cached_edges_are_neither_used_nor_replaced(kind, graph):
    x, edge_index = graph
    layer = (GCNConv(WIDTH, WIDTH, cached=True) if kind is GCNConv else GCN2Conv(WIDTH, 0.1, cached=True)).double()
    arguments = (x, edge_index) if kind is GCNConv else (x, x, edge_index)
    in_blocks = infer_layer(layer, *arguments, batch_size=7)
    assert layer.cached and layer._cached_edge_index is None
    torch.testing.assert_close(in_blocks, layer(*arguments).detach())
    cached = layer._cached_edge_index
    assert cached is not None
    torch.testing.assert_close(infer_layer(layer, *arguments, batch_size=7), in_blocks)
    assert layer._cached_edge_index is cached


@pytest.mark.parametrize(
    "build",
    [lambda: LCATConv(WIDTH, 4), lambda: LCATConv((WIDTH, WIDTH), 4), lambda: GATConv((WIDTH, WIDTH), 4)],
    ids=["lcat", "lcat with two weights", "PyG's GAT with two weights"],
)
def test_a_pair_of_the_same_tensor_is_one_set_of_nodes(build, graph):
    x, edge_index = graph
    layer = build().double().eval()
    expected = layer((x, x), edge_index).detach()
    torch.testing.assert_close(infer_layer(layer, (x, x), edge_index, batch_size=7), expected)


def test_a_replaced_forward_is_there_again_afterwards(graph):
    layer = SAGEConv(WIDTH, WIDTH).double()
    plain = SAGEConv(WIDTH, WIDTH)
    original = layer.forward
    layer.forward = replaced = lambda *arguments, **keywords: 2 * original(*arguments, **keywords)
    with layer_wise(torch.nn.ModuleList([layer, plain]), 7):
        in_blocks = layer(*graph)
    assert layer.forward is replaced and "forward" not in vars(plain)
    torch.testing.assert_close(in_blocks, layer(*graph).detach())
