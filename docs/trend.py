"""docs/trend.md: does the gain over GAT grow with the degree? A prediction from the published means, and what the runs show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from archives import REBUILT_NOTE, RESULTS, find_archive, marked
from matplotlib.figure import Figure
from scipy import stats

from lcat_analysis import figures
from lcat_analysis.cells import signed
from lcat_analysis.figures import save
from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_analysis.table_order import model_order
from lcat_analysis.trend import published_trend
from lcat_analysis.trend_fit import fit_line
from lcat_core.models import display_name

#: Average degrees of the datasets to predict (edges / nodes, both directions counted).
DEGREES = {
    "Tolokers": 88.28,
    "SquirrelFiltered": 42.28,
    "ChameleonFiltered": 19.90,
    "Minesweeper": 7.88,
    "Actor": 7.02,
}
GROUPS = ("CAT − GAT", "L-CAT − GAT")
HELD_OUT = ("heldout", "heldout_auc")

INTRODUCTION = """\
# Does convolved attention gain as degree grows?

The paper's claim in one line: the gain of CAT and L-CAT over GAT grows with the average degree of the dataset. This page tests
that claim on datasets that played no part in the paper, and on our own runs of the paper's datasets. It is made from the
finished runs in [results](results), without training, by `python docs/make.py`.

## The prediction

It was written down before any of the runs below was started. The line is fitted to the paper's published means alone, with one
point for each of its eleven datasets (the gain averaged over the GAT and the GATv2 score), by ordinary least squares:
"""

DOUBTS = """\
The intervals assume that the line continues to twice the highest degree of the paper's datasets (36), and that new datasets
scatter around it as the paper's do. Both are doubtful here: the five datasets are heterophilous, and two of them are scored by
ROC-AUC. A miss on Tolokers alone would therefore say little; the prediction as a whole is that gains are ordered by degree, and
clearly positive for Tolokers and SquirrelFiltered.

