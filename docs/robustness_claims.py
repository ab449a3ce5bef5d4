"""The paper's claims about noise, initial weights and single λ, each as a difference that is positive if it is true.

docs/robustness.py asks for a verdict on each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from lcat_analysis.lambdas import final_lambdas
from lcat_analysis.paired import paired_test
from lcat_analysis.select import Selection
from lcat_core.models import display_name

FEATURES, EDGES, HEADS, INIT = "noise.features", "noise.edges", "lcat.heads", "lcat.init"


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, and a difference per seed that is positive if it is so."""

    text: str
    where: str
    difference: Callable[[Runs], pd.Series]


class Runs:
    """The chosen runs of one dataset."""

    def __init__(self, selection: Selection, dataset: str):
        self.table = selection.runs[selection.runs["dataset"] == dataset]
        final = final_lambdas(selection)
        self.lambdas = final if final.empty else final[final["dataset"] == dataset]

    def score(self, model: str, **conditions: object) -> pd.Series:
        """The test metric by seed, the mean over whatever is not a condition (``features=0`` for ``noise.features``)."""
        return _where(self.table[self.table["model"] == model], conditions).groupby("seed")["value"].mean()

    def drop(self, model: str, key: str) -> pd.Series:
        """Points lost from no noise of this kind to the most."""
        other = EDGES if key == FEATURES else FEATURES
        own = self.table[(self.table["model"] == model) & (self.table[other] == 0)]
        by_level = own.pivot_table(index="seed", columns=key, values="value")
        return by_level[by_level.columns.min()] - by_level[by_level.columns.max()]

    def under_noise(self, model: str, key: str) -> pd.Series:
        """The mean over all levels of this kind of noise above zero."""
        own = self.table[(self.table["model"] == model) & (self.table[key] > 0)]
        return own.groupby("seed")["value"].mean()

    def spread_under_noise(self, model: str, key: str) -> pd.Series:
        """The standard deviation over seeds, by level of this kind of noise above zero."""
        own = self.table[(self.table["model"] == model) & (self.table[key] > 0)]
        return own.groupby(key)["value"].std(ddof=1)

    def over_others(self, value: Callable[[str], pd.Series], model: str) -> pd.Series:
        """A model's value minus that of the best of all others, which is one model: the one of the best mean.

        The best of each seed would be ahead of any model by luck alone, if all were equally good.
        """
        others = [value(name) for name in self.table["model"].unique() if name != model]
        return value(model) - max(others, key=lambda values: values.mean())

    def spread(self, model: str) -> pd.Series:
        """The standard deviation over all initialisations and numbers of heads, by seed."""
        own = self.table[self.table["model"] == model]
        return own.groupby("seed")["value"].std(ddof=1)

    def gap_of_inits(self, model: str) -> pd.Series:
        return (self.score(model, init="normal") - self.score(model, init="uniform")).abs()

    def learned(self, name: str, layers: Callable[[pd.Series], pd.Series], **conditions: object) -> pd.Series:
        """The mean of λ1 or λ2 of L-CAT over the layers that are asked for, by seed."""
        own = _where(self.lambdas[self.lambdas["model"] == "lcat"], conditions)
        return own[layers(own["layer"])].groupby("seed")[name].mean()


def _where(table: pd.DataFrame, conditions: dict[str, object]) -> pd.DataFrame:
    keys = {"features": FEATURES, "edges": EDGES, "heads": HEADS, "init": INIT}
    for name, value in conditions.items():
        table = table[table[keys[name]] == value]
    return table


def _ends(layer: pd.Series) -> pd.Series:
    return layer.isin((layer.min(), layer.max()))


def _inner(layer: pd.Series) -> pd.Series:
    return ~_ends(layer)


def _every(layer: pd.Series) -> pd.Series:
    return layer > 0


def _second(layer: pd.Series) -> pd.Series:
    return layer == 2


