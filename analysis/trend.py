"""Does the gain grow with the degree? Improvement over the baseline against the average degree of the datasets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from lcat_analysis.across import known_errors, one_condition_per_dataset, published_across
from lcat_analysis.compare import ALPHA, Comparisons, pair_name
from lcat_analysis.metrics import ACCURACY, Measure
from lcat_analysis.published import published_degrees
from lcat_analysis.select import Selection
from lcat_analysis.trend_fit import Fit, fit_trend
from lcat_core.errors import ResultsError
from lcat_core.models import display_name, with_gat_score


@dataclass
class Trend:
    """One point per pair and dataset, and the lines through them.

    Attributes:
        points: dataset, avg_degree, x, model, baseline, group (both scores of a model), pair, difference, sd, error, df, ci_low,
            ci_high; x is the degree, or its logarithm.
        fits: One line per pair and, through the means of both scores, per group of several pairs.
        left_out: What is not a point, and why.
        measure: The metric of the differences.
        alpha: All intervals are at level 1 − α.
        log_degree: Whether x is the base-2 logarithm of the degree.
        notes: What else a reader must know.
    """

    points: pd.DataFrame
    fits: dict[str, Fit]
    left_out: list[str]
    measure: Measure = ACCURACY
    alpha: float = ALPHA
    log_degree: bool = False
    notes: list[str] = field(default_factory=list)

    def group_fit(self, group: str) -> Fit | None:
        """Return the line of a group: through the means of both scores, or of its only pair."""
        pairs = self.points.loc[self.points["group"] == group, "pair"].unique()
        return self.fits.get(pairs[0] if len(pairs) == 1 else _mean_name(group))

    @property
    def difference_name(self) -> str:
        """What the differences are, for an axis: a smaller loss is not an improvement in points."""
        better = "above" if self.measure.higher_is_better else "below"
        if better == "above" and self.measure.unit:
            return f"improvement ({self.measure.unit})"
        return f"difference of {self.measure.title}, {better} 0 better"


def trend(comparisons: Comparisons, selection: Selection, *, log_degree: bool = False) -> Trend:
    """Fit the trend of a sweep. Refused pairs and datasets of unknown degree are left out and named.

    Raises:
        ResultsError: Nothing is left, or settings vary. A dataset under several settings would count as several points, and the
            interval would be far too narrow.
    """
    one_condition_per_dataset(selection, "a trend")
    left_out = [
        f"{pair_name(model, baseline)}: {display_name(model)} has no finished run"
        for model, baseline in comparisons.untested.items()
    ]
    rows = []
    for row in comparisons.table.to_dict("records"):
        name = f"{pair_name(row['model'], row['baseline'])} on {row['dataset']}"
        degree = selection.degrees.get(row["dataset"], math.nan)
        if row["verdict"] == "refused":
            left_out.append(f"{name}: {row['note']}")
        elif not (math.isfinite(degree) and degree > 0):
            left_out.append(f"{name}: its average degree is unknown")
        else:
            columns = ("dataset", "model", "baseline", "difference", "sd", "error", "ci_low", "ci_high")
            rows.append({column: row[column] for column in columns} | {"df": row["n"] - 1, "avg_degree": degree})
    found = Trend(pd.DataFrame(), {}, left_out, comparisons.measure, comparisons.alpha, log_degree)
    return _fit_all(rows, found)


def published_trend(experiment: str = "real", *, log_degree: bool = False) -> Trend:
    """Fit the trend of the paper's published means; their paired differences are unknown, so there are no error bars."""
    across, degrees = published_across(experiment), published_degrees()
    effects = across.effects.assign(ci_low=math.nan, ci_high=math.nan)
    rows = [row | {"avg_degree": degrees[row["dataset"]]} for row in effects.to_dict("records")]
    note = "Published: the weights of the meta-regression treat the runs of both models as independent."
    return _fit_all(rows, Trend(pd.DataFrame(), {}, [], log_degree=log_degree, notes=[note]))


_COLUMNS = ["dataset", "avg_degree", "model", "baseline", "difference", "sd", "error", "df", "ci_low", "ci_high"]


def _fit_all(rows: Sequence[Mapping[Any, Any]], found: Trend) -> Trend:
    """Add points and lines to a trend."""
    points = pd.DataFrame(list(rows), columns=_COLUMNS)
    if points.empty:
        raise ResultsError("no pair of models on a dataset of known average degree: there is no trend to fit")
    points["x"] = np.log2(points["avg_degree"]) if found.log_degree else points["avg_degree"]
    pairs = list(zip(points["model"], points["baseline"], strict=True))
    points["group"] = [pair_name(with_gat_score(model), with_gat_score(baseline)) for model, baseline in pairs]
    points["pair"] = [pair_name(model, baseline) for model, baseline in pairs]
    fits: dict[str, Fit | None] = {}
    for group, members in points.groupby("group", sort=False):
        for pair, own in members.groupby("pair", sort=False):
            fits[str(pair)] = _fit(own, found.alpha)
        if members["pair"].nunique() > 1:
            means = mean_of_pairs(members)
            fits[_mean_name(str(group))] = _fit(means, found.alpha)
            incomplete = sorted(set(members["dataset"]) - set(means["dataset"]))
            found.left_out += [
                f"{group!s} on {name}: only one of the scores, so it is not in the mean of both" for name in incomplete
            ]
    found.points = points
    found.fits = {name: fit for name, fit in fits.items() if fit}
    return found


def _mean_name(group: str) -> str:
    return f"{group}, mean of both scores"


def _fit(points: pd.DataFrame, alpha: float) -> Fit | None:
    x, y = points["x"].to_numpy(float), points["difference"].to_numpy(float)
    _, errors = known_errors(points)
    complete = len(errors) == len(points) and bool((errors > 0).all())
    return fit_trend(x, y, list(points["dataset"]), errors if complete else None, alpha)


def mean_of_pairs(points: pd.DataFrame) -> pd.DataFrame:
    """Average the pairs of a group (both scores) to one point per dataset: two scores are not two datasets.

    Only datasets with all pairs count; otherwise the line would mix the scores with the degree.
    """
    grouped = points.groupby("dataset", sort=False)
    # The two differences share the seeds, so the error of their mean may be as large as the mean of their errors.
    means = grouped[["avg_degree", "x", "difference", "sd", "error"]].mean().assign(df=grouped["df"].min())
    return means[grouped["pair"].nunique() == points["pair"].nunique()].reset_index()