**How it will be measured.** Data: the benchmark of Platonov et al. (ICLR 2023) with its ten official splits. Network: the
paper's (four layers, width 32, 4 heads, residual connections, one linear layer before and after, Adam at 0.01, no dropout),
with layer normalisation and 1000 epochs. Metric: test accuracy at the best validation epoch, or ROC-AUC for Tolokers and
Minesweeper. Gain: the mean over ten splits, averaged over both scores.
"""


def page(results: Path = RESULTS, images: Path | None = None) -> str:
    """Return the page; with ``images``, also draw its figure into that folder."""
    ours, held_out = gains(("real",), results), gains(HELD_OUT, results)
    if images is not None:
        save(_figure(ours, held_out), images / "trend.png", "trend", ("png",))
    parts = [INTRODUCTION, _lines(), "Predicted gain in points, with a 95 % prediction interval for one new dataset:\n"]
    parts += [_prediction_table(), DOUBTS, _held_out_section(held_out, results), _paper_section(ours)]
    parts.append(
        "![Gain over GAT against average degree: published means, our runs, held-out datasets](images/trend.png)\n"
    )
    return "\n".join(parts)


def predictions(group: str) -> pd.DataFrame:
    """Fit the gain of ``group`` (``"CAT − GAT"``) against degree over the eleven datasets; predict it for ``DEGREES``.

    The interval is a 95 % prediction interval for the gain on one new dataset.
    """
    points = published_trend().points
    means = points[points["group"] == group].groupby("dataset")[["avg_degree", "difference"]].mean()
    fit = sm.OLS(means["difference"].to_numpy(), sm.add_constant(means["avg_degree"].to_numpy())).fit()
    new = np.column_stack([np.ones(len(DEGREES)), list(DEGREES.values())])
    frame = fit.get_prediction(new).summary_frame(alpha=0.05)
    frame.index = list(DEGREES)
    return frame[["mean", "obs_ci_lower", "obs_ci_upper"]].assign(intercept=fit.params[0], slope=fit.params[1])


def _lines() -> str:
    width = max(map(len, GROUPS))
    rows = []
    for i, group in enumerate(GROUPS):
        line = predictions(group).iloc[0]
        text = f"    {group:<{width}} = {signed(line['intercept'], 3)} + {line['slope']:.4f} × degree"
        rows.append(text + ("    (points)" if i == 0 else ""))
    return "\n".join(rows) + "\n"


def _predicted(table: pd.DataFrame, name: str) -> str:
    low, high = signed(table.loc[name, "obs_ci_lower"], 2), signed(table.loc[name, "obs_ci_upper"], 2)
    return f"{signed(table.loc[name, 'mean'], 2)} [{low}, {high}]"


def _markdown(header: list[str], rows: list[list[str]], left: int) -> str:
    lines = [header, ["---"] * left + ["---:"] * (len(header) - left), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _prediction_table() -> str:
    tables = [predictions(group) for group in GROUPS]
    rows = [[name, f"{degree:.2f}", *(_predicted(t, name) for t in tables)] for name, degree in DEGREES.items()]
    return _markdown(["dataset", "average degree", *GROUPS], rows, left=1)


def gains(sweeps: tuple[str, ...], results: Path) -> pd.DataFrame:
    """Return the gain of each group on each dataset of the archives: the gain averaged over both scores, then over repetitions.

    ``half`` is half the 95 % interval over repetitions (Student's t), NaN with a single one; ``n`` counts them.
    """
    rows = []
    for archive in filter(None, (find_archive(sweep, results) for sweep in sweeps)):
        runs = select(load(archive)).runs
        degrees = runs.groupby("dataset")["avg_degree"].first()
        values = runs.pivot_table(index=["dataset", "split_seed", "seed"], columns="model", values="value")
        for group, model in zip(GROUPS, ("cat", "lcat"), strict=True):
            gain = ((values[model] - values["gat"]) + (values[f"{model}v2"] - values["gatv2"])) / 2
            for dataset, own in gain.dropna().groupby("dataset"):
                half = stats.sem(own) * stats.t.ppf(0.975, len(own) - 1) if len(own) > 1 else np.nan
                row = {"dataset": dataset, "group": group, "degree": degrees[dataset]}
                rows.append(row | {"gain": own.mean(), "half": half, "n": len(own)})
    return pd.DataFrame(rows, columns=["dataset", "group", "degree", "gain", "half", "n"])


def _measured(table: pd.DataFrame, dataset: str, group: str) -> str:
    own = table[(table["dataset"] == dataset) & (table["group"] == group)]
    if own.empty:
        return "–"
    gain, half = own.iloc[0][["gain", "half"]]
    return signed(gain, 2) + (f" ± {half:.2f}" if np.isfinite(half) else "")


def _held_out_section(found: pd.DataFrame, results: Path) -> str:
    """Return predicted and measured gains on the held-out datasets, as far as they are run."""
    if found.empty:
        return "## What came\n\nThe runs (`lcat sweep heldout`, `lcat sweep heldout_auc`) have not been made yet.\n"
    tables = {group: predictions(group) for group in GROUPS}
    rows, inside = [], []
    for name in (name for name in DEGREES if name in set(found["dataset"])):
        cells = [_predicted(tables[g], name) if kind else _measured(found, name, g) for g in GROUPS for kind in (1, 0)]
        rows.append([name, str(found.loc[found["dataset"] == name, "n"].iloc[0]), *cells])
    for row in found.itertuples():
        low, high = tables[row.group].loc[row.dataset, ["obs_ci_lower", "obs_ci_upper"]]
        inside.append(low <= row.gain <= high)
    header = ["dataset", "splits", *(text for group in GROUPS for text in (f"{group}: predicted", "measured"))]
    words = (
        "Measured gains are means over splits with a 95 % interval (Student's t) where there are several splits. "
        f"{sum(inside)} of {len(inside)} measured gains are inside the prediction interval."
    )
    return f"## What came\n\n{_markdown(header, rows, left=1)}\n{words}\n{_beside_benchmark(results)}"


def _beside_benchmark(results: Path) -> str:
    """Return our ROC-AUC beside the numbers that the benchmark publishes for the same datasets and splits."""
    archive = find_archive("heldout_auc", results)
    if archive is None:
        return ""
    published = pd.read_csv(RESULTS / "heterophily_published.csv")
    runs = select(load(archive)).runs
    rows = []
    for dataset, own in runs.groupby("dataset"):
        means = own.groupby("model")["value"].agg(["mean", "std"])
        ours = ", ".join(f"{display_name(m)} {means.loc[m, 'mean']:.2f}" for m in model_order(means.index))
        theirs = ", ".join(
            f"{row.model} {row.mean:.2f}" for row in published[published["dataset"] == dataset].itertuples()
        )
        rows.append([str(dataset), ours, theirs])
    words = (
        "ROC-AUC in per cent. The benchmark's networks are 512 wide and tuned (Platonov et al., ICLR 2023, table 4); "
        "[configs/heterophilous.yaml](../configs/heterophilous.yaml) is close to them. Ours are 32 wide, as in the paper."
    )
    return f"\n{_markdown(['dataset', 'ours', 'published by the benchmark'], rows, left=3)}\n{words}\n"


def _paper_section(found: pd.DataFrame) -> str:
    """Return the gains on the paper's datasets, published and measured, and the slopes of both."""
    published = _published_gains()
    degrees = published.groupby("dataset")["degree"].first().sort_values(ascending=False)
    rows = [
        [
            marked(name),
            f"{degree:.2f}",
            str(found.loc[found["dataset"] == name, "n"].max()) if name in set(found["dataset"]) else "–",
            *(_measured(table, name, group) for group in GROUPS for table in (published, found)),
        ]
        for name, degree in degrees.items()
    ]
    header = [
        "dataset",
        "average degree",
        "seeds",
        *(f"{group}: {who}" for group in GROUPS for who in ("paper", "ours")),
    ]
    words = [REBUILT_NOTE, "", "Slopes, in points per neighbour, over datasets with both:"]
    both = published["dataset"].isin(set(found["dataset"]))
    for group in GROUPS:
        lines = [_slope(table[table["group"] == group]) for table in (published, published[both], found)]
        words.append(f"- {group}: published {lines[0]}; the same datasets as ours {lines[1]}; ours {lines[2]}")
    return f"## The paper's datasets\n\n{_markdown(header, rows, left=1)}\n" + "\n".join(words) + "\n"


def _published_gains() -> pd.DataFrame:
    points = published_trend().points.rename(columns={"avg_degree": "degree", "difference": "gain"})
    means = points.groupby(["dataset", "group"], as_index=False)[["degree", "gain"]].mean()
    return means.assign(half=np.nan, n=1)


def _slope(points: pd.DataFrame) -> str:
    fit = fit_line(points["degree"].to_numpy(float), points["gain"].to_numpy(float))
    if fit is None or fit.ci_low is None or fit.ci_high is None:
        return f"– (n = {len(points)})"
    interval = f"[{signed(fit.ci_low, 3)}, {signed(fit.ci_high, 3)}]"
    return f"{signed(fit.slope, 4)} {interval} (n = {fit.n}, r = {signed(fit.r or 0.0, 2)})"


def _figure(ours: pd.DataFrame, held_out: pd.DataFrame) -> Figure:
    """Draw gain against degree: published means with their line, our runs, and the held-out datasets."""
    looks = (
        ("published", _published_gains(), figures.FAINT, "o"),
        ("our runs", ours, figures.BLUE, "D"),
        ("held-out datasets", held_out, figures.RED, "s"),
    )
    with figures.styled():
        figure, axes = figures.new_panels(len(GROUPS), 2, 3.0, sharey=True)
        for ax, group in zip(axes, GROUPS, strict=True):
            ax.axhline(0, color=figures.FAINT, lw=0.6, zorder=0)
            line = predictions(group).iloc[0]
            ends = np.array([0.0, max([36.0, *held_out["degree"]]) * 1.02])
            label = "line of the published means"
            ax.plot(
                ends, line["intercept"] + line["slope"] * ends, color=figures.INK, lw=1, ls=(0, (4, 3)), label=label
            )
            for name, table, color, marker in looks:
                own = table[table["group"] == group]
                if own.empty:
                    continue
                bars = own["half"].fillna(0.0)
                ax.errorbar(
                    own["degree"], own["gain"], bars, fmt=marker, ms=3.5, color=color, elinewidth=0.7, label=name
                )
            ax.set_title(group)
            ax.set_xlabel("average degree")
        axes[0].set_ylabel("gain (points)")
        figures.legend_above(figure, axes[0])
    return figure
