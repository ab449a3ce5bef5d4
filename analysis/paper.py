"""Ours beside the paper's published number, for every cell that both have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lcat_analysis import figures, metrics
from lcat_analysis.noise import noise_keys
from lcat_analysis.published import published_degrees, published_results
from lcat_analysis.run_config import configured_value
from lcat_analysis.select import Selection
from lcat_analysis.table_order import model_order
from lcat_analysis.tables import KEY_NAMES, MISSING, Cell, Row, Summary, Table, arrange, show, signed
from lcat_core.errors import ResultsError, did_you_mean
from lcat_core.models import default_baselines, display_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# column of the published table → our hyperparameter
FIELDS = {"heads": "lcat.heads", "init": "lcat.init", "weights": "lcat.score_weights"}
METRICS = {"accuracy": "accuracy", "auc": "rocauc", "rocauc": "rocauc"}
# Of several tables with the same cell: the ablation tables have sample deviations as ours; the initialisation
# table repeats them with population ones, and prints CATv2's number for CAT with one head.
TABLE_ORDER = ("real", "pna", "gcnii", "ogb-heads", "ablation", "init", "ogb")


def beside_paper(selection: Selection) -> pd.DataFrame:
    """A row a cell: ours, published, their difference in points and in published standard deviations.

    ``sd_seeds`` is the mean spread over seeds within a split, ``sd_splits`` the spread of the splits' means
    (missing with one split): the paper's split is not published, so a difference up to that says nothing.
    """
    rows = []
    for model in selection.models:
        for condition in selection.conditions():
            values = selection.values(model, condition[0], condition[1:]).dropna()
            if values.empty or _is_noisy(selection, condition):
                continue
            settings = _settings(selection, model, condition)
            found = find_published(model, str(condition[0]), selection.metric_of(condition[0]), settings)
            if found is None:
                continue
            by_split = values.groupby("split_seed")
            difference = values.mean() - found["mean"]
            rows.append(
                {"model": model, **dict(zip(("dataset", *selection.variants), condition, strict=True))}
                | {"ours": values.mean(), "ours_sd": values.std(ddof=1), "n": len(values)}
                | {"sd_seeds": by_split.std(ddof=1).mean(), "sd_splits": by_split.mean().std(ddof=1)}
                | {"published": found["mean"], "published_sd": found["std"], "table": found["table"]}
                | {
                    "difference": difference,
                    "in_sds": difference / found["std"] if found["std"] else math.nan,
                }
            )
    return pd.DataFrame(rows)


def _is_noisy(selection: Selection, condition: tuple) -> bool:
    """The paper prints no numbers of disturbed graphs."""
    level = dict(zip(selection.variants, condition[1:], strict=True))
    return any(level[key] != 0 for key in noise_keys(selection))


def find_published(model: str, dataset: str, metric: str, settings: dict[str, str]) -> pd.Series | None:
    """The published cell of a model under these settings (heads, init, weights), or None.

    A setting that the published row does not print matches any; of several rows the one that prints most
    settings is taken. None as well when rows with different settings remain, because ours are not known.
    """
    table = published_results()
    rows = table[(table["name"] == model) & (table["dataset"] == dataset) & (table["metric"] == METRICS.get(metric))]
    for column in FIELDS:
        if column in settings:
            rows = rows[rows[column].isin((settings[column], ""))]
        rows = rows[rows[column] != "all"]
    if rows.empty:
        return None
    unknown = [column for column in FIELDS if column not in settings]
    if len(rows[unknown].drop_duplicates()) > 1:
        # Ours do not say which: only a row that does not say either can stand beside them.
        rows = rows[(rows[unknown] == "").all(axis=1)]
        if rows.empty:
            return None
    printed = (rows[list(FIELDS)] != "").sum(axis=1)
    rows = rows[printed == printed.max()]
    order = rows["experiment"].map(TABLE_ORDER.index)
    return rows.loc[order.idxmin()]


def published_table(*tables: str) -> Table:
    """Tables of the paper (``tabapp:performance_node_small1``, …), laid out by the code that lays out ours.

    Several tables with the same models (the paper splits its datasets) become one.
    """
    rows = published_results()
    rows = rows[rows["table"].isin(tables)]
    if rows.empty:
        known = published_results()["table"].unique()
        raise ResultsError(
            f"the paper has no table {tables}: expected {', '.join(known)}{did_you_mean(tables[0], known)}"
        )
    variants = [column for column in ("heads", "init") if rows[column].nunique() > 1]
    averages = rows[(rows["heads"] == "all") | (rows["init"] == "all")]
    cells = rows.drop(averages.index)
    models = model_order(cells["name"].unique())
    conditions = [tuple(row) for row in cells[["dataset", *variants]].drop_duplicates().itertuples(index=False)]
    summaries = {
        (row["name"], tuple(row[key] for key in ("dataset", *variants))): _published_summary(row)
        for row in cells.to_dict("records")
    }
    metric = cells["metric"].iloc[0]
    others = cells.loc[cells["metric"] != metric, ["dataset", "metric"]].drop_duplicates().to_dict("records")
    notes = [f"On {row['dataset']}: {metrics.label(row['metric'])}." for row in others]
    return arrange(
        summaries,
        models,
        conditions,
        variants=variants,
        metric=metric,
        degrees=published_degrees(),
        baselines=default_baselines(models),
        averages={row["name"]: _published_summary(row) for row in averages.to_dict("records")} or None,
        notes=[f"As published, over {cells['runs'].iloc[0]} runs.", *notes],
        title=f"Test {metrics.label(metric)}",
    )


def _published_summary(row: dict) -> Summary:
    return Summary(row["mean"], row["std"], int(row["runs"]), row["significant"])


def paper_table(beside: pd.DataFrame, variants: list[str]) -> Table:
    """The comparison as a table that people read."""
    if beside.empty:
        raise ResultsError("none of these models and datasets is in the paper's tables")
    names = [KEY_NAMES.get(key, key) for key in variants]
    columns = [
        "Dataset",
        *names,
        "Ours",
        "Published",
        "Difference",
        "In published sds",
        "Over seeds",
        "Over splits",
    ]
    rows, previous = [], None
    for record in beside.to_dict("records"):
        cells = [Cell(str(record["dataset"])), *(Cell(show(record[key])) for key in variants)]
        cells += [
            _mean_sd(record["ours"], record["ours_sd"]),
            _mean_sd(record["published"], record["published_sd"]),
        ]
        cells += [_signed(record["difference"]), _signed(record["in_sds"])]
        cells += [_spread(record["sd_seeds"]), _spread(record["sd_splits"])]
        rows.append(Row((display_name(record["model"]),), cells, previous not in (None, record["model"])))
        previous = record["model"]
    notes = [
        "Difference: ours − published, in points. The paper's random split is not published; on small test "
        "sets the split alone moves accuracy by more than a published deviation.",
        "Over seeds: mean sd (ddof 1) within a split. Over splits: sd of the splits' means. Published "
        "deviations are sample ones in some tables and population ones in others.",
    ]
    return Table("Ours beside the paper", ["Model"], columns, rows, notes, beside, left=("Dataset", *names))


def paper_figure(beside: pd.DataFrame, selection: Selection) -> Figure:
    """A heat map of the differences: colour by published standard deviations, the number in points."""
    if beside.empty:
        raise ResultsError("none of these models and datasets is in the paper's tables")
    keys = ["dataset", *selection.variants]
    labels = beside[keys].map(show).agg(" ".join, axis=1)
    columns = list(dict.fromkeys(labels))
    models = [m for m in selection.models if m in set(beside["model"])]
    columns.sort(key=[" ".join(map(show, c)) for c in selection.conditions()].index)
    points, sds = np.full((2, len(models), len(columns)), np.nan)
    for label, row in zip(labels, beside.to_dict("records"), strict=True):
        place = models.index(row["model"]), columns.index(label)
        points[place], sds[place] = row["difference"], row["in_sds"]
    with figures.styled():
        size = (max(figures.COLUMN, 0.56 * len(columns) + 1.4), 0.3 * len(models) + 1.5)
        figure, (ax,) = figures.new_figure(*size)
        image = ax.imshow(sds, cmap="PuOr", vmin=-4, vmax=4, aspect="auto")
        for (i, j), value in np.ndenumerate(points):
            if math.isfinite(value):
                strong = abs(sds[i, j]) > 2.6 if math.isfinite(sds[i, j]) else False
                ax.text(j, i, signed(value, 1), ha="center", va="center", fontsize=6.5,
                        color="#fdfdfd" if strong else "#101010")  # fmt: skip
        ax.set_xticks(range(len(columns)), [figures.plain(c) for c in columns], rotation=35, ha="right")
        ax.set_yticks(range(len(models)), [figures.plain(display_name(m)) for m in models])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=ax, extend="both", pad=0.02)
        bar.set_label("ours − published (published sds)", fontsize=7)
        bar.outline.set_visible(False)
        ax.set_title("numbers: difference in points")
    return figure


def _settings(selection: Selection, model: str, condition: tuple) -> dict[str, str]:
    """Heads, init and weights of a cell, where the runs say them."""
    runs = selection.runs[(selection.runs["model"] == model) & (selection.runs["dataset"] == condition[0])]
    for key, value in zip(selection.variants, condition[1:], strict=True):
        runs = runs[runs[key] == value]
    settings = {}
    for column, key in FIELDS.items():
        varied = key in runs and runs[key].notna().all() and runs[key].iloc[0] != "–"
        value = runs[key].iloc[0] if varied else configured_value(runs, key)
        if value is not None:
            settings[column] = str(int(value)) if column == "heads" else str(value)
    return settings


def _mean_sd(mean: float, sd: float) -> Cell:
    return Cell(f"{mean:.2f} ± {sd:.2f}" if math.isfinite(sd) else f"{mean:.2f}", sort=mean)


def _signed(value: float) -> Cell:
    return Cell(signed(value), sort=value) if math.isfinite(value) else Cell(MISSING)


def _spread(value: float) -> Cell:
    return Cell(f"{value:.2f}", sort=value) if math.isfinite(value) else Cell(MISSING)
