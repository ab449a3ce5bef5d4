"""``lcat trend``: average degree against improvement over the baseline."""

from __future__ import annotations

import argparse

from lcat_core.errors import UserError
from lcat_run.results_arguments import (
    FIGURE_FORMATS,
    add_output,
    add_results,
    add_tests,
    compare_models,
    load_and_select,
    save_figure,
)

HELP = "fit the improvement over the baseline against the average degree of the datasets"
EXAMPLES = """\
  lcat trend real
  lcat trend real -o figures/              # trend.png, trend.svg, trend.pdf
  lcat trend real -o trend.pdf
  lcat trend --published -o paper-trend.png  # from the paper's own numbers"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_results(parser, optional=True)
    parser.add_argument("--published", action="store_true", help="use the published means of the paper; no RESULTS")
    add_output(parser, FIGURE_FORMATS, "all three, in a directory")
    add_tests(parser)


def execute(args: argparse.Namespace) -> None:
    if bool(args.results) == args.published:
        raise UserError("expected either RESULTS or --published")
    from lcat_analysis.render import to_terminal
    from lcat_analysis.trend import published_trend, trend, trend_figure, trend_table

    if args.published:
        found = published_trend()
    else:
        results, selection = load_and_select(args)
        found = trend(compare_models(args, results, selection), selection)
    written = save_figure(trend_figure(found), args, "trend") if args.output else []
    print(to_terminal(trend_table(found)), end="")
    for path in written:
        print(f"wrote {path}")