NOISE_PLOTS = "noise plots"
NOISE = [
    Claim(
        "Attention is more sensitive to noise on features than GCN: GAT loses more accuracy.",
        NOISE_PLOTS,
        lambda r: r.drop("gat", FEATURES) - r.drop("gcn", FEATURES),
    ),
    Claim(
        "GCN suffers more from fake edges than attention does: GCN loses more accuracy than GAT.",
        NOISE_PLOTS,
        lambda r: r.drop("gcn", EDGES) - r.drop("gat", EDGES),
    ),
    Claim(
        "Convolving the score's input makes attention more robust to noise on features: CAT loses less than GAT.",
        NOISE_PLOTS,
        lambda r: r.drop("gat", FEATURES) - r.drop("cat", FEATURES),
    ),
    Claim(
        "Convolving the score's input reduces the variance under noise on features: CAT's spread over seeds is smaller than GAT's.",
        NOISE_PLOTS,
        lambda r: r.spread_under_noise("gat", FEATURES) - r.spread_under_noise("cat", FEATURES),
    ),
    Claim(
        "L-CAT is the best model under noise on features (mean over the levels, against the best of the others).",
        NOISE_PLOTS,
        lambda r: r.over_others(lambda model: r.under_noise(model, FEATURES), "lcat"),
    ),
    Claim(
        "L-CAT is the best model under fake edges (mean over the levels, against the best of the others).",
        NOISE_PLOTS,
        lambda r: r.over_others(lambda model: r.under_noise(model, EDGES), "lcat"),
    ),
    *(
        Claim(
            f"L-CAT reduces the variance under {kind}: its spread over seeds is smaller than GAT's.",
            NOISE_PLOTS,
            lambda r, key=key: r.spread_under_noise("gat", key) - r.spread_under_noise("lcat", key),
        )
        for kind, key in (("noise on features", FEATURES), ("fake edges", EDGES))
    ),
]
INIT_TABLE, LAMBDA_FIGURE = "table of initialisations", "distribution of λ"
INITIALISATION = [
    Claim(
        "The initial weights matter more to GAT than to L-CAT (gap between the two initialisations).",
        INIT_TABLE,
        lambda r: r.gap_of_inits("gat") - r.gap_of_inits("lcat"),
    ),
    Claim(
        "The initial weights matter more to GCN than to L-CAT (one head).",
        INIT_TABLE,
        lambda r: _gap_with_one_head(r, "gcn") - _gap_with_one_head(r, "lcat"),
    ),
    Claim(
        "L-CAT is consistent: its spread over initialisations and heads is smaller than GAT's.",
        INIT_TABLE,
        lambda r: r.spread("gat") - r.spread("lcat"),
    ),
    Claim(
        "L-CAT is better than GAT, averaged over all scenarios.",
        INIT_TABLE,
        lambda r: r.score("lcat") - r.score("gat"),
    ),
    Claim(
        "Eight heads help GAT where the initialisation is uniform.",
        INIT_TABLE,
        lambda r: r.score("gat", init="uniform", heads=8) - r.score("gat", init="uniform", heads=1),
    ),
    Claim(
        "CAT is better than GAT, except with eight heads and normal initialisation (mean of the other three cases).",
        INIT_TABLE,
        lambda r: _without_eight_normal(r, "cat") - _without_eight_normal(r, "gat"),
    ),
    Claim(
        "The first and the last layer become GCNs: their λ1 is smaller than that of the layers between.",
        LAMBDA_FIGURE,
        lambda r: r.learned("lambda1", _inner) - r.learned("lambda1", _ends),
    ),
    Claim(
        "More heads permit more attention: λ1 is larger with eight heads than with one.",
        LAMBDA_FIGURE,
        lambda r: r.learned("lambda1", _every, heads=8) - r.learned("lambda1", _every, heads=1),
    ),
    Claim(
        "Uniform initialisation permits more attention in the second layer: λ1 is larger there than with normal.",
        LAMBDA_FIGURE,
        lambda r: r.learned("lambda1", _second, init="uniform") - r.learned("lambda1", _second, init="normal"),
    ),
]


def _gap_with_one_head(runs: Runs, model: str) -> pd.Series:
    return (runs.score(model, init="normal", heads=1) - runs.score(model, init="uniform", heads=1)).abs()


def _without_eight_normal(runs: Runs, model: str) -> pd.Series:
    cases = [("uniform", 1), ("uniform", 8), ("normal", 1)]
    return pd.concat([runs.score(model, init=init, heads=heads) for init, heads in cases], axis=1).mean(axis=1)


def ablation_claims() -> Iterator[Claim]:
    for suffix in ("", "v2"):
        gat, lcat, bridge = f"gat{suffix}", f"lcat{suffix}", f"gcngat{suffix}"
        one, two = f"cat{suffix}_l1", f"cat{suffix}_l2"
        table = f"ablation, {display_name(gat)} score"
        yield Claim(
            f"{display_name(bridge)} lies between GCN and {display_name(gat)} (distance inside the two, negative outside).",
            table,
            lambda r, a=gat, b=bridge: _inside(r.score(b), r.score("gcn"), r.score(a)),
        )
        yield Claim(
            f"Learning λ1 alone is better than λ2 alone: {display_name(one)} against {display_name(two)}.",
            table,
            lambda r, a=one, b=two: r.score(a) - r.score(b),
        )
        for alone in (one, two, bridge):
            yield Claim(
                f"Learning both λ is better than one: {display_name(lcat)} against {display_name(alone)}.",
                table,
                lambda r, a=lcat, b=alone: r.score(a) - r.score(b),
            )


def _inside(value: pd.Series, one: pd.Series, other: pd.Series) -> pd.Series:
    """How far a model is on the inner side of the nearer of two others; which is nearer, and which lower, the means say."""
    low, high = sorted((one, other), key=lambda values: values.mean())
    return min((value - low, high - value), key=lambda values: values.mean())


def verdict(differences: pd.Series) -> tuple[str, str]:
    """Whether a difference is positive beyond doubt, and the numbers that say so."""
    values = differences.dropna()
    if len(values) < 2:
        return "undecided", f"n = {len(values)}"
    test = paired_test(values, 0 * values)  # knows that equal differences have no spread to decide by
    name = "undecided" if test.p >= 0.05 else "holds" if test.difference > 0 else "does not hold"
    digits = 3 if values.abs().max() < 1 else 2
    half = test.ci_high - test.difference
    return name, f"{test.difference:+.{digits}f} ± {half:.{digits}f} (n = {test.n})".replace("-", "−")
