"""Write one HTML file with everything that the results allow: tables, tests, trend, λ, curves, status, configuration.

The page needs no network, and a script only for sorting. The template, `render.to_html` and matplotlib escape everything that
comes from files; a content security policy forbids everything else.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from lcat_analysis.compare import Comparisons, compare
from lcat_analysis.load import Results
from lcat_analysis.report_answer import find_answer
from lcat_analysis.report_sections import report_sections
from lcat_analysis.select import Selection, select
from lcat_core.files import write_text


def write_report(
    results: Results,
    target: Path,
    **options: Any,
) -> Path:
    """Write the report to the file ``target`` and return it; options as for `render_report`."""
    html = render_report(results, **options)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, html)
    return target


def render_report(
    results: Results,
    *,
    metric: str | None = None,
    over: Sequence[str] | None = None,
    higher_is_better: bool | None = None,
    scale: str | None = None,
    baselines: Mapping[str, str] | None = None,
    **tests: Any,
) -> str:
    """Return the report as HTML.

    Args:
        metric, over, higher_is_better, scale: As for `select`.
        baselines: As for `compare`; by default those of the grid.
        tests: Other options of `compare`: ``alpha``, ``margin``, ``unit``, ``overlap``, ``common_seeds``.
    """
    import jinja2
    from markupsafe import Markup

    selection = select(results, metric, over, higher_is_better=higher_is_better, scale=scale)
    comparisons = compare(selection, baselines or results.grid["compare"], strict=bool(baselines), **tests)
    answer = find_answer(selection, comparisons)
    sections = report_sections(results, selection, comparisons, answer)
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
        answer=answer.sentences,
        facts=_facts(results, selection, comparisons),
        counts=list(counts.items()),
        status_text=", ".join(f"{n} {state}" for state, n in counts.items()),
        sections=sections,
        css=Markup(css),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        created=datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
    )


def _subtitle(results: Results, selection: Selection) -> str:
    created = next((str(s.info["created"]) for s in results.sweeps if s.info.get("created")), "")
    begun = f", started {created.replace('T', ' ')[:16]}" if created else ""
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
