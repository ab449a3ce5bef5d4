"""One HTML file that holds all that the results allow: tables, tests, trend, λ, curves, status,
configuration.

The page needs no network and no script (but for sorting). What comes from files is escaped by the template,
by `render.to_html` and by matplotlib; a content security policy forbids everything else.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from lcat_analysis import csbm, curves, figures, lambdas, metrics, noise, paper
from lcat_analysis.compare import Comparisons, compare
from lcat_analysis.comparison_table import comparison_table
from lcat_analysis.errors import NotRecorded
from lcat_analysis.load import Results
from lcat_analysis.render import to_html
from lcat_analysis.select import Selection, select
from lcat_analysis.tables import Cell, Row, Table, performance_table, show
from lcat_analysis.trend import trend, trend_figure, trend_table
from lcat_core.errors import ResultsError
from lcat_core.models import display_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICTS = ("better", "worse", "equivalent", "undetermined", "refused")
MAX_PROBLEMS = 500


@dataclass
class Block:
    """A figure, a table or a text; folded away behind ``summary`` if that is set."""

    svg: str = ""
    caption: str = ""
    table: str = ""
    notes: list[str] = field(default_factory=list)
    text: str = ""
    summary: str = ""
    open: bool = False


@dataclass
class Section:
    id: str
    title: str
    lead: str = ""
    cards: list = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def write_report(results: Results, target: Path, **options: object) -> Path:
    """Write the report to the file ``target`` and return it; options as for `render_report`."""
    html = render_report(results, **options)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(html, encoding="utf-8")
    return target


def render_report(
    results: Results, *, metric: str | None = None, over: Sequence[str] | None = None, margin: float | None = None
) -> str:
    """The report as HTML. ``metric`` and ``over`` as for `select`, ``margin`` as for `compare`."""
    import jinja2
    from markupsafe import Markup

    selection = select(results, metric, over)
    comparisons = compare(selection, results.grid["compare"], margin=margin, strict=False)
    sections = _sections(results, selection, comparisons)
    for section in sections:
        for block in section.blocks:
            block.svg, block.table = Markup(block.svg), Markup(block.table)
    folder = files("lcat_analysis")
    css, script = (folder.joinpath(f"report.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    counts = results.counts()
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(folder.joinpath("report.html").read_text(encoding="utf-8"))
    return template.render(
        title=results.name,
        subtitle=_subtitle(results, selection),
        facts=_facts(results, selection, comparisons),
        counts=list(counts.items()),
        status_text=", ".join(f"{n} {state}" for state, n in counts.items()),
        sections=sections,
        css=Markup(css),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        made=datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
    )


def _sections(results: Results, selection: Selection, comparisons: Comparisons) -> list[Section]:
    synthetic = _csbm_section(selection)
    # Where noise or the CSBM's parameters vary, one picture of all conditions together says nothing.
    one_setting = synthetic is None and not noise.noise_keys(selection)
    candidates = [
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
        cards.append((f"{display_name(model)} against {display_name(baseline)}", numbers))
    fold = f"All {len(table.rows)} tests" if len(table.rows) > 60 else ""
    block = Block(table=to_html(table, notes=False), notes=table.notes, summary=fold)
    lead = (
        "Each model against its baseline, run by run on the same seeds. Verdicts are corrected for the number of tests (Holm), so "
        "fewer cells are better here than are bold above."
    )
    return Section("tests", "Tests", lead, cards, [block])


def _trend_section(selection: Selection, comparisons: Comparisons) -> Section | None:
    # Under other conditions (noise, CSBM) a dataset is no longer one point.
    if selection.variants or len(selection.datasets) < 3 or comparisons.tested.empty:
        return None
    try:
        found = trend(comparisons, selection)
    except ResultsError:  # no dataset has a known degree
        return None
    table = trend_table(found)
    caption = (
        "Error bars: 95 % interval of the paired difference. Dashed: least squares over both scores, with "
        "its 95 % band."
    )
    blocks = [
        _figure(lambda: trend_figure(found), "trend", caption),
        Block(table=to_html(table, notes=False), notes=table.notes),
    ]
    return Section("trend", "Degree trend", "Improvement over the baseline against the average degree.", blocks=blocks)


def _csbm_section(selection: Selection) -> Section | None:
    try:
        table = csbm.csbm_table(selection)
        figure = csbm.csbm_figure(table, csbm.csbm_data(selection))
    except NotRecorded:
        return None
    caption = "Means over runs, ± one standard deviation. Vertical lines: Theorem 1 (solid), Corollary 2 (dashed)."
    return Section("csbm", "Synthetic data", blocks=[_figure(lambda: figure, "csbm", caption)])


def _noise_section(selection: Selection) -> Section | None:
    if not noise.noise_keys(selection):
        return None
    caption = "Mean ± one standard deviation over the runs of all other settings."
    return Section("noise", "Noise", blocks=[_figure(lambda: noise.noise_figure(selection), "noise", caption)])


def _lambda_section(selection: Selection) -> Section | None:
    learned = lambdas.learned_runs(selection)
    if learned.empty:
        return None
    caption = "A dot a run, a bar the mean. λ1 = 0: GCN; λ1 = 1, λ2 = 0: GAT; λ1 = λ2 = 1: CAT."
    blocks = [_figure(lambda: lambdas.distribution_figure(selection), "lambdas", caption)]
    datasets = [name for name in selection.datasets if name in set(learned["dataset"])]
    for i, dataset in enumerate(datasets):
        try:
            figure = lambdas.evolution_figure(selection, dataset)
            block = _figure(lambda f=figure: f, f"evolution{i}", "Mean over runs; the band spans all of them.")
        except NotRecorded:
            continue
        except ResultsError as error:
            block = Block(notes=[f"Left out: {error}"])
        block.summary, block.open = f"λ over training: {dataset}", i == 0
        blocks.append(block)
    return Section("lambdas", "Learned λ", blocks=blocks)


def _curves_section(selection: Selection) -> Section | None:
    try:
        figure = curves.curves_figure(selection)
    except NotRecorded:
        return None
    except ResultsError as error:
        return Section("curves", "Training curves", f"Left out: {error}")
    pooled = f", all values of {', '.join(selection.variants)} pooled" if selection.variants else ""
    name = metrics.label(selection.metric)
    caption = f"Test {name} by epoch: mean ± one standard deviation over the chosen runs{pooled}."
    return Section("curves", "Training curves", blocks=[_figure(lambda: figure, "curves", caption)])


def _paper_section(selection: Selection) -> Section | None:
    beside = paper.beside_paper(selection)
    if beside.empty:
        return None
    table = paper.paper_table(beside, selection.variants)
    caption = "Ours minus published. Colour: in published standard deviations. Numbers: in points."
    figure = _figure(lambda: paper.paper_figure(beside, selection), "paper", caption)
    details = Block(table=to_html(table, notes=False), notes=table.notes, summary=f"All {len(beside)} cells")
    return Section("paper", "Beside the paper", blocks=[figure, details])


def _runs_section(results: Results) -> Section:
    problems = results.problems
    expected = sum(sweep.expected or 0 for sweep in results.sweeps)
    lead = f"{len(results.runs)} runs are finished" + (f" of {expected} that the grid asks for." if expected else ".")
    if problems.empty:
        return Section("runs", "Runs", f"{lead} None failed.")
    shown = problems.head(MAX_PROBLEMS).to_dict("records")
    rows = [Row((p["run_id"],), [Cell(p["state"]), Cell(p["detail"])]) for p in shown]
    notes = [f"{len(problems) - len(shown)} more are not listed."] if len(problems) > len(shown) else []
    table = Table(
        "Runs without a usable result", ["Run"], ["State", "Detail"], rows, notes, problems, left=("State", "Detail")
    )
    return Section("runs", "Runs", lead, blocks=[Block(table=to_html(table, notes=False), notes=notes)])


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
            blocks.append(Block(text=text, summary=f"Versions and origin of {sweep.name}"))
    names = ("numpy", "scipy", "statsmodels", "pandas", "matplotlib")
    text = "\n".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    blocks.append(Block(text=text, summary="Versions that this page was computed with"))
    return Section("setup", "Configuration", blocks=blocks)


def _choices_table(selection: Selection) -> Table:
    """The configurations that won; what they won against is in `Selection.choices`."""
    rows = []
    for record in selection.choices[selection.choices["chosen"]].to_dict("records"):
        values = [Cell(show(record[key])) for key in ("dataset", *selection.variants, *selection.over)]
        factor = metrics.scale(selection.by)
        mean = Cell(f"{record['val_mean'] * factor:.2f}", sort=record["val_mean"])
        rows.append(Row((display_name(record["model"]),), [*values, mean, Cell(str(record["n"]), sort=record["n"])]))
    words = ["Dataset", *selection.variants, *selection.over]
    columns = [*words, f"Mean {selection.by}", "n"]
    notes = [f"Chosen by the mean of {selection.by} over seeds; the test set was not looked at."]
    return Table("Chosen configurations", ["Model"], columns, rows, notes, selection.choices, left=tuple(words))


def _figure(draw: Callable[[], Figure], name: str, caption: str) -> Block:
    return Block(svg=figures.inline_svg(draw(), name, caption), caption=caption)


def _subtitle(results: Results, selection: Selection) -> str:
    created = next((str(s.info["created"]) for s in results.sweeps if s.info.get("created")), "")
    begun = f", begun {created.replace('T', ' ')[:16]}" if created else ""
    models, datasets = _count(selection.models, "model"), _count(selection.datasets, "dataset")
    return f"{models} on {datasets}{begun}. Metric: test {selection.metric}."


def _count(things: Sequence[str], name: str) -> str:
    return f"{len(things)} {name}" if len(things) == 1 else f"{len(things)} {name}s"


def _facts(results: Results, selection: Selection, comparisons: Comparisons) -> list[tuple[str, str]]:
    splits, seeds = selection.runs["split_seed"].nunique(), selection.runs["seed"].nunique()
    seconds = results.runs["seconds"].sum()
    facts = [("runs finished", str(len(results.runs))), ("seeds", str(seeds))]
    facts += [("splits", str(splits))] if splits > 1 else []
    facts += [("models", str(len(selection.models))), ("datasets", str(len(selection.datasets)))]
    if len(comparisons.table):
        better = int((comparisons.table["verdict"] == "better").sum())
        facts.append(("better, corrected", f"{better} of {len(comparisons.tested)}"))
    if seconds > 0:
        facts.append(("training time", f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"))
    return facts
