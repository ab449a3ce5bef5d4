import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import LayerConfig
from torch_geometric.graphgym.register import layer_dict

from graphgym_lcat.nn import CATConv, LCATConv


def build(name, dim_out=8):
    return layer_dict[name](LayerConfig(dim_in=5, dim_out=dim_out, has_bias=True))


@pytest.fixture
def batch():
    return Data(x=torch.randn(4, 5), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))


@pytest.mark.parametrize(("name", "kind"), [("lcatconv", LCATConv), ("catconv", CATConv)])
def test_layer_is_the_plain_module_set_up_by_the_configuration(name, kind, batch):
    cfg.merge_from_list(
        ["lcat.heads", 2, "lcat.score", "gatv2", "lcat.score_weights", "separate", "lcat.init", "normal"]
    )
    layer = build(name)
    conv = layer.model
    assert type(conv) is kind
    assert (conv.heads, conv.out_channels, conv.score, conv.init) == (2, 4, "gatv2", "normal")
    assert conv.lin_score is not None
    expected = conv(batch.x, batch.edge_index)
    torch.testing.assert_close(layer(batch).x, expected)


@pytest.mark.parametrize(
    ("lambdas", "expected"), [((0, None), (0, 0.5)), ((1, 0), (1, 0)), (("learn", 0.3), (0.5, 0.3))]
)
def test_lambdas_come_from_the_configuration(lambdas, expected):
    cfg.lcat.lambda1, cfg.lcat.lambda2 = lambdas
    assert build("lcatconv").model.lambdas() == pytest.approx(expected)


def test_edge_features_reach_the_score(batch):
    cfg.lcat.edge_dim = 3
    batch.edge_attr = torch.randn(3, 3)
    layer = build("lcatconv")
    assert layer.model.lin_edge is not None
    assert layer(batch).x.shape == (4, 8)


def test_width_must_be_divisible_by_heads():
    cfg.lcat.heads = 3
    with pytest.raises(
        ValueError, match=r"width of a layer, 8 \(`gnn.dim_inner`\), must be divisible by `lcat.heads`, got 3"
    ):
        build("lcatconv")


def test_catconv_takes_no_lambda():
    cfg.lcat.lambda1 = 0.5
    with pytest.raises(ValueError, match=r"`lcat.lambda1` must not be set for 'catconv'.*use gnn.layer_type: lcatconv"):
        build("catconv")


def test_an_invalid_value_is_reported_when_the_layer_is_built():
    cfg.lcat.score = "gatv3"
    with pytest.raises(ValueError, match=r"`lcat.score` must be one of"):
        build("lcatconv")
