"""`lcat status`: what has become of the runs of a sweep."""

from __future__ import annotations

import argparse
import sys
import time

HELP = "show how a sweep goes: runs by state, model and dataset, the time left, why jobs wait"
EXAMPLES = """\
  lcat status real                 a sweep in ./results
  lcat status /data/results/real   any sweep's folder
  lcat status real --watch         again every 10 seconds until nothing is left to do"""

_PERIOD = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", metavar="SWEEP", help="a sweep's folder, or its name in the results directory")
    parser.add_argument("--results", metavar="DIR", help="the results directory (default: ./results)")
    parser.add_argument("--watch", action="store_true", help=f"look again every {_PERIOD:.0f} seconds")


def execute(args: argparse.Namespace) -> int:
    from lcat_run.sweep.folder import SweepFolder
    from lcat_run.sweep.overview import overview

    folder = SweepFolder.find(args.sweep, args.results)
    while True:
        text, unfinished = overview(folder)
        if args.watch and sys.stdout.isatty():
            print("\033[H\033[2J", end="")
        print(text, flush=True)
        if not args.watch or not unfinished:
            return 0
        time.sleep(_PERIOD)
