"""A metric against the level of noise, one panel per kind of noise; all heads are pooled, as in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from lcat_analysis import figures
from lcat_analysis.select import Selection
from lcat_core.errors import ResultsError
from lcat_core.models import display_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LABELS = {"noise.features": "σ of the noise on features", "noise.edges": "fake edges per true edge"}


def noise_keys(selection: Selection) -> list[str]:
    """Return the varied hyperparameters that are levels of noise: numbers with ``noise`` in their key."""
    keys = [key for key in selection.variants if "noise" in key.lower()]
    return [key for key in keys if pd.api.types.is_number(selection.runs[key].iloc[0])]


def noise_table(selection: Selection, key: str) -> pd.DataFrame:
    """Return mean, sd (ddof 1) and n by model and level of one kind of noise; other kinds are at their lowest level."""
    runs = selection.runs
    for other in noise_keys(selection):
        if other != key:
            runs = runs[runs[other] == runs[other].min()]
    table = runs.groupby(["model", "dataset", key])["value"].agg(["mean", "std", "size"]).reset_index()
    return table.rename(columns={key: "level", "std": "sd", "size": "n"})


def noise_figure(selection: Selection) -> Figure:
    """Draw mean and standard deviation of every model at every level."""
    keys = noise_keys(selection)
    if not keys:
        varied = ", ".join(selection.variants) or "nothing"
        raise ResultsError(
            f"no level of noise varies: expected an axis with 'noise' in its key, but the runs vary {varied}"
        )
    panels = [(key, dataset) for dataset in selection.datasets for key in keys]
    with figures.styled():
        figure, axes = figures.new_panels(len(panels), 2, 2.3, 0.3)
        for ax, (key, dataset) in zip(axes, panels, strict=True):
            table = noise_table(selection, key)
            for position, model in enumerate(selection.models):
                own = table[(table["model"] == model) & (table["dataset"] == dataset)].sort_values("level")
                if own.empty:
                    continue
                style = figures.look(model, position)
                level, sd = own["level"].astype(float), own["sd"].fillna(0)
                ax.fill_between(level, own["mean"] - sd, own["mean"] + sd, color=style["color"], alpha=0.15, lw=0)
                ax.plot(level, own["mean"], label=figures.plain(display_name(model)), **style)
            ax.set_xlabel(figures.plain(LABELS.get(key, key)))
            ax.set_title(figures.plain(dataset))
            ax.set_ylabel(f"test {selection.measure_of(dataset).title}")
        figures.legend_above(figure, axes[0])
    return figure
