"""Every model of the table is built and trained from its settings."""

import math

import pytest
import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.model_builder import create_model

from graphgym_lcat.gym.adjacency_layers import degree_histogram
from graphgym_lcat.gym.loader import load_graph
from graphgym_lcat.gym.runner import Run, execute
from graphgym_lcat.gym.settings import apply_settings
from graphgym_lcat.nn import LCATGCN2Conv, LCATPNAConv
from lcat_core.models import MODELS


@pytest.mark.parametrize("model", MODELS)
def test_model_trains_from_its_settings(model, tmp_path, small):
    settings = {**small, **MODELS[model].settings, "optim.max_epoch": 3}
    result = execute(Run(tmp_path / model, model, settings, {}, threads=1))
    assert result["epochs"] == 3
    expected = MODELS[model].lambdas
    assert len(result["lambdas"]) == (0 if expected is None else 2)
    for pair in result["lambdas"]:
        for found, wanted in zip(pair, expected, strict=True):
            assert 0 < found < 1 if wanted == "learned" else found == wanted


def build(small, **settings):
    apply_settings({**small, **settings})
    data = load_graph()
    cfg.share.dim_in, cfg.share.dim_out = data.x.size(1), 5
    return create_model(to_device=False), data


def test_gcnii_layers_are_numbered_and_share_the_first_representation(small):
    model, data = build(small, **{"gnn.layer_type": "lcatgcn2conv", "gnn.layers_mp": 3, "gnn.stage_type": "stack"})
    convs = [m for m in model.modules() if isinstance(m, LCATGCN2Conv)]
    assert [conv.beta for conv in convs] == pytest.approx([math.log(0.5 / n + 1) for n in (1, 2, 3)])
    seen = []
    for conv in convs:
        conv.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[1]))
    model(data.clone())
    assert seen[0] is seen[1] is seen[2]


def test_gcnii_needs_a_layer_before_it(small):
    with pytest.raises(ValueError, match=r"'lcatgcn2conv' keeps the width, got 32 → 8; set `gnn.layers_pre_mp: 1`"):
        build(small, **{"gnn.layer_type": "lcatgcn2conv", "gnn.layers_pre_mp": 0, "gnn.stage_type": "stack"})


def test_pna_learns_the_degrees_of_the_first_graph(small):
    model, data = build(small, **{"gnn.layer_type": "lcatpnaconv"})
    model(data.clone())
    histogram = degree_histogram(data)
    reference = LCATPNAConv(8, 8, ["mean"], ["identity"], histogram)
    for conv in (m for m in model.modules() if isinstance(m, LCATPNAConv)):
        torch.testing.assert_close(conv.aggr_module.avg_deg_log, reference.aggr_module.avg_deg_log)
        torch.testing.assert_close(conv.aggr_module.avg_deg_lin, reference.aggr_module.avg_deg_lin)


@pytest.mark.parametrize("layer_type", ["catpnaconv", "catgcn2conv", "catginconv"])
def test_layers_with_fixed_lambdas_refuse_others(small, layer_type):
    with pytest.raises(ValueError, match=rf"must not be set for '{layer_type}'.*use gnn.layer_type: l{layer_type}"):
        build(small, **{"gnn.layer_type": layer_type, "lcat.lambda1": 0.5})


def test_attention_dropout_is_not_for_the_adjacency(small):
    with pytest.raises(ValueError, match=r"`lcat.dropout` must be 0 for 'lcatginconv', got 0.5"):
        build(small, **{"gnn.layer_type": "lcatginconv", "lcat.dropout": 0.5})
