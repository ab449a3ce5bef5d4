"""Does the gain grow with the degree? Improvement over the baseline against the average degree of the datasets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lcat_analysis import figures
from lcat_analysis.cells import Cell, Row, Table, interval_cell, number_cell, p_cell, signed_cell
from lcat_analysis.compare import ALPHA, Comparisons, pair_name
from lcat_analysis.labels import place_labels
from lcat_analysis.metrics import ACCURACY, Measure
from lcat_analysis.published import published_degrees, published_results
from lcat_analysis.select import Selection
from lcat_analysis.table_order import model_order
from lcat_core.errors import ResultsError
from lcat_core.models import default_baselines, display_name, with_gat_score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MAX_NAMES = 20  # more names in a panel would cover each other
SIDE_BY_SIDE = 0.012  # between the error bars of two scores, as a fraction of the range of degrees


@dataclass
class Fit:
    """Least squares y = intercept + slope · x; p and interval of the slope with HC3 errors."""

    n: int
    slope: float
    intercept: float
    r: float | None
    p: float | None
    ci_low: float | None
    ci_high: float | None


@dataclass
class Trend:
    """One point per pair and dataset, and the lines through them.

    Attributes:
        points: dataset, avg_degree, model, baseline, group (both scores of a model), difference, ci_low, ci_high.
        fits: One line per pair and, through the means of both scores, per group of several pairs.
        left_out: What is not a point, and why.
        measure: The metric of the differences.
        alpha: All intervals are at level 1 − α.
    """

    points: pd.DataFrame
    fits: dict[str, Fit]
    left_out: list[str]
    measure: Measure = ACCURACY
    alpha: float = ALPHA

    @property
    def difference_name(self) -> str:
        """What the differences are, for an axis: a smaller loss is not an improvement in points."""
        better = "above" if self.measure.higher_is_better else "below"
        if better == "above" and self.measure.unit:
            return f"improvement ({self.measure.unit})"
        return f"difference of {self.measure.title}, {better} 0 better"


def trend(comparisons: Comparisons, selection: Selection) -> Trend:
    """Fit the trend of a sweep. Refused pairs and datasets of unknown degree are left out and named.

    Raises:
        ResultsError: Nothing is left, or settings vary. A dataset under several settings would count as several points, and the
            interval would be far too narrow.
    """
    if selection.variants:
        keys = ", ".join(selection.variants)
        choose = " ".join(f"--over {key}" for key in selection.variants)
        raise ResultsError(
            f"a trend needs one point per dataset, but the runs vary {keys}: select by validation with {choose}"
        )
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
        elif not math.isfinite(degree):
            left_out.append(f"{name}: its average degree is unknown")
        else:
            columns = ("dataset", "model", "baseline", "difference", "ci_low", "ci_high")
            rows.append({column: row[column] for column in columns} | {"avg_degree": degree})
    return _fit_all(rows, left_out, comparisons.measure, comparisons.alpha)


def published_trend(experiment: str = "real") -> Trend:
    """Fit the trend of the paper's published means; their paired differences are unknown, so there are no error bars."""
    table = published_results()
    means = table[table["experiment"] == experiment].set_index(["name", "dataset"])["mean"]
    degrees = published_degrees()
    pairs: Mapping[str, str] = default_baselines(model_order(means.index.get_level_values("name").unique()))
    rows = []
    for model, baseline in pairs.items():
        for dataset in means[model].index:
            difference = means[model, dataset] - means[baseline, dataset]
            row = {"dataset": dataset, "model": model, "baseline": baseline, "difference": difference}
            rows.append(row | {"ci_low": math.nan, "ci_high": math.nan, "avg_degree": degrees[dataset]})
    return _fit_all(rows, [])


