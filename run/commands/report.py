"""``lcat report``: everything that the results allow, in one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from lcat_run.results_arguments import (
    add_results,
    add_tests,
    load_results,
    metric_options,
    pairing_options,
    parse_baselines,
    results_folder,
)

HELP = "write one self-contained HTML file with tables, tests, trend, λ, curves, status and configuration"
EXAMPLES = """\
  lcat report real                       # results/real/report.html
  lcat report results/real -o talk.html
  lcat report real --metric auc --margin 0.3
  lcat report reproduction --unit split"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        type=Path,
        help="a file, or a directory (default: RESULTS/report.html)",
    )
    parser.add_argument("--format", choices=("html",), default="html", help="html is the only one")
    add_tests(parser)


def execute(args: argparse.Namespace) -> None:
    from lcat_analysis.report import write_report

    folder = results_folder(args)
    target = args.output or (folder if folder.is_dir() else folder.parent)
    target = target if target.suffix and not target.is_dir() else target / "report.html"
    options = {"metric": args.metric, "over": args.over, **metric_options(args), **pairing_options(args)}
    options["baselines"] = parse_baselines(args.baseline)
    write_report(load_results(args), target, **options)
    print(f"wrote {target}")
