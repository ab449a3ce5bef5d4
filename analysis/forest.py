"""Forest plot: the difference of every pair on every dataset with its interval, and the pooled estimate below."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lcat_analysis import figures
from lcat_analysis.across import Across
from lcat_analysis.compare import pair_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 0.17  # inches per dataset
_PER_ROW = 4  # panels


def forest_figure(across: Across) -> Figure:
    """Draw one panel per pair, one line per dataset; the diamond is the pooled estimate, as wide as its interval."""
    pairs = across.pairs.to_dict("records")
    datasets = list(dict.fromkeys(across.effects["dataset"]))
    with figures.styled():
        per_row = min(_PER_ROW, -(-len(pairs) // -(-len(pairs) // _PER_ROW)))
        height = _ROW * (len(datasets) + 2) + 0.35
        figure, axes = figures.new_panels(len(pairs), per_row, height, 0.35, sharey=True, sharex=True)
        for ax, pair in zip(axes, pairs, strict=True):
            own = across.effects[
                (across.effects["model"] == pair["model"]) & (across.effects["baseline"] == pair["baseline"])
            ]
            _draw(ax, own, pair, datasets)
            ax.set_title(figures.plain(pair_name(pair["model"], pair["baseline"])))
        axes[0].set_xlim(_limits(across))
        figure.supxlabel(_axis_name(across), fontsize=8)
    return figure


def _draw(ax: Axes, own: pd.DataFrame, pair: Mapping[Any, Any], datasets: list[str]) -> None:
    ax.axvline(0, color=figures.FAINT, lw=0.6, zorder=0)
    style = figures.look(str(pair["model"]))
    style.pop("linestyle")
    for row in own.to_dict("records"):
        y = datasets.index(row["dataset"])
        if math.isfinite(row["ci_low"]):
            ax.plot([row["ci_low"], row["ci_high"]], [y, y], color=style["color"], lw=0.9, zorder=1)
        ax.plot(row["difference"], y, **style | {"markersize": 3.5})
    bottom = len(datasets) + 0.4
    names = [figures.plain(name) for name in datasets]
    places = [float(i) for i in range(len(datasets))]
    estimate, low, high = (float(pair[key]) for key in ("pooled", "pooled_low", "pooled_high"))
    if math.isfinite(estimate):
        ax.fill([low, estimate, high, estimate], [bottom, bottom - 0.3, bottom, bottom + 0.3], color=figures.INK, lw=0)
        names, places = [*names, "pooled"], [*places, bottom]
    ax.set_yticks(places, names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(bottom + 0.7, -0.7)


def _limits(across: Across) -> tuple[float, float]:
    """Return limits that show all points; a wide interval of one dataset with few seeds is cut off."""
    points = across.effects["difference"].to_numpy(float)
    ends = across.effects[["ci_low", "ci_high"]].to_numpy(float).ravel()
    pooled = across.pairs[["pooled_low", "pooled_high"]].to_numpy(float).ravel()
    ends, pooled = ends[np.isfinite(ends)], pooled[np.isfinite(pooled)]
    span = max(float(np.ptp([*points, 0.0])), 1e-12)
    inner = [end for end in [*ends, *pooled] if points.min() - span < end < points.max() + span]
    low, high = min([*points, *inner, 0.0]), max([*points, *inner, 0.0])
    margin = 0.06 * ((high - low) or 1.0)
    return low - margin, high + margin


def _axis_name(across: Across) -> str:
    side = "right" if across.measure.higher_is_better else "left"
    unit = f" ({across.measure.unit})" if across.measure.unit else f" of {across.measure.label}"
    return f"difference{unit}, {side} of 0: the model is better"
