"""What the layers learned: λ1 and λ2 over training, and their final values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lcat_analysis import figures
from lcat_analysis.cells import key_name, show
from lcat_analysis.errors import NotRecorded
from lcat_analysis.history import read_lambdas
from lcat_analysis.select import Selection
from lcat_core.models import display_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {"lambda1": (figures.BLUE, "-", "λ1"), "lambda2": (figures.ORANGE, "--", "λ2")}
PANELS_PER_ROW = 6
MAX_POINTS = 200  # a line with more points looks the same, but its file has megabytes


def learned_runs(selection: Selection) -> pd.DataFrame:
    """Return the chosen runs of models that learned a λ; fixed λ are recorded as well, but do not differ."""
    runs = selection.runs[selection.runs["lambdas"].map(_present).astype(bool)]
    learned = [model for model, own in runs.groupby("model") if _differ(own["lambdas"])]
    return runs[runs["model"].isin(learned)]


def final_lambdas(selection: Selection) -> pd.DataFrame:
    """Return one row per run and layer (from 1): model, dataset, variant, seed, lambda1, lambda2 (means over heads)."""
    rows = []
    for run in learned_runs(selection).to_dict("records"):
        keys = ("model", "dataset", *selection.variants, "split_seed", "seed")
        for layer, pair in enumerate(run["lambdas"], start=1):
            one, two = np.asarray(pair, dtype=float).reshape(-1, 2).mean(axis=0)
            rows.append({key: run[key] for key in keys} | {"layer": layer, "lambda1": one, "lambda2": two})
    return pd.DataFrame(rows)


def lambda_histories(runs: pd.DataFrame) -> pd.DataFrame:
    """Read ``lambdas.csv`` of these runs: one row per run, epoch and layer (mean over heads); empty if none has the file."""
    tables = []
    for run in runs.to_dict("records"):
        table = read_lambdas(run["path"])
        if len(table):
            epochs = np.sort(table["epoch"].unique())
            kept = epochs[np.unique(np.linspace(0, len(epochs) - 1, MAX_POINTS).astype(int))]
            table = table[table["epoch"].isin(kept)]
            table = table.groupby(["epoch", "layer"], as_index=False)[["lambda1", "lambda2"]].mean()
            tables.append(table.assign(run_id=run["run_id"], model=run["model"]))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def evolution_figure(selection: Selection, dataset: str) -> Figure:
    """Draw λ over training on one dataset: one row per model, one panel per layer; the band spans all runs."""
    runs = learned_runs(selection)
    histories = lambda_histories(runs[runs["dataset"] == dataset])
    if histories.empty:
        raise NotRecorded(f"no run on {dataset} logged λ: expected lambdas.csv in the folders of learned models")
    models = [model for model in selection.models if model in set(histories["model"])]
    layers = sorted(histories["layer"].unique())
    with figures.styled():
        size = (figures.PAGE, 1.5 * len(models) + 0.45)
        figure, axes = figures.new_figure(*size, len(models), len(layers), sharex=True, sharey=True)
        for row, model in enumerate(models):
            for column, layer in enumerate(layers):
                ax = axes[row * len(layers) + column]
                own = histories[(histories["model"] == model) & (histories["layer"] == layer)]
                _draw_evolution(ax, own)
                if row == 0:
                    ax.set_title(f"layer {column + 1}")
                if row == len(models) - 1:
                    ax.set_xlabel("epoch")
            axes[row * len(layers)].set_ylabel(figures.plain(display_name(model)))
        figure.suptitle(figures.plain(dataset), x=0.02, ha="left", fontsize=8)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, handlelength=1.6, columnspacing=1)
    return figure


def _draw_evolution(ax: Axes, own: pd.DataFrame) -> None:
    for name, (colour, line, text) in LOOKS.items():
        by_epoch = own.groupby("epoch")[name].agg(["mean", "min", "max"])
        ax.fill_between(by_epoch.index, by_epoch["min"], by_epoch["max"], color=colour, alpha=0.2, lw=0)
        ax.plot(by_epoch.index, by_epoch["mean"], color=colour, linestyle=line, label=text)
    ax.set_ylim(-0.03, 1.03)
    ax.set_yticks([0, 0.5, 1])


def distribution_figure(selection: Selection, datasets: Sequence[str] | None = None) -> Figure:
    """Draw the final λ: one row per model, one panel per condition, one dot per run and layer; the bar is the mean.

    Args:
        datasets: The datasets to draw; by default all.
    """
    table = final_lambdas(selection)
    if datasets is not None and len(table):
        table = table[table["dataset"].isin(datasets)]
    if table.empty:
        raise NotRecorded("no chosen run learned λ: their result.json has no lambdas")
    keys = ["model", "dataset", *selection.variants]
    present = set(map(tuple, table[keys].drop_duplicates().itertuples(index=False)))
    conditions = selection.conditions()
    rows: list[list[tuple[Any, ...]]] = []
    for model in selection.models:
        panels = [(model, *condition) for condition in conditions if (model, *condition) in present]
        rows += [panels[i : i + PANELS_PER_ROW] for i in range(0, len(panels), PANELS_PER_ROW)]
    columns = max(map(len, rows))
    groups = dict(iter(table.groupby(keys, sort=False)))
    with figures.styled():
        width = min(figures.PAGE, 1.0 + 1.5 * columns)
        size = (width, 1.3 * len(rows) + 0.45)
        figure, axes = figures.new_figure(*size, len(rows), columns, sharex=True, sharey=True)
        for i, panels in enumerate(rows):
            own_axes = axes[i * columns : (i + 1) * columns]
            for ax, panel in zip(own_axes, panels, strict=False):
                _draw_distribution(ax, groups[panel])
                title = _condition_name(panel[1:], selection.variants, len(selection.datasets) > 1)
                ax.set_title("\n".join(figures.plain(line) for line in title), fontsize=6.5)
                ax.xaxis.set_tick_params(labelbottom=True)
            own_axes[0].set_ylabel(figures.plain(display_name(str(panels[0][0]))))
            for ax in own_axes[len(panels) :]:
                ax.remove()
        figure.supxlabel("layer", fontsize=8)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, handletextpad=0.1)
    return figure


def _draw_distribution(ax: Axes, own: pd.DataFrame) -> None:
    layers = sorted(own["layer"].unique())
    for side, (name, (colour, _, text)) in zip((-0.18, 0.18), LOOKS.items(), strict=True):
        jitter = np.linspace(-0.09, 0.09, own["seed"].nunique())
        places = own["seed"].rank(method="dense").astype(int) - 1
        x = own["layer"] + side + jitter[places]
        ax.scatter(x, own[name], s=7, color=colour, alpha=0.75, linewidths=0, label=text)
        means = own.groupby("layer")[name].mean()
        ax.hlines(means, means.index + side - 0.15, means.index + side + 0.15, color=colour, lw=1.2)
    ax.set_xticks(layers)
    ax.set_xlim(layers[0] - 0.5, layers[-1] + 0.5)
    ax.set_ylim(-0.04, 1.04)
    ax.set_yticks([0, 0.5, 1])


def _condition_name(condition: Sequence[object], variants: Sequence[str], several_datasets: bool) -> list[str]:
    """Return one line, or two if the panel needs both dataset and settings."""
    dataset, *values = condition
    settings = ", ".join(f"{key_name(k)} {show(v)}" for k, v in zip(variants, values, strict=True))
    if settings and several_datasets:
        return [str(dataset), settings]
    return [settings or str(dataset)]


def _differ(recorded: pd.Series) -> bool:
    values = np.concatenate([np.asarray(value, dtype=float).reshape(-1, 2) for value in recorded])
    values = values.round(6)  # a fixed 0.5 is stored in single precision
    return bool(np.ptp(values, axis=0).any()) or not set(values[0]) <= {0.0, 0.5, 1.0}


def _present(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0
