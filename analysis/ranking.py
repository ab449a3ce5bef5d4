"""All models at once over several datasets: mean ranks, Friedman's test, and which models cannot be told apart.

The procedure is that of Demšar (2006) with the post-hoc test that Benavoli et al. (2016) recommend: Wilcoxon's signed-rank test of
every two models, adjusted by Holm. Nemenyi's test compares mean ranks, so its verdict on two models depends on the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from lcat_analysis.across import one_condition_per_dataset
from lcat_analysis.compare import ALPHA
from lcat_analysis.metrics import ACCURACY, Measure
from lcat_analysis.paired import SINGLE_PRECISION, merge_equal_magnitudes, signed_rank_p
from lcat_analysis.published import published_results
from lcat_analysis.select import Selection
from lcat_analysis.table_order import model_order
from lcat_core.errors import ResultsError, unknown_name
from lcat_core.models import display_name


@dataclass
class Ranking:
    """Models compared over the same datasets.

    Attributes:
        means: Mean of the metric: one row per dataset, one column per model, best mean rank first.
        ranks: Rank of each model on each dataset, 1 is best; ties share their mean rank.
        statistic, p: Friedman's χ² and its p; NaN with fewer than 3 models or 2 datasets.
        posthoc: One row per two models: p of the signed-rank test, and adjusted by Holm.
        groups: Runs of neighbours in the order of mean ranks of which no two differ significantly; the largest ones only.
        left_out: What is not ranked, and why.
    """

    means: pd.DataFrame
    ranks: pd.DataFrame
    statistic: float
    p: float
    posthoc: pd.DataFrame
    groups: list[list[str]]
    alpha: float
    measure: Measure
    left_out: list[str]

    @property
    def mean_ranks(self) -> pd.Series:
        """Mean rank by model, best first."""
        return self.ranks.mean()

    @property
    def smallest_p(self) -> float:
        """The smallest Holm p that the post-hoc test can reach: that of a model that wins on every dataset."""
        return min(1.0, len(self.posthoc) * 2.0 ** (1 - len(self.means)))


def rank_models(selection: Selection, models: Sequence[str] | None = None, alpha: float = ALPHA) -> Ranking:
    """Rank the models of a selection, or some of them, on the datasets that all of them have.

    Raises:
        ResultsError: A model is unknown, settings vary, or fewer than two models share a dataset.
    """
    one_condition_per_dataset(selection, "a ranking")
    chosen = _chosen(models, selection.models)
    cells = {
        dataset: {model: selection.values(model, (dataset,)) for model in chosen} for dataset in selection.datasets
    }
    means = pd.DataFrame(
        {dataset: {model: values.mean(skipna=False) for model, values in row.items()} for dataset, row in cells.items()}
    ).T.reindex(columns=chosen)
    others = set(selection.other_measures.values())
    if len({selection.measure.higher_is_better, *(m.higher_is_better for m in others)}) > 1:
        raise ResultsError("the datasets have metrics of opposite directions, which have no common ranks; use --metric")
    return rank_means(means, selection.measure, alpha)


def published_ranking(models: Sequence[str] | None = None, experiment: str = "real") -> Ranking:
    """Rank the models of the paper by their published means."""
    table = published_results()
    table = table[table["experiment"] == experiment]
    means = table.pivot(index="dataset", columns="name", values="mean")
    return rank_means(means[_chosen(models, model_order(means.columns))], ACCURACY)


def _chosen(models: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    for model in models or []:
        if model not in known:
            raise ResultsError(unknown_name("model", model, known))
    return [model for model in known if models is None or model in models]


def rank_means(means: pd.DataFrame, measure: Measure = ACCURACY, alpha: float = ALPHA) -> Ranking:
    """Rank models by their means: one row per dataset, one column per model. Datasets with a gap are left out, and named.

    Raises:
        ResultsError: Fewer than two models, or no dataset that all of them have.
    """
    left_out = [
        f"{dataset}: no result of {', '.join(map(display_name, row.index[row.isna()]))}"
        for dataset, row in means.iterrows()
        if row.isna().any()
    ]
    means = means.dropna()
    if means.shape[1] < 2:
        raise ResultsError(f"a ranking needs at least 2 models, got {', '.join(means.columns) or 'none'}")
    if means.empty:
        raise ResultsError(f"no dataset has results of all models ({'; '.join(left_out)}); choose some with --models")
    values = measure.sign * means.to_numpy(float)
    ranks = pd.DataFrame(
        [stats.rankdata(-merge_equal_magnitudes(row, SINGLE_PRECISION * np.abs(row).max())) for row in values],
        means.index,
        means.columns,
    )
    order = ranks.mean().sort_values(kind="stable").index
    means, ranks = means[order], ranks[order]
    statistic, p = math.nan, math.nan
    if means.shape[1] > 2 and len(means) > 1 and (ranks.nunique(axis=1) > 1).any():
        statistic, p = map(float, stats.friedmanchisquare(*ranks.to_numpy().T))
    posthoc = _posthoc(means)
    groups = _indistinguishable(list(order), posthoc, alpha)
    return Ranking(means, ranks, statistic, p, posthoc, groups, alpha, measure, left_out)


def _posthoc(means: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for one, other in combinations(means.columns, 2):
        differences = (means[one] - means[other]).to_numpy(float)
        scale = np.abs(means[[one, other]].to_numpy(float)).max()
        p = signed_rank_p(merge_equal_magnitudes(differences, SINGLE_PRECISION * scale))
        rows.append({"model": one, "other": other, "difference": differences.mean(), "p": p})
    from statsmodels.stats.multitest import multipletests

    table = pd.DataFrame(rows)
    return table.assign(p_holm=multipletests(table["p"].to_numpy(float), method="holm")[1])


def _indistinguishable(order: list[str], posthoc: pd.DataFrame, alpha: float) -> list[list[str]]:
    differ = {frozenset(pair) for pair in posthoc.loc[posthoc["p_holm"] < alpha, ["model", "other"]].to_numpy()}
    groups: list[list[str]] = []
    end_before = 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not any(frozenset((order[end], m)) in differ for m in order[start:end]):
            end += 1
        if end - start > 1 and end > end_before:
            groups.append(order[start:end])
        end_before = max(end_before, end)
    return groups