def fit_line(x: np.ndarray, y: np.ndarray, alpha: float = ALPHA) -> Fit | None:
    """Fit OLS with HC3 errors; None with fewer than 3 points or a single degree."""
    result = _ols(x, y)
    if result is None:
        return None
    low, high = result.conf_int(alpha)[1]
    r = float(np.corrcoef(x, y)[0, 1]) if np.ptp(y) > 0 else None
    intercept, slope = map(float, result.params)
    if not _has_interval(x):
        return Fit(len(x), slope, intercept, r, None, None, None)
    return Fit(len(x), slope, intercept, r, float(result.pvalues[1]), float(low), float(high))


def _ols(x: np.ndarray, y: np.ndarray) -> Any | None:
    import statsmodels.api as sm

    if len(x) < 3 or np.ptp(x) == 0:
        return None
    return sm.OLS(y, sm.add_constant(x)).fit(cov_type="HC3", use_t=True)


def _has_interval(x: np.ndarray) -> bool:
    """Whether HC3 exists: it divides by 1 − leverage, which is 0 if one point alone determines the line."""
    leverage = 1 / len(x) + (x - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    return bool((leverage < 1 - 1e-8).all())


def _fit_all(
    rows: list[dict[str, Any]], left_out: list[str], measure: Measure = ACCURACY, alpha: float = ALPHA
) -> Trend:
    columns = ["dataset", "avg_degree", "model", "baseline", "difference", "ci_low", "ci_high"]
    points = pd.DataFrame(rows, columns=columns)
    if points.empty:
        raise ResultsError("no pair of models on a dataset of known average degree: there is no trend to fit")
    pairs = list(zip(points["model"], points["baseline"], strict=True))
    points["group"] = [pair_name(with_gat_score(model), with_gat_score(baseline)) for model, baseline in pairs]
    points["pair"] = [pair_name(model, baseline) for model, baseline in pairs]
    fits: dict[str, Fit | None] = {}
    for group, members in points.groupby("group", sort=False):
        for pair, own in members.groupby("pair", sort=False):
            fits[str(pair)] = fit_line(*_degree_and_difference(own), alpha)
        if members["pair"].nunique() > 1:
            means = mean_of_pairs(members)
            fits[f"{group!s}, mean of both scores"] = fit_line(*_degree_and_difference(means), alpha)
            incomplete = sorted(set(members["dataset"]) - set(means["dataset"]))
            left_out += [
                f"{group!s} on {name}: only one of the scores, so it is not in the mean of both" for name in incomplete
            ]
    return Trend(points, {name: fit for name, fit in fits.items() if fit}, left_out, measure, alpha)


def mean_of_pairs(points: pd.DataFrame) -> pd.DataFrame:
    """Average the pairs of a group (both scores) to one point per dataset: two scores are not two datasets.

    Only datasets with all pairs count; otherwise the line would mix the scores with the degree.
    """
    grouped = points.groupby("dataset", sort=False)
    means = grouped[["avg_degree", "difference"]].mean()
    return means[grouped["pair"].nunique() == points["pair"].nunique()].reset_index()


def _degree_and_difference(points: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return points["avg_degree"].to_numpy(float), points["difference"].to_numpy(float)


def trend_table(found: Trend) -> Table:
    """Return slopes and intervals, in points (or units of the loss) per neighbour."""
    columns = ["n", "Slope", f"{100 * (1 - found.alpha):g} % CI", "Intercept", "r", "p"]
    rows = [Row((name,), _fit_cells(fit)) for name, fit in found.fits.items()]
    notes = [
        f"{found.difference_name.capitalize()} against average degree (edges / nodes): ordinary least squares; "
        "interval and p of the slope with HC3 errors. n: number of points, one per dataset.",
    ]
    if not rows:
        notes.append("No line: a fit needs at least 3 points of different degrees.")
    notes += [f"Left out: {text}." for text in found.left_out]
    data = pd.DataFrame([{"line": name, **vars(fit)} for name, fit in found.fits.items()])
    return Table("Degree trend", ["Line"], columns, rows, notes, data)


def _fit_cells(fit: Fit) -> list[Cell]:
    return [
        Cell(str(fit.n), sort=fit.n),
        signed_cell(fit.slope, 4),
        interval_cell(fit.ci_low, fit.ci_high, 4),
        signed_cell(fit.intercept),
        number_cell(fit.r),
        p_cell(fit.p),
    ]


def trend_figure(found: Trend) -> Figure:
    """Draw one panel per model: a point per dataset and score; dashed, the line through one point per dataset, with its band."""
    groups = list(dict.fromkeys(found.points["group"]))
    with figures.styled():
        figure, axes = figures.new_panels(len(groups), 2, 2.9, sharey=True)
        for ax, group in zip(axes, groups, strict=True):
            _draw_group(ax, found.points[found.points["group"] == group], found.alpha)
        axes[0].set_ylim(_data_range(found.points))
        figure.supxlabel("average degree", fontsize=8)
        figure.supylabel(found.difference_name, fontsize=8)
        figure.canvas.draw()
        for ax, group in zip(axes, groups, strict=True):
            _name_points(ax, found.points[found.points["group"] == group])
    return figure


def _draw_group(ax: Axes, points: pd.DataFrame, alpha: float) -> None:
    ax.axhline(0, color=figures.FAINT, lw=0.6, zorder=0)
    span = max(float(np.ptp(points["avg_degree"])), 1.0)
    pairs = list(points.groupby("pair", sort=False))
    for i, (pair, own) in enumerate(pairs):
        style = figures.look(own["model"].iloc[0])
        x, y = own["avg_degree"], own["difference"]
        if own["ci_low"].notna().any():
            x = x + SIDE_BY_SIDE * span * (i - (len(pairs) - 1) / 2)
            bars = [y - own["ci_low"], own["ci_high"] - y]
            ax.errorbar(x, y, yerr=bars, fmt="none", ecolor=style["color"], elinewidth=0.7, alpha=0.6)
        style.pop("linestyle")
        ax.plot(x, y, linestyle="none", label=figures.plain(pair), **style)
    degrees, differences = _degree_and_difference(mean_of_pairs(points))
    result = _ols(degrees, differences)
    if result is not None:
        grid = np.linspace(degrees.min(), degrees.max(), 60)
        line = result.get_prediction(np.column_stack([np.ones_like(grid), grid])).summary_frame(alpha=alpha)
        ax.plot(grid, line["mean"], color=figures.INK, lw=1, ls=(0, (4, 3)), zorder=1, gid="fit")
        if _has_interval(degrees):
            ax.fill_between(grid, line["mean_ci_lower"], line["mean_ci_upper"], color=figures.FAINT, alpha=0.18, lw=0)
    ax.set_xlim(points["avg_degree"].min() - 0.08 * span, points["avg_degree"].max() + 0.42 * span)
    ax.legend(loc="upper left", handletextpad=0.3)


def _data_range(points: pd.DataFrame) -> tuple[float, float]:
    """Return the limits of y from points and error bars, with room for the legend; with few points the band would dwarf them."""
    values = points[["difference", "ci_low", "ci_high"]].to_numpy(float)
    low, high = min(np.nanmin(values), 0.0), max(np.nanmax(values), 0.0)
    span = (high - low) or 1.0
    return low - 0.1 * span, high + 0.22 * span


def _name_points(ax: Axes, points: pd.DataFrame) -> None:
    """Write the names of datasets beside their highest points; of many datasets, those farthest from the typical difference."""
    top = points.loc[points.groupby("dataset")["difference"].idxmax()]
    distance = (top["difference"] - points["difference"].median()).abs()
    top = top.loc[distance.nlargest(MAX_NAMES).index].sort_values("avg_degree", ascending=False)
    anchors = list(zip(top["avg_degree"], top["difference"], strict=True))
    obstacles = list(zip(points["avg_degree"], points["difference"], strict=True))
    fitted = [(x, y) for line in ax.lines if line.get_gid() == "fit" for x, y in np.asarray(line.get_xydata())]
    names = [figures.plain(name) for name in top["dataset"]]
    place_labels(ax, anchors, names, obstacles, fitted, fontsize=6, color=figures.INK)
