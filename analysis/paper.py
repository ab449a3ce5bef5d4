"""Our numbers beside the paper's, for every cell that both have."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lcat_analysis import figures
from lcat_analysis.cells import Cell, Row, Table, key_name, mean_sd_cell, number_cell, show, signed, signed_cell
from lcat_analysis.metrics import Measure
from lcat_analysis.noise import noise_keys
from lcat_analysis.paper_settings import departures
from lcat_analysis.published import published_cells, published_degrees, published_results
from lcat_analysis.run_config import configured_value
from lcat_analysis.select import NOT_SET, Condition, Selection
from lcat_analysis.table_order import model_order
from lcat_analysis.tables import Summary, arrange
from lcat_core.errors import ResultsError, unknown_name
from lcat_core.metrics import METRICS
from lcat_core.models import default_baselines, display_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# column of the published table → our hyperparameter
FIELDS = {"heads": "lcat.heads", "init": "lcat.init", "weights": "lcat.score_weights"}
PRINTED_METRICS = {"accuracy": "accuracy", "auc": "rocauc", "rocauc": "rocauc"}
# Several tables have the same cell. The ablation tables have sample deviations, as ours do; the table of initialisations repeats
# them with population deviations, and prints CATv2's number for CAT with one head.
TABLE_ORDER = ("real", "pna", "gcnii", "ogb-heads", "ablation", "init", "ogb")


def beside_paper(selection: Selection) -> pd.DataFrame:
    """Return one row per cell: ours, published, and the difference in points and in published standard deviations.

    ``departures`` names settings that are not the paper's: with them, the difference says little about the model.
    ``sd_seeds`` is the mean spread over seeds within a split, ``sd_splits`` the spread of the means of the splits (missing with
    one split). The paper's split is not published, so differences up to ``sd_splits`` mean nothing.
    """
    rows = []
    conditions = [condition for condition in selection.conditions() if not _is_noisy(selection, condition)]
    for model in selection.models:
        for condition in conditions:
            if (model, condition[0]) not in published_cells():
                continue
            values = selection.values(model, condition).dropna()
            if values.empty:
                continue
            settings = _settings(selection, model, condition)
            found = find_published(model, str(condition[0]), selection.measure_of(condition[0]).name, settings)
            if found is None:
                continue
            by_split = values.groupby("split_seed")
            difference = values.mean() - found["mean"]
            rows.append(
                {"model": model, "dataset": condition[0], **selection.settings(condition)}
                | {"ours": values.mean(), "ours_sd": values.std(ddof=1), "n": len(values)}
                | {"sd_seeds": by_split.std(ddof=1).mean(), "sd_splits": by_split.mean().std(ddof=1)}
                | {"published": found["mean"], "published_sd": found["std"], "table": found["table"]}
                | {
                    "difference": difference,
                    "in_sds": difference / found["std"] if found["std"] else math.nan,
                    "departures": _departures(selection, model, condition),
                }
            )
    return pd.DataFrame(rows)


def _departures(selection: Selection, model: str, condition: Condition) -> str:
    """Name the settings of a cell that are not the paper's; its runs share them."""
    run_dir = Path(selection.runs_of(model, condition)["path"].iloc[0])
    return "; ".join(f"{key} {text}" for key, text in departures(run_dir, str(condition[0])).items())


def _is_noisy(selection: Selection, condition: Condition) -> bool:
    """Whether the data have noise; the paper prints no numbers for them."""
    levels = selection.settings(condition)
    return any(levels[key] != 0 for key in noise_keys(selection))


def find_published(model: str, dataset: str, metric: str, settings: dict[str, str]) -> pd.Series | None:
    """Return the published cell of a model under these settings (heads, init, weights), or None.

    A setting that the published row does not print matches any value; of several rows, the one that prints the most settings
    counts. If rows with different settings remain because ours are unknown, the answer is None.
    """
    table = published_results()
    rows = table[
        (table["name"] == model) & (table["dataset"] == dataset) & (table["metric"] == PRINTED_METRICS.get(metric))
    ]
    for column in FIELDS:
        if column in settings:
            rows = rows[rows[column].isin((settings[column], ""))]
        rows = rows[rows[column] != "all"]
    if rows.empty:
        return None
    unknown = [column for column in FIELDS if column not in settings]
    if len(rows[unknown].drop_duplicates()) > 1:
        # Our settings are unknown, so only a row that does not print them is comparable.
        rows = rows[(rows[unknown] == "").all(axis=1)]
        if rows.empty:
            return None
    printed = (rows[list(FIELDS)] != "").sum(axis=1)
    rows = rows[printed == printed.max()]
    order = rows["experiment"].map(TABLE_ORDER.index)
    return rows.loc[order.idxmin()]


