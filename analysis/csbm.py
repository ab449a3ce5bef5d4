"""The synthetic experiments: accuracy against noise q and distance ‖μ‖, with the thresholds from theory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from lcat_analysis import figures
from lcat_analysis.errors import NotRecorded
from lcat_analysis.run_config import configured_value
from lcat_analysis.select import Selection
from lcat_core.models import display_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Groups of γ in the paper's figure: both ends in C0 or both in C1; one end in C−1 and one in C1; all others.
GAMMA_LINES = {
    "same": ("-", "γ, C0×C0 ∪ C1×C1"),
    "opposite": ("--", "γ, C−1×C1"),
    "rest": (":", "γ, all others"),
}


@dataclass(frozen=True)
class Data:
    """The settings of the random graphs that determine the thresholds; by default the paper's."""

    n: float = 10_000
    p: float = 0.5
    sigma: float = 0.1


def threshold_gat(data: Data) -> float:
    """Theorem 1: GAT separates the classes above this ‖μ‖, σ √(2 ln n)."""
    return data.sigma * math.sqrt(2 * math.log(data.n))


def threshold_cat(data: Data, q: npt.ArrayLike) -> np.ndarray:
    """Corollary 2: the threshold of GAT times √((p + 2q) / (n (p − q)²)), which is infinite at q = p."""
    q = np.asarray(q, dtype=float)
    with np.errstate(divide="ignore"):
        factor = np.sqrt((data.p + 2 * q) / data.n) / np.abs(data.p - q)
    return threshold_gat(data) * factor


def noise_at_threshold(data: Data, mu_norm: float) -> float | None:
    """Return the q in [0, p) up to which ‖μ‖ satisfies Corollary 2; None if it never does, or always."""
    q = np.linspace(0, data.p, 20_001)[:-1]
    inside = threshold_cat(data, q) <= mu_norm
    if not inside.any() or inside.all():
        return None
    return float(q[np.flatnonzero(inside)[-1]])


def csbm_table(selection: Selection) -> pd.DataFrame:
    """Return one row per run: model, seed, q, mu_norm, accuracy (0–1); gamma_<group> and λ if the run has them."""
    runs = selection.runs
    settings = {name: _setting(runs, name) for name in ("q", "mu_norm")}
    if any(value is None for value in settings.values()) or "test.accuracy" not in runs:
        raise NotRecorded("not a CSBM sweep: expected hyperparameters csbm.q and csbm.mu_norm in the results")
    table = pd.DataFrame({"model": runs["model"], "seed": runs["seed"], "accuracy": runs["test.accuracy"]})
    table = table.assign(**settings)
    gammas = pd.DataFrame([_gammas(extra) for extra in runs["extra"]], index=runs.index)
    lambdas = pd.DataFrame([_lambdas(value) for value in runs["lambdas"]], index=runs.index)
    return pd.concat([table, gammas, lambdas], axis=1)


def csbm_data(selection: Selection) -> Data:
    """Return n, p and σ of the graphs; the paper's values if the runs do not record them."""
    known = {name: _setting(selection.runs, name) for name in ("n", "p", "sigma")}
    first = {name: float(np.ravel(value)[0]) for name, value in known.items() if value is not None}
    return Data(**first)


def _setting(runs: pd.DataFrame, name: str) -> pd.Series | float | None:
    """Look up a key of the group ``csbm``: in the hyperparameters, else in the configuration of the first run."""
    if f"csbm.{name}" in runs:
        return runs[f"csbm.{name}"].astype(float)
    value = configured_value(runs, f"csbm.{name}")
    return None if value is None else float(value)


def panels(table: pd.DataFrame) -> list[tuple[str, float]]:
    """Return what each panel holds fixed: ``("mu_norm", v)`` where q varies, ``("q", v)`` where ‖μ‖ varies."""
    found = []
    for fixed, varied in (("mu_norm", "q"), ("q", "mu_norm")):
        counts = table.groupby(fixed)[varied].nunique()
        # A value that only the other sweep crosses has one or two points.
        found += [(fixed, float(value)) for value in counts.index[counts >= max(3, counts.max() / 2)]]
    return found


