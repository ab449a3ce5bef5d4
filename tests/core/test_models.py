"""The models of the paper, all 35, written out: names and settings are part of results that users have."""

import pytest

from lcat_core import models
from lcat_core.models import MODELS

DEFAULTS = {"lcat.score": "gat", "lcat.lambda1": None, "lcat.lambda2": None}

#: name, display name, baseline, layer type, λ1, λ2 (None: not set)
CONV = [
    ("dense", "Dense", None, "linear", None, None),
    ("gcn", "GCN", None, "lcatconv", 0, None),
    ("gat", "GAT", None, "lcatconv", 1, 0),
    ("cat", "CAT", "gat", "catconv", None, None),
    ("lcat", "L-CAT", "gat", "lcatconv", None, None),
    ("gatv2", "GATv2", None, "lcatconv", 1, 0),
    ("catv2", "CATv2", "gatv2", "catconv", None, None),
    ("lcatv2", "L-CATv2", "gatv2", "lcatconv", None, None),
    ("gcngat", "GCN-GAT", "gat", "lcatconv", None, 0),
    ("cat_l1", "CAT-λ1", "gat", "lcatconv", None, 1),
    ("cat_l2", "CAT-λ2", "gat", "lcatconv", 1, None),
    ("gcngatv2", "GCN-GATv2", "gatv2", "lcatconv", None, 0),
    ("catv2_l1", "CATv2-λ1", "gatv2", "lcatconv", None, 1),
    ("catv2_l2", "CATv2-λ2", "gatv2", "lcatconv", 1, None),
]
ADJACENCY = [
    row
    for base, layer in (("pna", "pnaconv"), ("gcnii", "gcn2conv"), ("gin", "ginconv"))
    for row in [
        (base, base.upper(), None, f"lcat{layer}", 0, None),
        (f"{base}gat", f"{base.upper()}GAT", None, f"lcat{layer}", 1, 0),
        (f"{base}cat", f"{base.upper()}CAT", f"{base}gat", f"cat{layer}", None, None),
        (f"l{base}cat", f"L-{base.upper()}CAT", f"{base}gat", f"lcat{layer}", None, None),
        (f"{base}gatv2", f"{base.upper()}GATv2", None, f"lcat{layer}", 1, 0),
        (f"{base}catv2", f"{base.upper()}CATv2", f"{base}gatv2", f"cat{layer}", None, None),
        (f"l{base}catv2", f"L-{base.upper()}CATv2", f"{base}gatv2", f"lcat{layer}", None, None),
    ]
]
EXPECTED = [*CONV, *ADJACENCY]


def test_there_are_thirty_five_in_this_order():
    assert [row[0] for row in EXPECTED] == list(MODELS)
    assert len(MODELS) == 35


@pytest.mark.parametrize(
    ("name", "display_name", "baseline", "layer_type", "lambda1", "lambda2"), EXPECTED, ids=[row[0] for row in EXPECTED]
)
def test_every_row_is_the_one_of_the_paper(name, display_name, baseline, layer_type, lambda1, lambda2):
    settings = {"gnn.layer_type": layer_type}
    settings |= {"lcat.score": "gatv2"} if "v2" in name else {}
    settings |= {"lcat.lambda1": lambda1} if lambda1 is not None else {}
    settings |= {"lcat.lambda2": lambda2} if lambda2 is not None else {}
    model = MODELS[name]
    assert model.settings == settings
    assert (model.display_name, model.baseline, model.layer_type) == (display_name, baseline, layer_type)
    assert models.display_name(name) == display_name


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_recognised_by_its_settings(name):
    assert models.model_name({**DEFAULTS, **MODELS[name].settings}) == name


def test_learn_is_another_word_for_no_value():
    assert models.model_name({**DEFAULTS, "gnn.layer_type": "lcatconv", "lcat.lambda1": "learn"}) == "lcat"


def test_other_settings_are_named_by_their_layer():
    assert models.model_name({**DEFAULTS, "gnn.layer_type": "lcatconv", "lcat.lambda1": 0.3}) == "lcatconv"
    assert models.model_name({**DEFAULTS, "gnn.layer_type": "gatconv"}) == "gatconv"


def test_every_baseline_is_a_model_of_the_same_family_and_score():
    for model in MODELS.values():
        if model.baseline is not None:
            baseline = MODELS[model.baseline]
            assert (baseline.family, baseline.score, baseline.kind) == (model.family, model.score, "gat")


def test_default_baselines_are_pairs_among_the_given_models():
    assert models.default_baselines(["gat", "cat", "lcat", "catv2", "mine"]) == {"cat": "gat", "lcat": "gat"}


@pytest.mark.parametrize(
    ("name", "lambdas"),
    [("gcn", (0, "learned")), ("gat", (1, 0)), ("cat", (1, 1)), ("lcat", ("learned", "learned")), ("dense", None)],
)
def test_lambdas_of_a_model(name, lambdas):
    assert MODELS[name].lambdas == lambdas


@pytest.mark.parametrize(
    ("name", "expected"), [("lcatv2", "lcat"), ("catv2_l1", "cat_l1"), ("gcn", "gcn"), ("mine", "mine")]
)
def test_the_same_model_with_the_gat_score(name, expected):
    assert models.with_gat_score(name) == expected


@pytest.mark.parametrize(
    ("name", "cost"), [("dense", 0), ("gcn", 1), ("lcat", 1), ("lcatv2", 2), ("lpnacat", 4), ("lpnacatv2", 8)]
)
def test_costs_per_edge(name, cost):
    assert models.edge_cost(MODELS[name].settings) == cost


def test_an_unknown_model_keeps_its_name_and_an_unknown_layer_costs_as_attention():
    assert models.display_name("mine") == "mine"
    assert models.edge_cost({"gnn.layer_type": "gatconv"}) == 1


def test_layers_with_both_lambdas_fixed():
    assert {"catconv", "catpnaconv", "catgcn2conv", "catginconv"} == models.FIXED_LAYERS
    assert set(models.LAYERS) == models.FIXED_LAYERS | {f"l{name}" for name in models.FIXED_LAYERS}
