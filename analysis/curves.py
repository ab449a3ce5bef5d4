"""A metric over training: mean and spread over seeds, one panel per dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lcat_analysis import figures
from lcat_analysis.errors import NotRecorded
from lcat_analysis.history import read_history
from lcat_analysis.select import Selection
from lcat_core.errors import ResultsError, unknown_name
from lcat_core.models import display_name
from lcat_core.run_folder import SPLITS, STATS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_POINTS = 200


def training_curves(selection: Selection, dataset: str, split: str = "test") -> pd.DataFrame:
    """Return mean, sd (ddof 1) and n over the chosen runs by model and epoch, scaled as in the tables.

    Epochs that not every run of a model reached are left out: the mean would jump where a run ends.
    """
    if split not in SPLITS:
        raise ResultsError(unknown_name("split", split, SPLITS))
    runs = selection.runs[selection.runs["dataset"] == dataset]
    tables = []
    metric = selection.measure_of(dataset).name
    for model, own in runs.groupby("model", sort=False):
        histories = [read_history(path, split) for path in own["path"]]
        histories = [h[["epoch", metric]] for h in histories if {"epoch", metric} <= set(h)]
        if not histories:
            continue
        grouped = pd.concat(histories).groupby("epoch")[metric]
        table = grouped.agg(["mean", "std", "size"])
        table = table[table["size"] == table["size"].max()]
        kept = np.unique(np.linspace(0, len(table) - 1, MAX_POINTS).astype(int))
        table = table.iloc[kept].rename(columns={"std": "sd", "size": "n"}).reset_index()
        factor = selection.measure_of(dataset).factor
        tables.append(table.assign(model=model, mean=table["mean"] * factor, sd=table["sd"] * factor))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def curves_figure(
    selection: Selection,
    datasets: Sequence[str] | None = None,
    split: str = "test",
    models: Sequence[str] | None = None,
    *,
    bands: bool = True,
) -> Figure:
    """Draw the training curves of all models, or of ``models``, with one panel per dataset; bands are ± one sd.

    Raises:
        ResultsError: A model or split is unknown, or nothing was logged.
    """
    for model in models or []:
        if model not in selection.models:
            raise ResultsError(unknown_name("model", model, selection.models))
    datasets = list(datasets or selection.datasets)
    found = {dataset: training_curves(selection, dataset, split) for dataset in datasets}
    found = {dataset: table for dataset, table in found.items() if len(table)}
    if not found:
        raise NotRecorded(f"no run logged {selection.metric} by epoch: expected {split}/{STATS} in their folders")
    shown = [m for m in selection.models if models is None or m in models]
    with figures.styled():
        figure, axes = figures.new_panels(len(found), 3, 2.0, 0.5)
        for ax, (dataset, table) in zip(axes, found.items(), strict=True):
            _draw(ax, table[table["model"].isin(shown)], shown, bands)
            other = selection.other_measures.get(dataset)
            ax.set_title(figures.plain(dataset if other is None else f"{dataset}: {other.title}"))
        figure.supxlabel("epoch", fontsize=8)
        figure.supylabel(f"{split} {selection.measure.title}", fontsize=8)
        figures.legend_above(figure, axes[0], handlelength=1.8)
    return figure


def _draw(ax: Axes, table: pd.DataFrame, models: Sequence[str], bands: bool) -> None:
    lows = []
    for position, model in enumerate(models):
        own = table[table["model"] == model]
        if own.empty:
            continue
        style = figures.look(model, position) | {"marker": "none"}
        sd = own["sd"].fillna(0)
        if bands:
            ax.fill_between(own["epoch"], own["mean"] - sd, own["mean"] + sd, color=style["color"], alpha=0.15, lw=0)
        ax.plot(own["epoch"], own["mean"], label=figures.plain(display_name(model)), lw=1.1, **style)
        # The first epochs, at chance level, would flatten everything after them.
        lows.append(float(own["mean"].quantile(0.1)))
    highest = float((table["mean"] + (table["sd"].fillna(0) if bands else 0)).max())
    if lows and table["mean"].min() < min(lows) < highest:
        ax.set_ylim(min(lows), highest + 0.05 * (highest - min(lows)))
