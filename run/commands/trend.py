"""`lcat trend`: average degree against improvement over the baseline."""

from __future__ import annotations

import argparse

from lcat_run.errors import UserError
from lcat_run.results_arguments import (
    FIGURE_FORMATS,
    add_output,
    add_results,
    add_tests,
    compare_models,
    load_and_select,
    reported_errors,
)

HELP = "fit improvement over the baseline against the average degree of the datasets"
EXAMPLES = """\
  lcat trend real
  lcat trend real -o figures/              # trend.png, trend.svg, trend.pdf
  lcat trend real -o trend.pdf
  lcat trend --published -o paper-trend.png  # from the paper's own numbers"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_results(parser, optional=True)
    parser.add_argument("--published", action="store_true", help="use the paper's published means, no RESULTS")
    add_output(parser, FIGURE_FORMATS, "all three into a directory")
    add_tests(parser)


def execute(args: argparse.Namespace) -> None:
    if bool(args.results) == args.published:
        raise UserError("expected either RESULTS or --published")
    with reported_errors():
        from lcat_analysis.figures import save
        from lcat_analysis.render import to_terminal
        from lcat_analysis.trend import published_trend, trend, trend_figure, trend_table

        if args.published:
            found = published_trend()
        else:
            results, selection = load_and_select(args)
            found = trend(compare_models(args, results, selection, strict=bool(args.baseline)), selection)
        formats = (args.format,) if args.format else FIGURE_FORMATS
        written = save(trend_figure(found), args.output, "trend", formats) if args.output else []
        print(to_terminal(trend_table(found)), end="")
        for path in written:
            print(f"wrote {path}")
