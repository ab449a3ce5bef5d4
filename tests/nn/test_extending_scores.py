"""The examples of docs/extending.md: a score and a layer on the attention adjacency, each added in a few lines."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GraphConv

from graphgym_lcat.nn import LCATConv, LCATGINConv, register_score
from graphgym_lcat.nn.adjacency_layer import AdjacencyLayer, pop_attention_options
from graphgym_lcat.nn.graph_input import resolve_graph
from graphgym_lcat.nn.scores import SCORES


@pytest.fixture(autouse=True)
def restore_registry(monkeypatch):
    for name in ("cosine", "bilinear"):
        monkeypatch.setitem(SCORES, name, None)
        del SCORES[name]


def cosine(u: Tensor, v: Tensor) -> Tensor:
    return F.cosine_similarity(u, v, dim=-1)


class Bilinear(torch.nn.Module):
    def __init__(self, heads: int, channels: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(heads, channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.xavier_uniform_(self.weight)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        return torch.einsum("ehc,hcd,ehd->eh", u, self.weight, v)


def test_a_registered_function_is_a_score(x, edge_index):
    register_score("cosine", cosine)
    torch.manual_seed(0)
    named = LCATConv(5, 3, heads=2, score="cosine").double()
    given = LCATConv(5, 3, heads=2, score=cosine).double()
    given.load_state_dict(named.state_dict())
    assert torch.equal(named(x, edge_index), given(x, edge_index))
    assert "score='cosine'" in repr(named)


def test_a_registered_score_serves_every_layer(x, edge_index):
    register_score("cosine", cosine)
    layer = LCATGINConv(torch.nn.Linear(5, 2), score="cosine").double()
    assert layer(x, edge_index).shape == (12, 2)


def test_each_layer_has_its_own_module_of_a_registered_class(x, edge_index):
    register_score("bilinear", Bilinear)
    first, second = (LCATConv(5, 3, heads=2, score="bilinear").double() for _ in range(2))
    assert first.score.weight is not second.score.weight
    assert first.state_dict()["score.weight"].shape == (2, 3, 3)
    first(x, edge_index).square().sum().backward()
    assert first.score.weight.grad.abs().sum() > 0
    with torch.no_grad():
        first.score.weight.fill_(9.0)
    first.reset_parameters()
    assert (first.score.weight != 9.0).all()


def test_lambda1_multiplies_a_registered_score(x, edge_index):
    register_score("cosine", cosine)
    register_score("bilinear", lambda u, v: 0.5 * cosine(u, v))
    half = LCATConv(5, 3, score="cosine", lambda1=0.5, lambda2=0).double()
    scaled = LCATConv(5, 3, score="bilinear", lambda1=1, lambda2=0).double()
    scaled.load_state_dict(half.state_dict())
    torch.testing.assert_close(half(x, edge_index), scaled(x, edge_index))


def test_a_misspelt_score_is_answered_with_the_registered_ones():
    register_score("cosine", cosine)
    message = "`score` must be one of 'gat', 'gatv2', 'cosine', got 'cosin'; did you mean 'cosine'?"
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        LCATConv(5, 3, score="cosin")


@pytest.mark.parametrize(
    ("name", "score", "message"),
    [
        ("gat", cosine, "there is already a score 'gat'"),
        ("bilinear", Bilinear(1, 1), "must be a function or a module class, got a Bilinear object"),
        ("cosine", "cosine", "must be a function .* or a module class, got str"),
    ],
)
def test_what_cannot_be_registered(name, score, message):
    with pytest.raises((TypeError, ValueError), match=message):
        register_score(name, score)


class LCATGraphConv(AdjacencyLayer, GraphConv):
    """GraphConv, whose neighbours are summed with the weights of the attention adjacency."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs):
        attention = pop_attention_options(kwargs)
        super().__init__(in_channels, out_channels, **kwargs)
        self._init_score(in_channels, in_channels, **attention)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        graph, _ = resolve_graph(edge_index, x.size(0), x.size(0), False, True, self.flow)
        key = self._split_heads(self.lin_score(x))
        if self._is_observed():
            edges, alpha = self._edge_weights(graph, key)
            # propagate_type: (x: Tensor, alpha: Tensor)
            out = self.propagate(self._in_flow(edges), x=x, alpha=alpha)
        else:
            out = self._sum_neighbors(graph, key, self._split_heads(x)).flatten(1)
        return self.lin_rel(out) + self.lin_root(x)


def test_a_layer_of_ten_lines_is_plain_graph_conv_without_attention(x, edge_index):
    ours = LCATGraphConv(5, 4, lambda1=0).double()
    plain = GraphConv(5, 4).double()
    plain.load_state_dict(ours.state_dict(), strict=False)
    torch.testing.assert_close(ours(x, edge_index), plain(x, edge_index))


def test_a_layer_of_ten_lines_can_be_observed_and_learns_its_lambdas(x, edge_index):
    layer = LCATGraphConv(5, 4, score="gatv2", heads=5).double()
    expected = layer(x, edge_index)
    expected.square().sum().backward()
    assert layer.interpolation.x.grad.abs() > 0
    seen = []
    layer.register_message_forward_hook(lambda module, arguments, out: seen.append(out))
    torch.testing.assert_close(layer(x, edge_index), expected)
    assert len(seen) == 1
