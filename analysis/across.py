"""Each model against its baseline over all datasets: wins, a signed-rank test, the mean difference, a pooled estimate.

A dataset counts once, whatever its number of seeds: the question is how a model does on other datasets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lcat_analysis.compare import ALPHA, Comparisons, pair_name
from lcat_analysis.metrics import ACCURACY, Measure
from lcat_analysis.paired import SINGLE_PRECISION, merge_equal_magnitudes, signed_rank_p
from lcat_analysis.published import published_results
from lcat_analysis.random_effects import moderate_variances, random_effects
from lcat_analysis.select import Selection
from lcat_analysis.table_order import model_order
from lcat_core.errors import ResultsError
from lcat_core.models import default_baselines


@dataclass
class Across:
    """The pairs over all datasets.

    Attributes:
        effects: One row per pair and dataset: model, baseline, dataset, difference, sd, error, df, ci_low, ci_high. The last five
            are NaN where the pair could not be tested, for instance with a single seed.
        pairs: One row per pair, see `summarise_pairs`.
        measure: The metric of the differences.
        alpha: Intervals are at level 1 − α.
        notes: What the numbers leave out.
    """

    effects: pd.DataFrame
    pairs: pd.DataFrame
    measure: Measure
    alpha: float
    notes: list[str]


_EFFECT = ("model", "baseline", "dataset", "difference", "sd", "error", "df", "ci_low", "ci_high")


def one_condition_per_dataset(selection: Selection, what: str) -> None:
    """Refuse a selection in which a dataset would count several times.

    Raises:
        ResultsError: Settings vary beyond those that were chosen by validation.
    """
    if selection.variants:
        keys, choose = ", ".join(selection.variants), " ".join(f"--over {key}" for key in selection.variants)
        raise ResultsError(
            f"{what} needs one result per model and dataset, but the runs vary {keys}: select by validation with {choose}"
        )


def across_datasets(comparisons: Comparisons, selection: Selection) -> Across:
    """Summarise the comparisons of every pair over the datasets.

    Raises:
        ResultsError: There is no pair, or settings vary: a dataset under several settings would count several times.
    """
    one_condition_per_dataset(selection, "a comparison across datasets")
    rows, notes = [], []
    for row in comparisons.table.to_dict("records"):
        effect = {name: row.get(name, math.nan) for name in _EFFECT}
        if row["verdict"] == "refused":
            effect |= {"difference": row["model_mean"] - row["baseline_mean"], "df": math.nan}
            where = f"{pair_name(row['model'], row['baseline'])} on {row['dataset']}"
            if not math.isfinite(effect["difference"]):
                notes.append(f"Left out: {where}: {row['note']}.")
                continue
            notes.append(f"Without an interval, and not in the pooled estimate: {where}: {row['note']}.")
        else:
            effect["df"] = row["n"] - 1
        rows.append(effect)
    for model, baseline in comparisons.untested.items():
        notes.append(f"Left out: {pair_name(model, baseline)}: no finished run.")
    return _summary(rows, comparisons.measure, comparisons.alpha, notes)


def published_across(experiment: str = "real") -> Across:
    """Summarise the paper's published means; their intervals are those of independent runs, because the pairs are unknown."""
    table = published_results()
    table = table[table["experiment"] == experiment].set_index(["name", "dataset"])
    rows: list[dict[str, Any]] = []
    for model, baseline in default_baselines(model_order(table.index.get_level_values("name").unique())).items():
        for dataset in table.loc[model].index:
            ours, theirs = table.loc[(model, dataset)], table.loc[(baseline, dataset)]
            runs, sd = int(ours["runs"]), math.hypot(ours["std"], theirs["std"])
            difference, error, df = ours["mean"] - theirs["mean"], sd / math.sqrt(runs), 2 * (runs - 1)
            half = float(stats.t.isf(ALPHA / 2, df)) * error
            values = (model, baseline, dataset, difference, sd, error, df, difference - half, difference + half)
            rows.append(dict(zip(_EFFECT, values, strict=True)))
    note = (
        "The paper does not print paired differences: the intervals of single datasets treat the runs of both models "
        "as independent."
    )
    return _summary(rows, ACCURACY, ALPHA, [note])