def csbm_figure(table: pd.DataFrame, data: Data | None = None) -> Figure:
    """Draw accuracy in the top row; below it γ of the groups for each model that has them, and learned λ.

    Vertical lines: Theorem 1 (solid) and Corollary 2 (dashed).
    """
    data = data or Data()
    columns = panels(table)
    if not columns:
        raise NotRecorded("neither q nor ‖μ‖ takes 3 values at a fixed value of the other: nothing to plot")
    gamma_models = [m for m in ("gat", "cat") if _has(table, m, "gamma_")]
    lambda_models = [m for m in ("lcat",) if _has(table, m, "lambda")]
    rows = ["accuracy", *gamma_models, *lambda_models]
    with figures.styled():
        height = 1.55 * len(rows) + 0.55
        figure, axes = figures.new_figure(figures.PAGE, height, len(rows), len(columns), sharey="row", sharex="col")
        for r, row in enumerate(rows):
            for c, (fixed, value) in enumerate(columns):
                ax = axes[r * len(columns) + c]
                own = table[np.isclose(table[fixed], value)]
                _draw_panel(ax, own, row, "q" if fixed == "mu_norm" else "mu_norm")
                _draw_thresholds(ax, fixed, value, data)
                if r == 0:
                    ax.set_title(f"‖μ‖ = {value:.3g}" if fixed == "mu_norm" else f"q = {value:g}")
                if r == len(rows) - 1:
                    ax.set_xlabel("q" if fixed == "mu_norm" else "‖μ‖")
            axes[r * len(columns)].set_ylabel(_row_name(row, gamma_models))
            if row != "accuracy":
                axes[(r + 1) * len(columns) - 1].legend(
                    loc="best", fontsize=6, handlelength=2, frameon=True, framealpha=0.9, edgecolor="none"
                )
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _draw_panel(ax: Axes, own: pd.DataFrame, row: str, varied: str) -> None:
    if varied == "mu_norm":
        ax.set_xscale("log")
    if row == "accuracy":
        for position, model in enumerate(m for m in ("gcn", "gat", "cat", "lcat") if m in set(own["model"])):
            style = figures.look(model, position) | {"marker": "none"}
            _line(ax, own[own["model"] == model], varied, "accuracy", display_name(model), style)
        ax.set_ylim(0.28, 1.04)
        return
    own = own[own["model"] == row]
    if row == "lcat":
        for name, line, text in (("lambda1", "-", "λ1"), ("lambda2", "--", "λ2")):
            _line(ax, own, varied, name, text, {"color": figures.look(row)["color"], "linestyle": line})
        return
    for group, (line, text) in GAMMA_LINES.items():
        if f"gamma_{group}" in own and own[f"gamma_{group}"].notna().any():
            style = {"color": figures.look(row)["color"], "linestyle": line}
            _line(ax, own, varied, f"gamma_{group}", text, style)


def _line(ax: Axes, own: pd.DataFrame, varied: str, column: str, text: str, style: dict) -> None:
    spread = own.groupby(varied)[column].agg(["mean", "std"])
    sd = spread["std"].fillna(0)
    low, high = (spread["mean"] - sd).clip(lower=0), (spread["mean"] + sd).clip(upper=1)
    ax.fill_between(spread.index, low, high, color=style["color"], alpha=0.15, lw=0)
    ax.plot(
        spread.index,
        spread["mean"],
        label=text,
        lw=1.2,
        **{k: v for k, v in style.items() if k != "markerfacecolor"},
    )


def _draw_thresholds(ax: Axes, fixed: str, value: float, data: Data) -> None:
    dashed: float | None
    if fixed == "q":
        dashed = float(threshold_cat(data, value))
        ax.axvline(threshold_gat(data), color=figures.INK, lw=0.7)
    else:
        dashed = noise_at_threshold(data, value)
    if dashed is not None and math.isfinite(dashed):
        ax.axvline(dashed, color=figures.INK, lw=0.7, ls="--")


def _row_name(row: str, gamma_models: list[str]) -> str:
    if row == "accuracy":
        return "accuracy"
    return f"γ of {display_name(row)}" if row in gamma_models else f"λ of {display_name(row)}"


def _has(table: pd.DataFrame, model: str, prefix: str) -> bool:
    columns = [column for column in table.columns if column.startswith(prefix)]
    return bool(table.loc[table["model"] == model, columns].notna().any(axis=None))


def _gammas(extra: object) -> dict[str, float]:
    gamma = extra.get("gamma") if isinstance(extra, dict) else None
    return {f"gamma_{group}": float(value) for group, value in (gamma or {}).items() if value is not None}


def _lambdas(value: object) -> dict[str, float]:
    if not isinstance(value, list) or not value:
        return {}
    one, two = np.asarray(value[0], dtype=float).reshape(-1, 2).mean(axis=0)
    return {"lambda1": one, "lambda2": two}
