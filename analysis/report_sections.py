"""The sections of the report: what the results allow, each as text, tables and figures."""

from __future__ import annotations

import importlib.metadata
import json

import numpy as np
import yaml

from lcat_analysis import csbm, curves, lambdas, noise, paper
from lcat_analysis.cells import Cell, Row, Table, number_cell, show
from lcat_analysis.compare import VERDICTS, Comparisons
from lcat_analysis.comparison_table import comparison_table
from lcat_analysis.errors import NotRecorded
from lcat_analysis.load import Results
from lcat_analysis.render import to_html
from lcat_analysis.report_answer import Answer, across_section
from lcat_analysis.report_parts import Block, Section, figure_block
from lcat_analysis.select import Selection
from lcat_analysis.tables import performance_table
from lcat_analysis.trend import trend
from lcat_analysis.trend_figure import trend_figure
from lcat_analysis.trend_table import trend_table
from lcat_core.errors import ResultsError
from lcat_core.models import display_name

MAX_PROBLEMS = 500
MAX_DATASETS = 12  # in a figure with one panel per dataset


def report_sections(results: Results, selection: Selection, comparisons: Comparisons, answer: Answer) -> list[Section]:
    """Return all sections that the results allow, in the order of the page."""
    synthetic = _csbm_section(selection)
    # Where noise or the parameters of the CSBM vary, one figure of all conditions together would be meaningless.
    one_setting = synthetic is None and not noise.noise_keys(selection)
    candidates = [
        across_section(answer),
        _table_section(selection, comparisons),
        _tests_section(comparisons),
        _trend_section(selection, comparisons),
        synthetic,
        _noise_section(selection),
        _lambda_section(selection) if one_setting else None,
        _curves_section(selection) if one_setting else None,
        _paper_section(selection),
        _runs_section(results),
        _setup_section(results, selection),
    ]
    return [section for section in candidates if section is not None]


def _table_section(selection: Selection, comparisons: Comparisons) -> Section:
    table = performance_table(selection, comparisons, average=len(selection.variants) > 0)
    fold = "All conditions" if len(table.rows) > 40 else ""
    block = Block(table=to_html(table, notes=False), notes=table.notes, summary=fold)
    return Section("table", "Results", f"{table.title}, datasets by falling average degree.", blocks=[block])


def _tests_section(comparisons: Comparisons) -> Section | None:
    if comparisons.table.empty:
        return None
    table = comparison_table(comparisons)
    cards = []
    for (model, baseline), own in comparisons.table.groupby(["model", "baseline"], sort=False):
        counts = own["verdict"].value_counts()
        numbers = [(verdict, int(counts[verdict])) for verdict in VERDICTS if verdict in counts]
        cards.append((f"{display_name(str(model))} compared with {display_name(str(baseline))}", numbers))
    fold = f"All {len(table.rows)} tests" if len(table.rows) > 60 else ""
    block = Block(table=to_html(table, notes=False), notes=table.notes, summary=fold)
    how = "run by run on the same seeds" if comparisons.unit == "run" else "split by split"
    lead = (
        f"Each model is compared with its baseline, {how}. Verdicts are corrected for the number of tests "
        "(Holm), so fewer cells are better here than are bold above."
    )
    return Section("tests", "Tests", lead, cards, [block])


def _trend_section(selection: Selection, comparisons: Comparisons) -> Section | None:
    # Under several conditions (noise, CSBM) a dataset is not one point.
    if selection.variants or len(selection.datasets) < 3 or comparisons.tested.empty:
        return None
    try:
        found = trend(comparisons, selection)
    except ResultsError:  # no dataset has a known degree
        return None
    table = trend_table(found)
    level = f"{100 * (1 - found.alpha):g} %"
    caption = (
        f"Error bars: {level} interval of the paired difference. Dashed: least squares through one point per dataset "
        f"(the mean of both scores), with its {level} band."
    )
    blocks = [
        figure_block(trend_figure(found), "trend", caption),
        Block(table=to_html(table, notes=False), notes=table.notes),
    ]
    return Section("trend", "Degree trend", "Improvement over the baseline against the average degree.", blocks=blocks)


def _csbm_section(selection: Selection) -> Section | None:
    try:
        table = csbm.csbm_table(selection)
        figure = csbm.csbm_figure(table, csbm.csbm_data(selection))
    except NotRecorded:
        return None
    caption = "Mean ± one standard deviation over runs. Vertical lines: Theorem 1 (solid), Corollary 2 (dashed)."
    return Section("csbm", "Synthetic data", blocks=[figure_block(figure, "csbm", caption)])


def _noise_section(selection: Selection) -> Section | None:
    if not noise.noise_keys(selection):
        return None
    caption = "Mean ± one standard deviation over the runs of all other settings."
    return Section("noise", "Noise", blocks=[figure_block(noise.noise_figure(selection), "noise", caption)])


