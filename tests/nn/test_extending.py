"""The examples of docs/extending.md work: a score, and a layer on the attention adjacency."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import torch
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.graphgym.models.layer import LayerConfig
from torch_geometric.graphgym.register import layer_dict
from torch_geometric.nn import GraphConv

from graphgym_lcat.gym.settings import check_settings
from graphgym_lcat.nn import LCATConv, LCATGINConv, register_score
from graphgym_lcat.nn.functional import gat_score
from graphgym_lcat.nn.scores import SCORES, Score

SECTIONS = ("A score", "A layer on the attention adjacency")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The code of the page as a module, with its scores registered."""
    text = (Path(__file__).parents[2] / "docs/extending.md").read_text()
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    blocks = re.findall(r"```python\n(.*?)```", "\n".join(sections[name] for name in SECTIONS), re.S)
    path = tmp_path_factory.mktemp("page") / "extension.py"
    path.write_text("\n\n".join(blocks))
    known = dict(SCORES)
    spec = importlib.util.spec_from_file_location("extension", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["extension"] = module  # PyG looks up the modules of layers
    spec.loader.exec_module(module)
    yield module
    del sys.modules["extension"]
    SCORES.clear()
    SCORES.update(known)


def test_a_registered_function_is_a_score(page, x, edge_index):
    torch.manual_seed(0)
    named = LCATConv(5, 3, heads=2, score="cosine").double()
    given = LCATConv(5, 3, heads=2, score=page.cosine).double()
    given.load_state_dict(named.state_dict())
    assert torch.equal(named(x, edge_index), given(x, edge_index))
    assert "score='cosine'" in repr(named)


def test_a_registered_score_serves_every_layer(page, x, edge_index):
    layer = LCATGINConv(torch.nn.Linear(5, 2), score="cosine").double()
    assert layer(x, edge_index).shape == (12, 2)


def test_each_layer_has_its_own_module_of_a_registered_class(page, x, edge_index):
    first, second = (LCATConv(5, 3, heads=2, score="bilinear").double() for _ in range(2))
    assert first.score.weight is not second.score.weight
    assert first.state_dict()["score.weight"].shape == (2, 3, 3)
    first(x, edge_index).square().sum().backward()
    assert first.score.weight.grad.abs().sum() > 0
    with torch.no_grad():
        first.score.weight.fill_(9.0)
    first.reset_parameters()
    assert (first.score.weight != 9.0).all()


def test_lambda1_multiplies_a_registered_score(page, x, edge_index):
    half = LCATConv(5, 3, score="cosine", lambda1=0.5, lambda2=0).double()
    scaled = LCATConv(5, 3, score=lambda u, v: 0.5 * page.cosine(u, v), lambda1=1, lambda2=0).double()
    scaled.load_state_dict(half.state_dict())
    torch.testing.assert_close(half(x, edge_index), scaled(x, edge_index))


def test_a_score_may_have_its_own_attention_vectors_and_kernels(page, x, edge_index):
    def scaled(inputs, parameters):
        vectors = {"att_src": parameters.vectors["att_scale"], "att_dst": parameters.vectors["att_scale"]}
        return gat_score(inputs, parameters._replace(vectors=vectors))

    register_score("one_vector", Score(scaled, ("att_scale",)))
    conv = LCATConv(5, 3, heads=2, score="one_vector", backend="fused").double()
    gat = LCATConv(5, 3, heads=2, backend="fused").double()
    assert conv.state_dict().keys() == gat.state_dict().keys() - {"att_src", "att_dst"} | {"att_scale"}
    gat.load_state_dict({**conv.state_dict(), "att_src": conv.att_scale, "att_dst": conv.att_scale}, strict=False)
    torch.testing.assert_close(conv(x, edge_index), gat(x, edge_index))


def test_a_misspelt_score_is_answered_with_the_registered_ones(page):
    message = r"`score` must be one of 'gat', 'gatv2', 'cosine', .*got 'cosin'; did you mean 'cosine'\?"
    with pytest.raises(ValueError, match=message):
        LCATConv(5, 3, score="cosin")


def test_a_registered_score_is_a_setting(page):
    import graphgym_lcat  # noqa: F401  (registers the settings)

    cfg.defrost()
    set_cfg(cfg)
    cfg.lcat.score = "cosine"
    layer = layer_dict["lcatconv"](LayerConfig(dim_in=5, dim_out=4, has_bias=True))
    assert layer.model.score == "cosine"
    set_cfg(cfg)


def test_a_plugin_may_register_the_score_of_its_configuration(page, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_scores.py").write_text(
        "from graphgym_lcat.nn import register_score\nregister_score('dot', lambda u, v: (u * v).sum(-1))\n"
    )
    settings = {"lcat.plugins": ["my_scores"], "lcat.score": "dot", "gnn.layer_type": "lcatconv"}
    assert "dot" not in SCORES
    check_settings(settings)
    assert "dot" in SCORES


@pytest.mark.parametrize(
    ("name", "score", "message"),
    [
        ("gat", max, "there is already a score 'gat'"),
        ("linear", torch.nn.Linear(1, 1), "must be a function or a module class, got a Linear object"),
        ("mine", "cosine", "must be a function .* or a module class, got str"),
    ],
)
def test_what_cannot_be_registered(name, score, message):
    with pytest.raises((TypeError, ValueError), match=message):
        register_score(name, score)


def test_a_short_layer_without_attention_is_the_plain_one(page, x, edge_index):
    ours = page.LCATGraphConv(5, 4, lambda1=0).double()
    plain = GraphConv(5, 4).double()
    plain.load_state_dict(ours.state_dict(), strict=False)
    torch.testing.assert_close(ours(x, edge_index), plain(x, edge_index))


def test_a_short_layer_can_be_observed_and_learns_its_lambdas(page, x, edge_index):
    layer = page.LCATGraphConv(5, 4, score="gatv2", heads=5).double()
    expected = layer(x, edge_index)
    expected.square().sum().backward()
    assert layer.interpolation.x.grad.abs() > 0
    seen = []
    layer.register_message_forward_hook(lambda module, arguments, out: seen.append(out))
    torch.testing.assert_close(layer(x, edge_index), expected)
    assert len(seen) == 1
