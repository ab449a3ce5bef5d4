"""``lcat table``: model × dataset, as the tables of the paper."""

from __future__ import annotations

import argparse

from lcat_run.results_arguments import add_tested_table, compare_models, emit_table, load_and_select

HELP = "print the accuracy table of a sweep: mean ± sd, better in bold, worse marked, best underlined"
EXAMPLES = """\
  lcat table real
  lcat table results/real --format latex -o tables/real.tex
  lcat table real --metric auc --average --correction holm"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_tested_table(parser)
    parser.add_argument("--average", action="store_true", help="add the average of each model over all conditions")
    parser.add_argument(
        "--correction",
        choices=("none", "holm"),
        default="none",
        help="which p-value marks a cell: uncorrected, as in the paper (default), or Holm's",
    )


def execute(args: argparse.Namespace) -> None:
    from lcat_analysis.tables import performance_table

    results, selection = load_and_select(args)
    comparisons = compare_models(args, results, selection)
    table = performance_table(selection, comparisons, average=args.average, correction=args.correction)
    emit_table(table, args, "table")