def _lambda_section(selection: Selection) -> Section | None:
    learned = lambdas.learned_runs(selection)
    if learned.empty:
        return None
    caption = "One dot per run; the bar is the mean. λ1 = 0: GCN; λ1 = 1, λ2 = 0: GAT; λ1 = λ2 = 1: CAT."
    datasets, omitted = _readable([name for name in selection.datasets if name in set(learned["dataset"])])
    blocks = [figure_block(lambdas.distribution_figure(selection, datasets), "lambdas", caption + omitted)]
    for i, dataset in enumerate(datasets):
        try:
            figure = lambdas.evolution_figure(selection, dataset)
            block = figure_block(figure, f"evolution{i}", "Mean over runs; the band spans all of them.")
        except NotRecorded:
            continue
        except ResultsError as error:
            block = Block(notes=[f"Left out: {error}"])
        block.summary, block.open = f"λ over training: {dataset}", i == 0
        blocks.append(block)
    return Section("lambdas", "Learned λ", blocks=blocks)


def _readable(datasets: list[str]) -> tuple[list[str], str]:
    """Return no more datasets than a figure can show, evenly spaced by degree, and a sentence about the others."""
    if len(datasets) <= MAX_DATASETS:
        return datasets, ""
    places = np.linspace(0, len(datasets) - 1, MAX_DATASETS).round().astype(int)
    return [datasets[i] for i in places], f" {MAX_DATASETS} of {len(datasets)} datasets are shown."


def _curves_section(selection: Selection) -> Section | None:
    try:
        datasets, omitted = _readable(selection.datasets)
        figure = curves.curves_figure(selection, datasets)
    except NotRecorded:
        return None
    except ResultsError as error:
        return Section("curves", "Training curves", f"Left out: {error}")
    pooled = f", all values of {', '.join(selection.variants)} pooled" if selection.variants else ""
    caption = (
        f"Test {selection.measure.title} by epoch: mean ± one standard deviation over the chosen runs{pooled}.{omitted}"
    )
    return Section("curves", "Training curves", blocks=[figure_block(figure, "curves", caption)])


def _paper_section(selection: Selection) -> Section | None:
    beside = paper.beside_paper(selection)
    if beside.empty:
        return None
    table = paper.paper_table(beside, selection.variants)
    details = Block(table=to_html(table, notes=False), notes=table.notes, summary=f"All {len(beside)} cells")
    if paper.comparable(beside).empty:
        return Section("paper", "Beside the paper", blocks=[Block(notes=paper.departure_notes(beside)), details])
    caption = "Ours minus published, where the settings are the paper's. Colours: in published sds. Numbers: in points."
    figure = figure_block(paper.paper_figure(beside, selection), "paper", caption)
    return Section("paper", "Beside the paper", blocks=[figure, details])


def _runs_section(results: Results) -> Section:
    problems = results.problems
    expected = sum(sweep.expected or 0 for sweep in results.sweeps)
    lead = f"{len(results.runs)} runs are finished" + (f" of {expected} in the grid." if expected else ".")
    warnings = [Block(notes=results.warnings)] if results.warnings else []
    if problems.empty:
        return Section("runs", "Runs", f"{lead} None failed.", blocks=warnings)
    shown = problems.head(MAX_PROBLEMS).to_dict("records")
    rows = [Row((p["run_id"],), [Cell(p["state"]), Cell(p["exclusion"]), Cell(p["detail"])]) for p in shown]
    columns = ["State", "Left out as", "Detail"]
    notes = [f"{len(problems) - len(shown)} more are not listed."] if len(problems) > len(shown) else []
    table = Table("Runs without a usable result", ["Run"], columns, rows, notes, problems, left=tuple(columns))
    blocks = [Block(table=to_html(table, notes=False), notes=notes), *warnings]
    return Section("runs", "Runs", lead, blocks=blocks)


def _setup_section(results: Results, selection: Selection) -> Section:
    blocks = []
    if selection.over:
        table = _choices_table(selection)
        blocks.append(Block(table=to_html(table, notes=False), notes=table.notes, summary="Chosen configurations"))
    for sweep in results.sweeps:
        if sweep.grid:
            text = yaml.safe_dump(sweep.grid, sort_keys=False, allow_unicode=True)
            blocks.append(Block(text=text, summary=f"Grid of {sweep.name}"))
        if sweep.info:
            text = json.dumps(sweep.info, indent=2, ensure_ascii=False)
            blocks.append(Block(text=text, summary=f"Versions and start of {sweep.name}"))
    names = ("numpy", "scipy", "statsmodels", "pandas", "matplotlib")
    text = "\n".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    blocks.append(Block(text=text, summary="Versions of the packages that computed this page"))
    return Section("setup", "Configuration", blocks=blocks)


def _choices_table(selection: Selection) -> Table:
    """Return the chosen configurations; `Selection.choices` has all that competed."""
    rows = []
    for record in selection.choices[selection.choices["chosen"]].to_dict("records"):
        values = [Cell(show(record[key])) for key in ("dataset", *selection.variants, *selection.over)]
        mean = number_cell(record["val_mean"] * selection.by_measure.factor)
        rows.append(Row((display_name(record["model"]),), [*values, mean, Cell(str(record["n"]), sort=record["n"])]))
    words = ["Dataset", *selection.variants, *selection.over]
    columns = [*words, f"Mean {selection.by}", "n"]
    notes = [f"Chosen by the mean of {selection.by} over seeds, without the test set."]
    return Table("Chosen configurations", ["Model"], columns, rows, notes, selection.choices, left=tuple(words))
