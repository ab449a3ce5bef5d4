"""``lcat compare``: paired tests of every model against its baseline."""

from __future__ import annotations

import argparse

from lcat_core.errors import UserError
from lcat_run.results_arguments import (
    add_tested_table,
    compare_models,
    emit_table,
    load_and_select,
    results_folder,
)

HELP = "test every model against its baseline: paired t-test, interval, Holm, Wilcoxon, effect size, verdict"
EXAMPLES = """\
  lcat compare real
  lcat compare real --baseline lcat=gcn --margin 0.3
  lcat compare real --family dataset --format csv -o tests.csv
  lcat compare reproduction --unit split   # do the differences hold on other splits?
  lcat compare real --plan --difference 0.3  # how many seeds would show a difference of 0.3 points?"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_tested_table(parser)
    parser.add_argument(
        "--family",
        choices=("all", "dataset", "model"),
        default="all",
        help="the tests that Holm's correction covers together (default: all)",
    )
    parser.add_argument("--plan", action="store_true", help="how many seeds would decide each pair, and the command")
    parser.add_argument(
        "--difference", type=float, help="the true difference that --plan is for (default: the margin of equivalence)"
    )
    parser.add_argument("--power", type=float, default=0.8, help="the probability to show it (default: 0.8)")


def execute(args: argparse.Namespace) -> None:
    from lcat_analysis.comparison_table import comparison_table, refusals
    from lcat_analysis.seed_plan import plan_command, plan_table

    if args.difference is not None and not args.plan:
        raise UserError("--difference belongs to --plan")

    results, selection = load_and_select(args)
    comparisons = compare_models(args, results, selection, family=args.family)
    if not comparisons.baselines:
        models = ", ".join(selection.models)
        raise UserError(f"no baseline is declared: expected --baseline MODEL=BASELINE; models: {models}")
    if comparisons.tested.empty:
        raise UserError("no pair could be tested. " + " ".join(refusals(comparisons)))
    if args.plan:
        table = plan_table(comparisons, args.difference, args.power)
        emit_table(table, args, "plan")
        if args.format in (None, "terminal"):
            print(plan_command(comparisons, table.data, results.sweeps, results_folder(args)))
    else:
        emit_table(comparison_table(comparisons), args, "compare")
