"""What PyG users do with attention layers works with ours."""

import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer
from torch_geometric.nn import GCN2Conv, HeteroConv, MessagePassing, to_hetero
from torch_geometric.nn.models.basic_gnn import BasicGNN

from graphgym_lcat.nn import CATConv, LCATConv, LCATGCN2Conv, LCATGINConv, LCATPNAConv

NODES, CHANNELS = 12, 8
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


class Net(torch.nn.Module):
    """Two layers of one kind."""

    def __init__(self, kind, edge_index):
        super().__init__()
        histogram = torch.bincount(torch.bincount(edge_index[1], minlength=NODES))
        build = {
            "lcat": lambda: LCATConv(CHANNELS, 4, heads=2),
            "catv2": lambda: CATConv(CHANNELS, 4, heads=2, score="gatv2"),
            "pna": lambda: LCATPNAConv(CHANNELS, CHANNELS, ["mean", "max"], ["identity"], histogram, heads=2),
            "gcn2": lambda: LCATGCN2Conv(CHANNELS, 0.1, 0.5, 1, heads=2),
            "gin": lambda: LCATGINConv(torch.nn.Linear(CHANNELS, CHANNELS), heads=2),
        }[kind]
        self.kind = kind
        self.convs = torch.nn.ModuleList([build(), build()])
        self.head = torch.nn.Linear(CHANNELS, 3)

    def forward(self, x, edge_index):
        first = x
        for conv in self.convs:
            x = conv(x, first, edge_index) if self.kind == "gcn2" else conv(x, edge_index)
            x = x.tanh()
        return self.head(x)


KINDS = ("lcat", "catv2", "pna", "gcn2", "gin")


