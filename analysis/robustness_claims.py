"""The paper's claims about noise, initial weights and learning a single λ."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from lcat_analysis.claims import EDGES, FEATURES, Claim, DatasetRuns, distance_inside
from lcat_core.models import MODELS, display_name

NOISE_PLOTS, INIT_TABLE, LAMBDA_FIGURE = "noise plots", "table of initialisations", "distribution of λ"


def noise_claims() -> list[Claim]:
    """Return the claims about noise on features and fake edges."""
    return [
        _loses_more(
            "Attention is more sensitive to noise on features than GCN: GAT loses more accuracy.",
            "gat",
            "gcn",
            FEATURES,
        ),
        _loses_more(
            "GCN suffers more from fake edges than attention does: GCN loses more accuracy than GAT.",
            "gcn",
            "gat",
            EDGES,
        ),
        _loses_more(
            "Convolving the input of the score makes attention more robust to noise on features: CAT loses less than GAT.",
            "gat",
            "cat",
            FEATURES,
        ),
        _varies_less(
            "Convolving the input of the score reduces the variance under noise on features: "
            "CAT's spread over seeds is smaller than GAT's.",
            "cat",
            FEATURES,
        ),
        *(_best_under_noise(kind, noise) for kind, noise in _KINDS_OF_NOISE),
        *(
            _varies_less(
                f"L-CAT reduces the variance under {kind}: its spread over seeds is smaller than GAT's.", "lcat", noise
            )
            for kind, noise in _KINDS_OF_NOISE
        ),
    ]


_KINDS_OF_NOISE = (("noise on features", FEATURES), ("fake edges", EDGES))


def _loses_more(text: str, model: str, other: str, noise: str) -> Claim:
    return Claim(text, NOISE_PLOTS, lambda runs: runs.drop(model, noise) - runs.drop(other, noise))


def _varies_less(text: str, model: str, noise: str) -> Claim:
    """A smaller spread over seeds than GAT's."""

    def difference(runs: DatasetRuns) -> pd.Series:
        return runs.spread_under_noise("gat", noise) - runs.spread_under_noise(model, noise)

    return Claim(text, NOISE_PLOTS, difference)


def _best_under_noise(kind: str, noise: str) -> Claim:
    text = f"L-CAT is the best model under {kind} (mean over the levels, compared with the best other model)."
    return Claim(text, NOISE_PLOTS, lambda runs: runs.lead(lambda model: runs.under_noise(model, noise), "lcat"))


def initialisation_claims() -> list[Claim]:
    """Return the claims about initial weights, heads, and the λ that are learned."""
    return [
        Claim(
            "The initial weights matter more for GAT than for L-CAT (gap between the two initialisations).",
            INIT_TABLE,
            lambda runs: runs.gap_between_inits("gat") - runs.gap_between_inits("lcat"),
        ),
        Claim(
            "The initial weights matter more for GCN than for L-CAT (one head).",
            INIT_TABLE,
            lambda runs: runs.gap_between_inits("gcn", heads=1) - runs.gap_between_inits("lcat", heads=1),
        ),
        Claim(
            "L-CAT is consistent: its spread over initialisations and heads is smaller than GAT's.",
            INIT_TABLE,
            lambda runs: runs.spread("gat") - runs.spread("lcat"),
        ),
        Claim(
            "L-CAT is better than GAT, averaged over all scenarios.",
            INIT_TABLE,
            lambda runs: runs.score("lcat") - runs.score("gat"),
        ),
        Claim(
            "Eight heads help GAT with uniform initialisation.",
            INIT_TABLE,
            lambda runs: runs.score("gat", init="uniform", heads=8) - runs.score("gat", init="uniform", heads=1),
        ),
        Claim(
            "CAT is better than GAT, except with eight heads and normal initialisation (mean of the other three cases).",
            INIT_TABLE,
            lambda runs: _without_eight_normal(runs, "cat") - _without_eight_normal(runs, "gat"),
        ),
        Claim(
            "The first and the last layer become GCNs: their λ1 is smaller than that of the layers between.",
            LAMBDA_FIGURE,
            lambda runs: runs.learned("lambda1", _inner, "lcat") - runs.learned("lambda1", _outer, "lcat"),
        ),
        Claim(
            "More heads permit more attention: λ1 is larger with eight heads than with one.",
            LAMBDA_FIGURE,
            lambda runs: (
                runs.learned("lambda1", _all, "lcat", heads=8) - runs.learned("lambda1", _all, "lcat", heads=1)
            ),
        ),
        Claim(
            "Uniform initialisation permits more attention in the second layer: λ1 is larger there than with normal.",
            LAMBDA_FIGURE,
            lambda runs: (
                runs.learned("lambda1", _second, "lcat", init="uniform")
                - runs.learned("lambda1", _second, "lcat", init="normal")
            ),
        ),
    ]


def _without_eight_normal(runs: DatasetRuns, model: str) -> pd.Series:
    cases = [("uniform", 1), ("uniform", 8), ("normal", 1)]
    return pd.concat([runs.score(model, init=init, heads=heads) for init, heads in cases], axis=1).mean(axis=1)


def _outer(layer: pd.Series) -> pd.Series:
    return layer.isin((layer.min(), layer.max()))


def _inner(layer: pd.Series) -> pd.Series:
    return ~_outer(layer)


def _all(layer: pd.Series) -> pd.Series:
    return layer > 0


def _second(layer: pd.Series) -> pd.Series:
    return layer == 2


def ablation_claims() -> Iterator[Claim]:
    """Yield the claims about models that learn one λ, for each score."""
    for score in ("gat", "gatv2"):
        by_kind = {
            model.kind: model.name for model in MODELS.values() if model.family == "conv" and model.score == score
        }
        gat, lcat, bridge = by_kind["gat"], by_kind["lcat"], by_kind["gcngat"]
        only_lambda1, only_lambda2 = by_kind["cat_l1"], by_kind["cat_l2"]
        table = f"ablation, {display_name(gat)} score"
        yield _between(bridge, "gcn", gat, table)
        yield _better(only_lambda1, only_lambda2, "Learning λ1 alone is better than λ2 alone", table)
        for alone in (only_lambda1, only_lambda2, bridge):
            yield _better(lcat, alone, "Learning both λ is better than one", table)


def _between(model: str, one: str, other: str, where: str) -> Claim:
    names = [display_name(name) for name in (model, one, other)]
    text = f"{names[0]} lies between {names[1]} and {names[2]} (distance inside the two, negative outside)."
    return Claim(text, where, lambda runs: distance_inside(runs.score(model), runs.score(one), runs.score(other)))


def _better(model: str, other: str, claim: str, where: str) -> Claim:
    text = f"{claim}: {display_name(model)} compared with {display_name(other)}."
    return Claim(text, where, lambda runs: runs.score(model) - runs.score(other))
