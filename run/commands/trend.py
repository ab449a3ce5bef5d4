"""``lcat trend``: average degree against improvement over the baseline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lcat_core.errors import UserError
from lcat_core.files import write_text
from lcat_run.results_arguments import (
    FIGURE_FORMATS,
    add_output,
    add_results,
    add_tests,
    compare_models,
    load_and_select,
    save_figure,
)

if TYPE_CHECKING:
    from lcat_analysis.trend import Trend

HELP = "fit the improvement over the baseline against the average degree of the datasets"
EXAMPLES = """\
  lcat trend real
  lcat trend real -o figures/              # trend.png, trend.svg, trend.pdf, trend.csv, trend-points.csv
  lcat trend real -o trend.pdf --log-degree
  lcat trend real -o trend.csv             # the lines, and trend-points.csv
  lcat trend --published -o paper-trend.png  # from the paper's own numbers"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_results(parser, optional=True)
    parser.add_argument("--published", action="store_true", help="use the published means of the paper; no RESULTS")
    parser.add_argument(
        "--log-degree", action="store_true", help="fit against the logarithm of the degree: the slope is per doubling"
    )
    add_output(parser, (*FIGURE_FORMATS, "csv"), "all three and CSV, in a directory")
    add_tests(parser)


def execute(args: argparse.Namespace) -> None:
    if bool(args.results) == args.published:
        raise UserError("expected either RESULTS or --published")
    from lcat_analysis.render import to_terminal
    from lcat_analysis.trend import published_trend, trend
    from lcat_analysis.trend_table import trend_table

    if args.published:
        found = published_trend(log_degree=args.log_degree)
    else:
        results, selection = load_and_select(args)
        found = trend(compare_models(args, results, selection), selection, log_degree=args.log_degree)
    written = _write(args, found) if args.output else []
    print(to_terminal(trend_table(found)), end="")
    for path in written:
        print(f"wrote {path}")


def _write(args: argparse.Namespace, found: Trend) -> list[Path]:
    """Write the figure, the lines and the points, as far as ``-o`` and ``--format`` ask for them."""
    from lcat_analysis.trend_figure import trend_figure
    from lcat_analysis.trend_table import trend_table

    is_file = args.output.suffix and not args.output.is_dir()
    is_csv = args.format == "csv" or (is_file and args.format is None and args.output.suffix.lower() == ".csv")
    written = [] if is_csv else save_figure(trend_figure(found), args, "trend")
    if is_csv or (not is_file and args.format is None):
        lines = args.output if is_file else args.output / "trend.csv"
        points = lines.with_name(f"{lines.stem}-points.csv")
        lines.parent.mkdir(parents=True, exist_ok=True)
        for path, data in ((lines, trend_table(found).data), (points, found.points)):
            write_text(path, data.to_csv(index=False, lineterminator="\n"))
            written.append(path)
    return written