def published_table(*tables: str) -> Table:
    """Lay out tables of the paper (``tabapp:performance_node_small1``, …) with the code that lays out ours.

    Several tables with the same models (the paper splits its datasets) become one.
    """
    rows = published_results()
    rows = rows[rows["table"].isin(tables)]
    if rows.empty:
        known = published_results()["table"].unique()
        raise ResultsError(unknown_name("table of the paper", tables[0], known))
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
    notes = [f"On {row['dataset']}: {_measure(row['metric']).title}." for row in others]
    return arrange(
        summaries,
        models,
        conditions,
        variants=variants,
        measure=_measure(metric),
        degrees=published_degrees(),
        baselines=default_baselines(models),
        averages={row["name"]: _published_summary(row) for row in averages.to_dict("records")} or None,
        notes=[f"As published, over {cells['runs'].iloc[0]} runs.", *notes],
        title=f"Test {_measure(metric).title}",
    )


def _measure(metric: str) -> Measure:
    return Measure.from_row(METRICS[metric])


def _published_summary(row: Mapping[Hashable, Any]) -> Summary:
    return Summary(row["mean"], row["std"], int(row["runs"]), row["significant"])


def paper_table(beside: pd.DataFrame, variants: list[str]) -> Table:
    """Return the comparison as a readable table."""
    _check_not_empty(beside)
    names = [key_name(key) for key in variants]
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
            mean_sd_cell(record["ours"], record["ours_sd"]),
            mean_sd_cell(record["published"], record["published_sd"]),
            signed_cell(record["difference"]),
            signed_cell(record["in_sds"]),
            number_cell(record["sd_seeds"]),
            number_cell(record["sd_splits"]),
        ]
        rows.append(Row((display_name(record["model"]),), cells, previous not in (None, record["model"])))
        previous = record["model"]
    notes = [
        "Difference: ours − published, in points. The paper's random split is not published, and on small test "
        "sets the split alone changes the accuracy by more than a published deviation.",
        "Over seeds: mean sd (ddof 1) within a split. Over splits: sd of the means of the splits. The paper uses "
        "sample deviations in some tables and population deviations in others.",
    ]
    notes += departure_notes(beside)
    return Table("Ours beside the paper", ["Model"], columns, rows, notes, beside, left=("Dataset", *names))


def departure_notes(beside: pd.DataFrame) -> list[str]:
    """Say which cells do not have the paper's settings."""
    notes = []
    for text, cells in beside[beside["departures"] != ""].groupby("departures", sort=False):
        which = "All cells" if len(cells) == len(beside) else f"{len(cells)} of {len(beside)} cells"
        notes.append(
            f"{which} have other settings than the paper's ({text}), so their difference is not a reproduction."
        )
    return notes


def comparable(beside: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that have the paper's settings."""
    return beside[beside["departures"] == ""] if len(beside) else beside


def paper_figure(beside: pd.DataFrame, selection: Selection) -> Figure:
    """Draw a heat map of the differences: colours in published standard deviations, numbers in points.

    Raises:
        ResultsError: No cell has the paper's settings.
    """
    _check_not_empty(beside)
    if comparable(beside).empty:
        raise ResultsError(" ".join(departure_notes(beside)))
    beside = comparable(beside)
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


def _settings(selection: Selection, model: str, condition: Condition) -> dict[str, str]:
    """Return heads, init and weights of a cell, as far as the runs record them."""
    runs = selection.runs_of(model, condition)
    settings = {}
    for column, key in FIELDS.items():
        varied = key in runs and runs[key].notna().all() and runs[key].iloc[0] != NOT_SET
        value = runs[key].iloc[0] if varied else configured_value(runs, key)
        if value is not None:
            settings[column] = str(int(value)) if column == "heads" else str(value)
    return settings


def _check_not_empty(beside: pd.DataFrame) -> None:
    if beside.empty:
        raise ResultsError("none of these models and datasets is in the paper's tables")
