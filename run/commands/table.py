"""``lcat table``: model × dataset, as the tables of the paper."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lcat_core.errors import ResultsError
from lcat_run.results_arguments import (
    add_tested_table,
    compare_models,
    emit_table,
    load_results,
    results_folder,
    select_runs,
)

if TYPE_CHECKING:
    from lcat_analysis.cells import Table
    from lcat_analysis.load import Results

HELP = "print the table of a sweep: mean ± sd, better in bold, worse marked, best underlined"
EXAMPLES = """\
  lcat table real
  lcat table results                        one table per sweep
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
    from lcat_analysis.load import load_sweeps, sweeps_below

    sweeps = sweeps_below(results_folder(args))
    if len(sweeps) == 1 or args.join or args.output is not None:  # a file holds one table
        emit_table(_table(args, load_results(args)), args, "table")
        return
    for number, sweep in enumerate(sweeps):
        print(f"{'' if number == 0 else chr(10)}== {sweep.name} ({sweep.path})")
        try:
            emit_table(_table(args, load_sweeps([sweep])), args, "table")
        except ResultsError as error:  # the other sweeps have results all the same
            print(error)


def _table(args: argparse.Namespace, results: Results) -> Table:
    from lcat_analysis.tables import performance_table

    selection = select_runs(args, results)
    comparisons = compare_models(args, results, selection)
    return performance_table(selection, comparisons, average=args.average, correction=args.correction)
