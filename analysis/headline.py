"""The answer in two sentences that a person can quote: what was found, and what it does not show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lcat_analysis.across import Across
from lcat_analysis.cells import p_text, signed
from lcat_analysis.compare import Comparisons
from lcat_analysis.metrics import Measure
from lcat_analysis.ranking import Ranking
from lcat_core.models import MODELS, display_name


def across_sentences(across: Across | None, ranking: Ranking | None) -> list[str]:
    """Return one sentence about the main pair over all datasets, and one about all models."""
    sentences = []
    if across is not None:
        sentences.append(_pair_sentence(across))
    if ranking is not None:
        sentences.append(_ranking_sentence(ranking))
    return sentences


def main_pair(models: list[str]) -> str:
    """Return the model that the first sentence is about: the first that learns both λ, else the first."""
    learned = [model for model in models if model in MODELS and MODELS[model].kind == "lcat"]
    return (learned or models)[0]


def _pair_sentence(across: Across) -> str:
    pairs = across.pairs.set_index("model", drop=False)
    row: Mapping[Any, Any] = pairs.loc[main_pair(list(pairs.index))].to_dict()
    model, baseline = display_name(row["model"]), display_name(row["baseline"])
    n = int(row["datasets"])
    datasets = f"{n} datasets" if n > 1 else "one dataset"
    ties = f", equal on {row['ties']}" if row["ties"] else ""
    text = f"Over {datasets}, {model} is better than {baseline} on {row['wins']}{ties} and worse on {row['losses']}; "
    text += f"the mean difference is {_amount(row['mean'], across.measure)}"
    if math.isfinite(row["mean_low"]):
        low, high = (signed(row[end], across.measure.digits) for end in ("mean_low", "mean_high"))
        text += f" ({100 * (1 - across.alpha):g} % interval {low} to {high}; Wilcoxon {p_text(row['p_wilcoxon'])})"
    return f"{text}: {_meaning(row, across, model, baseline)}."


def _meaning(row: Mapping[Any, Any], across: Across, model: str, baseline: str) -> str:
    if row["datasets"] < 2:
        return "one dataset says nothing about others"
    # A model that wins on all of n datasets has p = 2^(1-n).
    if 2.0 ** (1 - row["datasets"]) >= across.alpha:
        return f"{row['datasets']} datasets are too few to show a difference, whatever the results"
    # That of the test whose p decides: one large difference can give the mean the other sign.
    direction = "better" if row["direction"] > 0 else "worse"
    if row["p_holm"] < across.alpha:
        return f"{model} is {direction} than {baseline} across datasets"
    if row["p_wilcoxon"] < across.alpha:
        return (
            f"this suggests that {model} is {direction}, but not after Holm's correction for {len(across.pairs)} pairs"
        )
    return "this does not show that either is better across datasets"


def _ranking_sentence(ranking: Ranking) -> str:
    ranks = ranking.mean_ranks
    first, last = ranks.index[0], ranks.index[-1]
    text = f"Mean ranks of the {len(ranks)} models run from {ranks[first]:.1f} ({display_name(str(first))}) to "
    text += f"{ranks[last]:.1f} ({display_name(str(last))})"
    if not math.isfinite(ranking.p):
        return f"{text}."
    differ = "the models differ" if ranking.p < ranking.alpha else "no difference between the models is shown"
    apart = int((ranking.posthoc["p_holm"] < ranking.alpha).sum())
    told = (
        f"{apart} of {len(ranking.posthoc)} pairs of models can be told apart"
        if apart
        else "no two of them can be told apart"
    )
    if ranking.p >= ranking.alpha and not apart:
        return f"{text}; {differ} (Friedman {p_text(ranking.p)})."
    return f"{text}; {differ} (Friedman {p_text(ranking.p)}), and {told} after Holm's correction."


def comparison_sentences(comparisons: Comparisons) -> list[str]:
    """Return what the tests of single datasets say about the main pair."""
    tested = comparisons.tested
    if tested.empty:
        return []
    model = main_pair(list(dict.fromkeys(tested["model"])))
    own = tested[tested["model"] == model]
    counts = own["verdict"].value_counts().to_dict()
    listed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in counts)
    baseline = display_name(str(own["baseline"].iloc[0]))
    where = "condition" if comparisons.variants else "dataset"
    return [f"Tested {where} by {where}, {display_name(model)} against {baseline} is: {listed} (Holm-corrected)."]


def _amount(value: float, measure: Measure) -> str:
    return f"{signed(value, measure.digits)} {measure.unit}".rstrip()