def _summary(rows: list[dict[str, Any]], measure: Measure, alpha: float, notes: list[str]) -> Across:
    if not rows:
        raise ResultsError(
            "no model and its baseline have results on the same dataset" + "".join(f" {n}" for n in notes)
        )
    effects = pd.DataFrame(rows, columns=list(_EFFECT))
    return Across(effects, summarise_pairs(effects, measure, alpha), measure, alpha, notes)


def summarise_pairs(effects: pd.DataFrame, measure: Measure, alpha: float = ALPHA) -> pd.DataFrame:
    """Return one row per pair.

    - ``datasets``, ``wins``, ``ties``, ``losses``: a win is a better mean, however small the difference.
    - ``direction``: 1 if the signed-rank test speaks for the model, -1 if for the baseline, 0 if for neither.
    - ``mean``, ``mean_low``, ``mean_high``, ``p_mean``: mean of the differences of the datasets, with a t-test and interval.
    - ``p_wilcoxon``, ``p_holm``: signed-rank test over the datasets; the second is adjusted for the number of pairs.
    - ``pooled``, ``pooled_low``, ``pooled_high``, ``p_pooled``, ``tau``, ``i_squared``: random effects over the datasets whose
      standard error is known; NaN with fewer than 2 of them.
    """
    rows = []
    for (model, baseline), own in effects.groupby(["model", "baseline"], sort=False):
        differences = own["difference"].to_numpy(float)
        # Differences that only rounding errors distinguish, from each other or from zero, are ties.
        differences = merge_equal_magnitudes(differences, SINGLE_PRECISION * max(np.abs(differences).max(), 1.0))
        signs = np.sign(measure.sign * differences)
        row = {"model": model, "baseline": baseline, "datasets": len(own)}
        nonzero = signs != 0
        row["direction"] = int(np.sign((signs[nonzero] * stats.rankdata(np.abs(differences[nonzero]))).sum()))
        row |= {"wins": int((signs > 0).sum()), "ties": int((signs == 0).sum()), "losses": int((signs < 0).sum())}
        rows.append(row | _mean_difference(differences, alpha) | _pooled(own, alpha))
    table = pd.DataFrame(rows)
    tested = table["p_wilcoxon"].notna()
    table["p_holm"] = math.nan
    if tested.any():
        from statsmodels.stats.multitest import multipletests

        table.loc[tested, "p_holm"] = multipletests(table.loc[tested, "p_wilcoxon"].to_numpy(float), method="holm")[1]
    return table


def _mean_difference(differences: np.ndarray, alpha: float) -> dict[str, float]:
    n, mean = differences.size, float(differences.mean())
    row = {"mean": mean, "mean_low": math.nan, "mean_high": math.nan, "p_mean": math.nan, "p_wilcoxon": math.nan}
    if n < 2:
        return row
    row["p_wilcoxon"] = signed_rank_p(differences)
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    if error > 0:
        half = float(stats.t.isf(alpha / 2, n - 1)) * error
        p = float(2 * stats.t.sf(abs(mean) / error, n - 1))
        row |= {"mean_low": mean - half, "mean_high": mean + half, "p_mean": p}
    return row


def _pooled(own: pd.DataFrame, alpha: float) -> dict[str, float]:
    found = random_effects(*known_errors(own), alpha=alpha)
    if found is None:
        return dict.fromkeys(("pooled", "pooled_low", "pooled_high", "p_pooled", "tau", "i_squared"), math.nan)
    return {
        "pooled": float(found.coefficients[0]),
        "pooled_low": float(found.low[0]),
        "pooled_high": float(found.high[0]),
        "p_pooled": float(found.p[0]),
        "tau": found.tau,
        "i_squared": found.i_squared,
    }


def known_errors(effects: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return difference and moderated standard error of the datasets of one pair that have one."""
    known = effects[effects["df"].notna()]
    variances = known["sd"].to_numpy(float) ** 2
    # The square of error / sd is 1/n, or more for splits that overlap; with an sd of 0 it is unknown, and 1/n will do.
    share = (known["error"] / known["sd"].where(known["sd"] > 0)).to_numpy(float) ** 2
    share = np.where(np.isfinite(share), share, 1 / (known["df"].to_numpy(float) + 1))
    moderated = moderate_variances(variances, known["df"].to_numpy(float)) if len(known) else variances
    return known["difference"].to_numpy(float), np.sqrt(moderated * share)
