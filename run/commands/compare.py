"""``lcat compare``: paired tests of every model against its baseline."""

from __future__ import annotations

import argparse

from lcat_core.errors import UserError
from lcat_run.results_arguments import add_tested_table, compare_models, emit_table, load_and_select

HELP = "test every model against its baseline: paired t-test, interval, Holm, Wilcoxon, effect size, verdict"
EXAMPLES = """\
  lcat compare real
  lcat compare real --baseline lcat=gcn --margin 0.3
  lcat compare real --family dataset --format csv -o tests.csv
  lcat compare reproduction --unit split   # do the differences hold on other splits?"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_tested_table(parser)
    parser.add_argument(
        "--family",
        choices=("all", "dataset", "model"),
        default="all",
        help="the tests that Holm's correction covers together (default: all)",
    )


def execute(args: argparse.Namespace) -> None:
    from lcat_analysis.comparison_table import comparison_table, refusals

    results, selection = load_and_select(args)
    comparisons = compare_models(args, results, selection, family=args.family)
    if not comparisons.baselines:
        models = ", ".join(selection.models)
        raise UserError(f"no baseline is declared: expected --baseline MODEL=BASELINE; models: {models}")
    if comparisons.tested.empty:
        raise UserError("no pair could be tested. " + " ".join(refusals(comparisons)))
    emit_table(comparison_table(comparisons), args, "compare")