@pytest.fixture
def graph(edge_index):
    from torch_geometric.utils import coalesce, remove_self_loops

    torch.manual_seed(0)
    return torch.randn(NODES, CHANNELS), coalesce(remove_self_loops(edge_index)[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", [AttentionExplainer, lambda: GNNExplainer(epochs=3)], ids=["attention", "gnn"])
def test_explainers(kind, algorithm, graph):
    x, edge_index = graph
    GCN2Conv(CHANNELS, 0.1), LCATConv(CHANNELS, 4)  # PyG compiles the parents of our layers first
    model = Net(kind, edge_index)
    before = model(x, edge_index)
    explainer = Explainer(
        model,
        algorithm(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    mask = explainer(x, edge_index, index=2).edge_mask
    assert mask.shape == (edge_index.size(1),)
    assert mask.max() > 0
    torch.testing.assert_close(model(x, edge_index), before)


def test_explainer_of_a_reversed_flow(graph):
    x, edge_index = graph
    model = LCATConv(CHANNELS, 3, flow="target_to_source")
    explainer = Explainer(
        model,
        GNNExplainer(epochs=3),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    assert explainer(x, edge_index, index=2).edge_mask.max() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_messages_give_the_result_of_the_kernels(kind, graph):
    x, edge_index = graph
    model = Net(kind, edge_index).double()
    x = x.double()
    expected = model(x, edge_index)
    seen = []
    for conv in model.convs:
        conv.register_message_forward_hook(lambda module, arguments, out: seen.append(out))
    torch.testing.assert_close(model(x, edge_index), expected)
    assert len(seen) == 2


def hetero_data():
    data = HeteroData()
    data["paper"].x, data["author"].x = torch.randn(6, 5), torch.randn(4, 7)
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2, 3, 3], [0, 1, 2, 3, 5]])
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    data["paper", "rev_writes", "author"].edge_index = data["author", "writes", "paper"].edge_index.flip(0)
    return data


def test_hetero_conv():
    data = hetero_data()
    conv = HeteroConv(
        {
            ("author", "writes", "paper"): LCATConv((-1, -1), 4, heads=2, add_self_loops=False),
            ("paper", "cites", "paper"): LCATConv(-1, 4, heads=2),
            ("paper", "rev_writes", "author"): CATConv((-1, -1), 4, heads=2, add_self_loops=False),
        }
    )
    out = conv(data.x_dict, data.edge_index_dict)
    assert {kind: x.shape for kind, x in out.items()} == {"paper": (6, 8), "author": (4, 8)}


def test_to_hetero():
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = LCATConv((-1, -1), 4, heads=2, add_self_loops=False)
            self.second = LCATConv((-1, -1), 3, add_self_loops=False)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    data = hetero_data()
    model = to_hetero(Plain(), data.metadata())
    out = model(data.x_dict, data.edge_index_dict)
    assert {kind: x.shape for kind, x in out.items()} == {"paper": (6, 3), "author": (4, 3)}
    out["paper"].sum().backward()


def test_basic_gnn_model(graph):
    class LCAT(BasicGNN):
        supports_edge_weight = False
        supports_edge_attr = True
        supports_norm_batch = False

        def init_conv(self, in_channels, out_channels, **kwargs):
            return LCATConv(in_channels, out_channels, dropout=self.dropout.p, **kwargs)

    model = LCAT(CHANNELS, 16, num_layers=3, out_channels=3, dropout=0.1, jk="cat", norm="batch_norm", score="gatv2")
    assert model(*graph).shape == (NODES, 3)
    assert [conv.lambdas() for conv in model.convs] == [pytest.approx((0.5, 0.5), abs=1e-6)] * 3


def test_explainers_of_a_subclass_run_the_subclass(graph):
    """PyG keeps, for explainers, the ``propagate`` that a class had before it was compiled."""
    LCATConv(CHANNELS, 4)

    class Doubled(LCATConv):
        def message(self, x_j, alpha, index):
            return 2 * super().message(x_j, alpha)

    conv = Doubled(CHANNELS, 4)
    assert Doubled._orig_propagate is MessagePassing.propagate
    conv.register_message_forward_hook(lambda module, arguments, out: None)
    plain = LCATConv(CHANNELS, 4)
    plain.load_state_dict(conv.state_dict())
    torch.testing.assert_close(conv(*graph), 2 * plain(*graph))


def test_a_subclass_may_have_its_own_propagate(graph):
    class Silent(LCATConv):
        def propagate(self, edge_index, x, alpha, size):
            return torch.zeros(NODES, self.heads, self.out_channels)

    out, _ = Silent(CHANNELS, 4)(*graph, return_attention_weights=True)
    assert out.abs().max() == 0


class DoubledMessage(LCATConv):
    def message(self, x_j, alpha):
        return 2 * super().message(x_j, alpha)


class DoubledAggregate(LCATConv):
    def aggregate(self, inputs, index, dim_size):
        return 2 * self.aggr_module(inputs, index, dim_size=dim_size, dim=0)


class DoubledUpdate(LCATConv):
    def update(self, inputs):
        return 2 * inputs


class DoubledCoefficients(LCATConv):
    def edge_update(self, alpha):
        return 2 * alpha


@pytest.mark.parametrize("layer", [DoubledMessage, DoubledAggregate, DoubledUpdate, DoubledCoefficients])
@pytest.mark.parametrize("weights", [None, True])
def test_what_a_subclass_overrides_is_used(layer, weights, graph):
    conv, plain = layer(CHANNELS, 4, bias=False), LCATConv(CHANNELS, 4, bias=False)
    plain.load_state_dict(conv.state_dict())
    out = conv(*graph, return_attention_weights=weights)
    torch.testing.assert_close(out[0] if weights else out, 2 * plain(*graph))


@pytest.mark.parametrize("kind", ["pna", "gcn2", "gin"])
def test_messages_of_a_subclass_over_the_adjacency_are_used(kind, graph):
    x, edge_index = graph
    conv = Net(kind, edge_index).convs[0]
    arguments = (x, x, edge_index) if kind == "gcn2" else (x, edge_index)
    expected, calls = conv(*arguments), []

    class Counted(type(conv)):
        def update(self, inputs):
            calls.append(inputs)
            return inputs

    conv.__class__ = Counted
    torch.testing.assert_close(conv(*arguments), expected)
    assert len(calls) == 1


def test_hooks_of_the_coefficients_fire(graph):
    conv = LCATConv(CHANNELS, 4)
    expected, seen = conv(*graph), []
    conv.register_edge_update_forward_hook(lambda module, arguments, out: seen.append(out))
    torch.testing.assert_close(conv(*graph), expected)
    assert seen[0].shape == (graph[1].size(1) + NODES, 1)
