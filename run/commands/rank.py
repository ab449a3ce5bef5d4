"""``lcat rank``: which model is better across datasets."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lcat_core.errors import UserError
from lcat_core.files import write_text
from lcat_run.results_arguments import (
    TABLE_FORMATS,
    add_output,
    add_pairs,
    add_results,
    compare_models,
    emit_tables,
    load_and_select,
)

if TYPE_CHECKING:
    from lcat_analysis.across import Across
    from lcat_analysis.cells import Table
    from lcat_analysis.ranking import Ranking

HELP = "compare models across datasets: wins, Wilcoxon, pooled differences, mean ranks, Friedman"
EXAMPLES = """\
  lcat rank real
  lcat rank real --models gcn gat lcat    # ranks depend on which models take part
  lcat rank scores.csv --baseline mine=gat  # columns: dataset, model, seed, value
  lcat rank real -o figures               # rank.md, the tables as CSV, forest plot, critical-difference diagram
  lcat rank --published                   # the paper's own numbers"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_results(parser, optional=True)
    parser.add_argument("--published", action="store_true", help="use the published means of the paper; no RESULTS")
    parser.add_argument("--models", metavar="MODEL", nargs="+", help="rank only these models (default: all)")
    add_output(parser, TABLE_FORMATS, "terminal; in a directory Markdown, and everything else there is")
    add_pairs(parser)


def execute(args: argparse.Namespace) -> None:
    if bool(args.results) == args.published:
        raise UserError("expected either RESULTS or --published")
    from lcat_analysis.headline import across_sentences
    from lcat_analysis.rank_tables import pairs_table, posthoc_table, ranks_table

    across, ranking = _published(args) if args.published else _from_results(args)
    tables = {"ranks": ranks_table(ranking), "posthoc": posthoc_table(ranking)}
    if across is not None:
        tables = {"pairs": pairs_table(across), **tables}
    is_folder = args.output is not None and (not args.output.suffix or args.output.is_dir())
    wants_csv = args.format == "csv" or (args.output is not None and args.output.suffix.lower() == ".csv")
    if wants_csv and not is_folder:
        raise UserError(f"CSV needs one file per table ({', '.join(tables)}): give a directory with -o")
    if args.output is None and args.format in (None, "terminal"):
        print("\n".join(across_sentences(across, ranking)), end="\n\n")
    if args.format != "csv":
        emit_tables(list(tables.values()), args, "rank")
    if is_folder:
        _write_folder(args, tables, across, ranking)


def _published(args: argparse.Namespace) -> tuple[Across, Ranking]:
    from lcat_analysis.across import published_across
    from lcat_analysis.ranking import published_ranking

    return published_across(), published_ranking(args.models)


def _from_results(args: argparse.Namespace) -> tuple[Across | None, Ranking]:
    from lcat_analysis.across import across_datasets
    from lcat_analysis.ranking import rank_models

    results, selection = load_and_select(args)
    ranking = rank_models(selection, args.models, args.alpha)
    comparisons = compare_models(args, results, selection)
    return (across_datasets(comparisons, selection) if comparisons.has_pairs else None), ranking


def _write_folder(args: argparse.Namespace, tables: dict[str, Table], across: Across | None, ranking: Ranking) -> None:
    from lcat_analysis.figures import save
    from lcat_analysis.forest import forest_figure
    from lcat_analysis.rank_figure import rank_figure
    from lcat_analysis.render import to_csv

    args.output.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        target = args.output / f"{name}.csv"
        write_text(target, to_csv(table))
        print(f"wrote {target}")
    drawn = {"critical_difference": rank_figure(ranking)}
    drawn |= {"forest": forest_figure(across)} if across is not None else {}
    for name, figure in drawn.items():
        for path in save(figure, args.output, name):
            print(f"wrote {path}")
