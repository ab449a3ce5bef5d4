"""Tables of models × datasets as in the paper: mean ± sd, bold if better, marked if worse, best underlined."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lcat_analysis.cells import MISSING, Cell, Row, Table, key_name, mean_sd_cell, show
from lcat_analysis.compare import Comparisons
from lcat_analysis.metrics import Measure
from lcat_analysis.select import Condition, Selection
from lcat_analysis.table_order import rule_before
from lcat_core.models import display_name, usual_baseline

#: Marks a cell with fewer runs than others of its column.
FEWER_RUNS = "†"
#: Up to so many chosen configurations are named below the table; the CSV and the report have all of them.
_FEW_CHOICES = 4


@dataclass
class Summary:
    """The runs of one model under one condition.

    Attributes:
        n: Runs with a finite value.
        mark: ``better``, ``worse`` or nothing.
        diverged: Runs whose metric is not a number.
        complete: No run diverged, and no other model has more runs under this condition.
    """

    mean: float
    sd: float | None
    n: int
    mark: str = ""
    diverged: int = 0
    complete: bool = True


Summaries = Mapping[tuple[str, Condition], Summary]


def performance_table(
    selection: Selection,
    comparisons: Comparisons | None = None,
    *,
    average: bool = False,
    correction: str = "none",
    title: str | None = None,
) -> Table:
    """Tabulate the test metric of every model on every dataset.

    Without variants, models are rows and datasets columns, by falling average degree. With variants (heads, initialisation, …)
    models are columns and each dataset and variant is a row, as in the paper's appendix.

    Args:
        average: Add the average of each model over all conditions (over runs, as in the paper's table of initialisations).
        correction: Which p-value marks a cell: ``none`` (the plain one, as in the paper) or ``holm``.
    """
    outcome = comparisons.outcome(correction) if comparisons else {}
    conditions = selection.conditions()
    summaries = {}
    for model in selection.models:
        for condition in conditions:
            if (runs := selection.cell(model, condition)) is not None:
                mark = outcome.get((model, *condition), "")
                summaries[model, condition] = summarise(runs.values, mark, int(runs.diverged.sum()))
    _mark_incomplete(summaries, conditions)
    averages = None
    if average:
        averages = {model: _average(selection, summaries, model, conditions) for model in selection.models}
    table = arrange(
        summaries,
        selection.models,
        conditions,
        variants=selection.variants,
        measure=selection.measure,
        degrees=selection.degrees,
        baselines=comparisons.baselines if comparisons else {},
        averages=averages,
        notes=[
            *_footer(selection, comparisons, correction, summaries, average),
            *(f"On {name}: {measure.title}." for name, measure in selection.other_measures.items()),
        ],
        title=title or f"Test {selection.measure.title}",
    )
    if selection.over:
        table.data = table.data.merge(_chosen(selection), how="left")
    return table


def _chosen(selection: Selection) -> pd.DataFrame:
    """Return what validation chose, one row per cell of the table."""
    keys = ["model", "dataset", *selection.variants, *selection.over]
    return selection.choices.loc[selection.choices["chosen"], keys]


def summarise(values: np.ndarray, mark: str = "", diverged: int = 0) -> Summary:
    """Return mean and sample standard deviation (ddof 1) of the finite values; a single run has no deviation."""
    finite = values[np.isfinite(values)]
    mean = float(finite.mean()) if finite.size else math.nan
    sd = float(finite.std(ddof=1)) if finite.size > 1 else None
    return Summary(mean, sd, finite.size, mark, diverged)


def _mark_incomplete(summaries: Mapping[tuple[str, Condition], Summary], conditions: Sequence[Condition]) -> None:
    most = dict.fromkeys(conditions, 0)
    for (_, condition), summary in summaries.items():
        most[condition] = max(most[condition], summary.n)
    for (_, condition), summary in summaries.items():
        summary.complete = summary.n == most[condition] and not summary.diverged


def arrange(
    summaries: Summaries,
    models: Sequence[str],
    conditions: Sequence[Condition],
    *,
    measure: Measure,
    title: str,
    variants: Sequence[str] = (),
    degrees: Mapping[str, float] | None = None,
    baselines: Mapping[str, str] | None = None,
    averages: Mapping[str, Summary | None] | None = None,
    notes: Sequence[str] = (),
) -> Table:
    """Lay out numbers, whether they come from our runs or from the published tables."""
    best = _best_models(summaries, models, conditions, measure)
    cells = {key: _cell(summary, key[0] in best[key[1]]) for key, summary in summaries.items()}
    columns = [*conditions]
    if averages:
        columns.append(("average",))
        top = _extreme({m: s.mean for m, s in averages.items() if s and s.complete}, measure)
        cells |= {(m, ("average",)): _cell(s, m in top) for m, s in averages.items() if s}
    data = _data(summaries, models, conditions, variants, best)
    filled = {(m, c): cells.get((m, c), Cell(MISSING)) for m in models for c in columns}
    if variants:
        return _conditions_as_rows(filled, models, columns, variants, title, notes, data)
    previous = [None, *models]
    rows = [
        Row((display_name(m),), [filled[m, c] for c in columns], rule_before(m, before, baselines or {}))
        for m, before in zip(models, previous, strict=False)
    ]
    header = []
    if degrees and any(math.isfinite(degrees.get(c[0], math.nan)) for c in conditions):
        header = [("Avg. degree", [_degree(degrees.get(c[0], math.nan)) for c in columns])]
    return Table(title, ["Model"], [str(c[0]) for c in columns], rows, list(notes), data, header)


def _conditions_as_rows(
    cells: Mapping[tuple[str, Condition], Cell],
    models: Sequence[str],
    conditions: Sequence[Condition],
    variants: Sequence[str],
    title: str,
    notes: Sequence[str],
    data: pd.DataFrame,
) -> Table:
    rows = []
    for i, condition in enumerate(conditions):
        labels = tuple(show(value) for value in condition)
        labels += ("",) * (1 + len(variants) - len(labels))
        rule = i > 0 and condition[0] != conditions[i - 1][0]
        rows.append(Row(labels, [cells[m, condition] for m in models], rule))
    names = ["Dataset", *map(key_name, variants)]
    return Table(title, names, [display_name(m) for m in models], rows, list(notes), data)


def _cell(summary: Summary, best: bool) -> Cell:
    if not math.isfinite(summary.mean):
        return Cell("diverged" if summary.diverged else MISSING)
    text = mean_sd_cell(summary.mean, summary.sd).text
    return Cell(text if summary.complete else f"{text} {FEWER_RUNS}", summary.mark, best, summary.mean)


def _best_models(
    summaries: Summaries, models: Sequence[str], conditions: Sequence[Condition], measure: Measure
) -> dict[Condition, set[str]]:
    best = {}
    for condition in conditions:
        own = {m: summaries[m, condition] for m in models if (m, condition) in summaries}
        means = {m: summary.mean for m, summary in own.items() if summary.complete}
        best[condition] = _extreme(means, measure)
    return best


def _extreme(means: Mapping[str, float], measure: Measure) -> set[str]:
    """Return the best models, with all that show the same two decimals; a single model is not the best."""
    finite = {model: round(mean, 2) for model, mean in means.items() if math.isfinite(mean)}
    if len(finite) < 2:
        return set()
    top = max(finite.values()) if measure.higher_is_better else min(finite.values())
    return {model for model, mean in finite.items() if mean == top}


def _average(selection: Selection, summaries: Summaries, model: str, conditions: Sequence[Condition]) -> Summary | None:
    """Average over all runs of a model; None if it lacks a condition, because its average would not be comparable."""
    if any((model, condition) not in summaries for condition in conditions):
        return None
    average = summarise(selection.runs.loc[selection.runs["model"] == model, "value"].to_numpy(float))
    if len({condition[0] for condition in conditions}) > 1:
        average.sd = None  # it would measure how much the datasets differ
    average.complete = all(summaries[model, condition].complete for condition in conditions)
    return average


def _degree(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else ""


def _data(
    summaries: Summaries,
    models: Sequence[str],
    conditions: Sequence[Condition],
    variants: Sequence[str],
    best: Mapping[Condition, set[str]],
) -> pd.DataFrame:
    rows = []
    for model in models:
        for condition in conditions:
            if (summary := summaries.get((model, condition))) is None:
                continue
            row = {"model": model, **dict(zip(("dataset", *variants), condition, strict=True))}
            row |= {"mean": summary.mean, "sd": summary.sd, "n": summary.n, "mark": summary.mark}
            rows.append(row | {"best": model in best[condition], "complete": summary.complete})
    return pd.DataFrame(rows)


def _footer(
    selection: Selection, comparisons: Comparisons | None, correction: str, summaries: Summaries, average: bool
) -> list[str]:
    counts = sorted({summary.n for summary in summaries.values() if summary.n} or {0})
    n = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    splits = selection.runs.groupby("dataset")["split_seed"].nunique().max()
    pooled = "one split, shared by all seeds" if splits == 1 else f"the seeds of up to {splits} splits together"
    notes = [
        "One run per cell, so no deviation."
        if counts == [1]
        else f"Mean ± sample standard deviation (ddof 1) over n = {n} runs; {pooled}."
    ]
    notes += [*_split_notes(selection), *_selection_notes(selection)]
    if comparisons is not None and len(comparisons.tested):
        adjusted = (
            "not corrected for the number of tests"
            if correction == "none"
            else f"Holm over {comparisons.family_text()}"
        )
        test = "two-sided paired t-test"
        if comparisons.unit == "split":
            test = "two-sided corrected resampled t-test of the means of splits"
        notes.append(
            f"Bold: better than its baseline, ▼: worse ({test}, α = {comparisons.alpha:g}, "
            f"{adjusted}). Underlined: best mean."
        )
        notes += comparisons.pooling_notes()
        pairs = (f"{display_name(m)} → {display_name(b)}" for m, b in comparisons.baselines.items())
        notes.append("Baselines: " + ", ".join(pairs))
    else:
        notes.append("Underlined: best mean. No model was tested against a baseline.")
    if average:
        mixed = len(selection.datasets) > 1
        deviation = "; no deviation, which would mix datasets" if mixed else ", ± their standard deviation"
        notes.append(f"Average: over all runs of the model{deviation}.")
    notes += _untested_notes(selection, comparisons)
    return [*notes, *_fewer_runs(summaries), *_not_recorded(selection, summaries)]


def _untested_notes(selection: Selection, comparisons: Comparisons | None) -> list[str]:
    """Name the models whose usual baseline has no runs, which therefore are never marked."""
    tested = comparisons.baselines if comparisons is not None else {}
    lacking = {
        display_name(name): display_name(baseline)
        for name in selection.models
        if name not in tested and (baseline := usual_baseline(name)) and baseline not in selection.models
    }
    pairs = ", ".join(f"{name} (baseline: {baseline})" for name, baseline in lacking.items())
    return [f"Not tested, because the baseline has no runs here: {pairs}."] if lacking else []


def _split_notes(selection: Selection) -> list[str]:
    """Say how the nodes were split, as far as the runs record it."""
    pairs = selection.runs[["split", "dataset"]].dropna().drop_duplicates()
    datasets = {str(split): list(own) for split, own in pairs.groupby("split", sort=False)["dataset"]}
    if len(datasets) == 1:
        return [f"Split: {next(iter(datasets))}."]
    return (
        ["Split: " + "; ".join(f"{split} on {', '.join(own)}" for split, own in datasets.items()) + "."]
        if datasets
        else []
    )


def _selection_notes(selection: Selection) -> list[str]:
    """Say how epochs and configurations were chosen, as far as that happened."""
    runs = selection.runs
    sentences = []
    by = sorted(runs["epoch_by"].dropna().unique())
    if by:
        sentences.append(f"Epoch: best {' or '.join(by)} of the run.")
    elsewhere = int((runs["test_epoch"] != runs["best_epoch"])[runs["best_epoch"].notna()].sum())
    if elsewhere:
        sentences.append(
            f"{elsewhere} of {len(runs)} runs scored the test set only at another epoch, the last one as a rule: "
            "their test metric is not that of the chosen epoch."
        )
    if selection.over:
        sentences.append(f"Configuration over {', '.join(selection.over)}: best mean {selection.by}.")
    return [" ".join(sentences), *_chosen_notes(selection)] if sentences else []


def _chosen_notes(selection: Selection) -> list[str]:
    """Name the chosen configurations, if they are few."""
    if not selection.over:
        return []
    rows = sorted(_chosen(selection).to_dict("records"), key=lambda row: selection.models.index(row["model"]))
    if len(rows) > _FEW_CHOICES:
        return []
    texts = []
    for row in rows:
        where = " ".join(show(row[key]) for key in ("dataset", *selection.variants))
        values = ", ".join(f"{key} {show(row[key])}" for key in selection.over)
        texts.append(f"{display_name(row['model'])} on {where}: {values}")
    return [f"Chosen: {'; '.join(texts)}."]


def _fewer_runs(summaries: Summaries) -> list[str]:
    short = []
    for (model, condition), summary in summaries.items():
        if not summary.complete and (summary.n or summary.diverged):
            where = " ".join(show(value) for value in condition)
            diverged = f", {summary.diverged} diverged" if summary.diverged else ""
            short.append(f"{display_name(model)} on {where} (n = {summary.n}{diverged})")
    return (
        [
            f"{FEWER_RUNS} Fewer runs than asked for or than other models have there, so never underlined: {'; '.join(short)}."
        ]
        if short
        else []
    )


def _not_recorded(selection: Selection, summaries: Summaries) -> list[str]:
    lacking = {condition[0] for (_, condition), summary in summaries.items() if not summary.n and not summary.diverged}
    datasets = ", ".join(name for name in selection.datasets if name in lacking)
    return [f"Not recorded: {selection.measure.label} on {datasets}."] if datasets else []
