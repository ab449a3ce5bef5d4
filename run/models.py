"""The paper's models by name: what each one sets, and the baseline it is compared with.

Every model is the same implementation with other λ, so the tables are written once per family:

======== ============ ============== ==============
pattern  λ1           λ2             names (GAT score)
======== ============ ============== ==============
base     0            –              ``gcn pna gcnii gin``
GAT      1            0              ``gat pnagat gcniigat gingat``
CAT      1            1              ``cat pnacat gcniicat gincat``
L-CAT    learned      learned        ``lcat lpnacat lgcniicat lgincat``
======== ============ ============== ==============

A name ending in ``v2`` has the GATv2 score. The ablations ``gcngat`` (λ2 = 0), ``cat_l1`` (λ2 = 1) and ``cat_l2``
(λ1 = 1) learn the other λ. ``dense`` is the same network without a graph.
"""

from __future__ import annotations

from collections.abc import Mapping

Settings = dict[str, object]


def _family(layer: str, base: str, attention: str, scores: Mapping[str, str]) -> dict[str, Settings]:
    """The models of one base layer; ``attention`` is what stands before ``gat`` and ``cat`` in their names."""
    learned, fixed = {"gnn.layer_type": f"lcat{layer}"}, {"gnn.layer_type": f"cat{layer}"}
    models: dict[str, Settings] = {base: {**learned, "lcat.lambda1": 0}}
    for suffix, score in scores.items():
        scored = {} if score == "gat" else {"lcat.score": score}
        models[f"{attention}gat{suffix}"] = {**learned, **scored, "lcat.lambda1": 1, "lcat.lambda2": 0}
        models[f"{attention}cat{suffix}"] = {**fixed, **scored}
        models[f"l{attention}cat{suffix}"] = {**learned, **scored}
    return models


def _ablations(scores: Mapping[str, str]) -> dict[str, Settings]:
    models: dict[str, Settings] = {}
    for suffix, score in scores.items():
        common = {"gnn.layer_type": "lcatconv"} | ({} if score == "gat" else {"lcat.score": score})
        models[f"gcngat{suffix}"] = {**common, "lcat.lambda2": 0}
        models[f"cat{suffix}_l1"] = {**common, "lcat.lambda2": 1}
        models[f"cat{suffix}_l2"] = {**common, "lcat.lambda1": 1}
    return models


_SCORES = {"": "gat", "v2": "gatv2"}

#: Model name → the settings that make it, by flat key.
MODELS: dict[str, Settings] = {
    "dense": {"gnn.layer_type": "linear"},
    **_family("conv", "gcn", "", _SCORES),
    **_ablations(_SCORES),
    **_family("pnaconv", "pna", "pna", _SCORES),
    **_family("gcn2conv", "gcnii", "gcnii", _SCORES),
    **_family("ginconv", "gin", "gin", _SCORES),
}

#: Model name → the model that the paper compares it with.
BASELINES: dict[str, str] = {
    name: baseline
    for suffix in _SCORES
    for baseline, names in {
        f"gat{suffix}": [f"{name}{suffix}" for name in ("cat", "lcat", "gcngat")]
        + [f"cat{suffix}_l1", f"cat{suffix}_l2"],
        f"pnagat{suffix}": [f"pnacat{suffix}", f"lpnacat{suffix}"],
        f"gcniigat{suffix}": [f"gcniicat{suffix}", f"lgcniicat{suffix}"],
        f"gingat{suffix}": [f"gincat{suffix}", f"lgincat{suffix}"],
    }.items()
    for name in names
}


def model_name(settings: Mapping[str, object]) -> str:
    """The name of the model that complete flat settings make; the layer's name where the table has none."""
    keys = ("gnn.layer_type", "lcat.score", "lcat.lambda1", "lcat.lambda2")
    defaults = {"lcat.score": "gat", "lcat.lambda1": None, "lcat.lambda2": None}
    wanted = {key: None if settings.get(key) == "learn" else settings.get(key) for key in keys}
    for name, model in MODELS.items():
        made = {**defaults, **model}
        # Without attention, or without a graph, the other keys mean nothing.
        relevant = keys[:1] if name == "dense" else keys[::2] if made["lcat.lambda1"] == 0 else keys
        if all(made.get(key) == wanted[key] for key in relevant):
            return name
    return str(settings["gnn.layer_type"])
