"""The models of the paper, one row each: what a model sets, how tables write it, and what it is compared with.

Every model is the same implementation with other λ, on one of four base layers:

========  =======  =======  ==========================================
kind      λ1       λ2       names with the GAT score
========  =======  =======  ==========================================
base      0        any      ``gcn pna gcnii gin``
gat       1        0        ``gat pnagat gcniigat gingat``
cat       1        1        ``cat pnacat gcniicat gincat``
lcat      learned  learned  ``lcat lpnacat lgcniicat lgincat``
========  =======  =======  ==========================================

A name that ends in ``v2`` has the GATv2 score. The ablations ``gcngat`` (λ2 = 0), ``cat_l1`` (λ2 = 1) and ``cat_l2``
(λ1 = 1) learn the other λ. ``dense`` is the same network without a graph.

A new layer on the attention adjacency is one more row of ``FAMILIES``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """A base layer and the names that its models and GraphGym layers are made of.

    Attributes:
        name: ``conv`` is the attention layer itself, the others use the attention adjacency.
        base: The model with λ1 = 0.
        base_display_name: How tables write that model.
        layer: ``gnn.layer_type`` is ``lcat`` plus this (λ learned or set), or ``cat`` plus this (both λ are 1).
        prefix: Precedes ``gat`` and ``cat`` in the names of models; in capitals, in tables.
        edge_cost: Time per edge and epoch, relative to attention with the GAT score.
    """

    name: str
    base: str
    base_display_name: str
    layer: str
    prefix: str = ""
    edge_cost: float = 1.0

    @property
    def layer_type(self) -> str:
        """The layer whose λ are learned unless they are set."""
        return f"lcat{self.layer}"

    @property
    def fixed_layer_type(self) -> str:
        """The layer whose λ are both 1, and must not be set."""
        return f"cat{self.layer}"


@dataclass(frozen=True)
class Model:
    """One model.

    Attributes:
        name: In grids, run ids and results.
        display_name: In tables and figures.
        settings: What makes it, by flat key.
        family: Name of its :class:`Family`; ``dense`` for the network without a graph.
        kind: ``dense``, ``base``, ``gat``, ``cat``, ``lcat``, or the ablations ``gcngat``, ``cat_l1``, ``cat_l2``.
        score: Score of its attention; None where there is no attention.
        baseline: The model that the paper compares it with.
    """

    name: str
    display_name: str
    settings: Mapping[str, object] = field(hash=False)
    family: str
    kind: str
    score: str | None = None
    baseline: str | None = None

    @property
    def layer_type(self) -> str:
        return str(self.settings["gnn.layer_type"])

    @property
    def lambdas(self) -> tuple[object, object] | None:
        """λ1 and λ2, ``"learned"`` or a number; None without a graph."""
        if self.kind == "dense":
            return None
        if self.kind == "cat":
            return 1, 1
        return tuple(self.settings.get(f"lcat.{name}", "learned") for name in ("lambda1", "lambda2"))  # type: ignore[return-value]  # two


#: Base layers by name.
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("conv", base="gcn", base_display_name="GCN", layer="conv"),
        Family("pna", base="pna", base_display_name="PNA", layer="pnaconv", prefix="pna", edge_cost=4.0),
        Family("gcnii", base="gcnii", base_display_name="GCNII", layer="gcn2conv", prefix="gcnii"),
        Family("gin", base="gin", base_display_name="GIN", layer="ginconv", prefix="gin"),
    )
}
#: Scores by the suffix of a model's name.
_SCORE_SUFFIXES = {"": "gat", "v2": "gatv2"}
_SCORE_COST = {"gat": 1.0, "gatv2": 2.0}
_LEARNED = {"lcat.score": "gat", "lcat.lambda1": None, "lcat.lambda2": None}


def _family_models(family: Family) -> Iterator[Model]:
    learned = {"gnn.layer_type": family.layer_type}
    yield Model(family.base, family.base_display_name, {**learned, "lcat.lambda1": 0}, family.name, "base")
    shown = family.prefix.upper()
    for suffix, score in _SCORE_SUFFIXES.items():
        with_score = _score_setting(score)
        baseline = f"{family.prefix}gat{suffix}"
        for kind, name, display_name, settings in (
            ("gat", baseline, f"{shown}GAT{suffix}", {**learned, **with_score, "lcat.lambda1": 1, "lcat.lambda2": 0}),
            (
                "cat",
                f"{family.prefix}cat{suffix}",
                f"{shown}CAT{suffix}",
                {"gnn.layer_type": family.fixed_layer_type, **with_score},
            ),
            ("lcat", f"l{family.prefix}cat{suffix}", f"L-{shown}CAT{suffix}", {**learned, **with_score}),
        ):
            compared_with = None if kind == "gat" else baseline
            yield Model(name, display_name, settings, family.name, kind, score, compared_with)


def _ablations() -> Iterator[Model]:
    for suffix, score in _SCORE_SUFFIXES.items():
        common = {"gnn.layer_type": FAMILIES["conv"].layer_type, **_score_setting(score)}
        for kind, name, display_name, settings in (
            ("gcngat", f"gcngat{suffix}", f"GCN-GAT{suffix}", {"lcat.lambda2": 0}),
            ("cat_l1", f"cat{suffix}_l1", f"CAT{suffix}-λ1", {"lcat.lambda2": 1}),
            ("cat_l2", f"cat{suffix}_l2", f"CAT{suffix}-λ2", {"lcat.lambda1": 1}),
        ):
            yield Model(name, display_name, {**common, **settings}, "conv", kind, score, f"gat{suffix}")


def _score_setting(score: str) -> dict[str, object]:
    return {} if score == _LEARNED["lcat.score"] else {"lcat.score": score}


def _all_models() -> Iterator[Model]:
    yield Model("dense", "Dense", {"gnn.layer_type": "linear"}, "dense", "dense")
    yield from _family_models(FAMILIES["conv"])
    yield from _ablations()
    for family in FAMILIES.values():
        if family.name != "conv":
            yield from _family_models(family)


#: Every model by name, in the order of tables.
MODELS: dict[str, Model] = {model.name: model for model in _all_models()}

#: ``gnn.layer_type`` → family, for the layers of this package.
LAYERS: dict[str, Family] = {
    name: family for family in FAMILIES.values() for name in (family.layer_type, family.fixed_layer_type)
}
#: Layers whose λ are both 1, and must not be set.
FIXED_LAYERS = frozenset(family.fixed_layer_type for family in FAMILIES.values())


def model_name(settings: Mapping[str, object]) -> str:
    """Name the model that complete flat settings make; the name of its layer if it is not in the table."""
    keys = ("gnn.layer_type", "lcat.score", "lcat.lambda1", "lcat.lambda2")
    wanted = {key: None if settings.get(key) == "learn" else settings.get(key) for key in keys}
    for name, model in MODELS.items():
        complete = {**_LEARNED, **model.settings}
        # Without attention, or without a graph, the other keys have no effect.
        relevant = {"dense": keys[:1], "base": keys[::2]}.get(model.kind, keys)
        if all(complete.get(key) == wanted[key] for key in relevant):
            return name
    return str(settings["gnn.layer_type"])


def display_name(model: str) -> str:
    """``lcatv2`` → ``L-CATv2``; a model that is not in the table keeps its name."""
    return MODELS[model].display_name if model in MODELS else model


def usual_baseline(model: str) -> str | None:
    """Return the model that the paper compares ``model`` with; None if it has none."""
    return MODELS[model].baseline if model in MODELS else None


def default_baselines(models: Iterable[str]) -> dict[str, str]:
    """Return the paper's pairs of a model and its baseline, among ``models``."""
    models = list(models)
    pairs = {name: usual_baseline(name) for name in models}
    return {name: baseline for name, baseline in pairs.items() if baseline is not None and baseline in models}


def with_gat_score(model: str) -> str:
    """``lcatv2`` → ``lcat``: the same model with the GAT score; a model that is not in the table stays as it is."""
    row = MODELS.get(model)
    if row is None or row.score in (None, "gat"):
        return model
    return next(m.name for m in MODELS.values() if (m.family, m.kind, m.score) == (row.family, row.kind, "gat"))


def edge_cost(settings: Mapping[str, object]) -> float:
    """Estimate the time per edge and epoch, relative to attention with the GAT score; 0 without a graph."""
    layer_type = str(settings.get("gnn.layer_type", ""))
    if layer_type == "linear":
        return 0.0
    family_cost = LAYERS[layer_type].edge_cost if layer_type in LAYERS else 1.0
    return family_cost * _SCORE_COST.get(str(settings.get("lcat.score", "gat")), 2.0)
