"""The figure of the trend: one panel per model, one point per dataset and score, one line through the datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lcat_analysis import figures
from lcat_analysis.cells import p_text, signed
from lcat_analysis.labels import place_labels
from lcat_analysis.trend import Trend, mean_of_pairs
from lcat_analysis.trend_fit import Fit, has_interval, least_squares

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NAMES = 20  # more names in a panel would cover each other
SIDE_BY_SIDE = 0.012  # between the error bars of two scores, as a fraction of the range of degrees


def trend_figure(found: Trend) -> Figure:
    """Draw one panel per model: a point per dataset and score; dashed, the line through one point per dataset, with its band.

    The title of a panel has slope, interval and p of that line, and the largest p with one dataset left out.
    """
    from matplotlib.ticker import MaxNLocator

    groups = list(dict.fromkeys(found.points["group"]))
    with figures.styled():
        figure, axes = figures.new_panels(len(groups), 2, 3.1, sharey=True)
        for ax, group in zip(axes, groups, strict=True):
            own = found.points[found.points["group"] == group]
            _draw_group(ax, own, found.alpha)
            if (fit := found.group_fit(group)) is not None:
                ax.set_title(_describe(fit, found), fontsize=6.5, loc="left")
            if found.log_degree:
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
                ax.xaxis.set_major_formatter(lambda value, _: f"{2**value:g}")
        axes[0].set_ylim(_data_range(found.points))
        figure.supxlabel(f"average degree{', logarithmic' if found.log_degree else ''}", fontsize=8)
        figure.supylabel(found.difference_name, fontsize=8)
        figure.canvas.draw()
        for ax, group in zip(axes, groups, strict=True):
            _name_points(ax, found.points[found.points["group"] == group])
    return figure


def _describe(fit: Fit, found: Trend) -> str:
    per = "doubling" if found.log_degree else "neighbour"
    text = f"slope {signed(fit.slope, 3)} per {per}"
    if fit.p is None or fit.ci_low is None or fit.ci_high is None:
        return text
    text += f", {100 * (1 - found.alpha):g} % CI [{signed(fit.ci_low, 3)}, {signed(fit.ci_high, 3)}], {p_text(fit.p)}"
    return f"{text}\nwithout {figures.plain(fit.loo_without)}: {p_text(fit.loo_p)}" if fit.loo_without else text


def _draw_group(ax: Axes, points: pd.DataFrame, alpha: float) -> None:
    ax.axhline(0, color=figures.FAINT, lw=0.6, zorder=0)
    span = max(float(np.ptp(points["x"])), 1.0)
    pairs = list(points.groupby("pair", sort=False))
    for i, (pair, own) in enumerate(pairs):
        style = figures.look(own["model"].iloc[0])
        x, y = own["x"], own["difference"]
        if own["ci_low"].notna().any():
            x = x + SIDE_BY_SIDE * span * (i - (len(pairs) - 1) / 2)
            bars = [y - own["ci_low"], own["ci_high"] - y]
            ax.errorbar(x, y, yerr=bars, fmt="none", ecolor=style["color"], elinewidth=0.7, alpha=0.6)
        style.pop("linestyle")
        ax.plot(x, y, linestyle="none", label=figures.plain(pair), **style)
    means = mean_of_pairs(points)
    degrees = means["x"].to_numpy(float)
    result = least_squares(degrees, means["difference"].to_numpy(float))
    if result is not None:
        grid = np.linspace(degrees.min(), degrees.max(), 60)
        line = result.get_prediction(np.column_stack([np.ones_like(grid), grid])).summary_frame(alpha=alpha)
        ax.plot(grid, line["mean"], color=figures.INK, lw=1, ls=(0, (4, 3)), zorder=1, gid="fit")
        if has_interval(degrees):
            ax.fill_between(grid, line["mean_ci_lower"], line["mean_ci_upper"], color=figures.FAINT, alpha=0.18, lw=0)
    ax.set_xlim(points["x"].min() - 0.08 * span, points["x"].max() + 0.42 * span)
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
    top = top.loc[distance.nlargest(MAX_NAMES).index].sort_values("x", ascending=False)
    anchors = list(zip(top["x"], top["difference"], strict=True))
    obstacles = list(zip(points["x"], points["difference"], strict=True))
    fitted = [(x, y) for line in ax.lines if line.get_gid() == "fit" for x, y in np.asarray(line.get_xydata())]
    names = [figures.plain(name) for name in top["dataset"]]
    place_labels(ax, anchors, names, obstacles, fitted, fontsize=6, color=figures.INK)
