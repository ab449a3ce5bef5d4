"""``lcat status``: the states of the runs of a sweep."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import TYPE_CHECKING

from lcat_run.results_folder import add_results_option

if TYPE_CHECKING:
    from lcat_run.sweep.folder import SweepFolder

HELP = "show the progress of a sweep: runs by state, model and dataset, the time left, why jobs wait"
EXAMPLES = """\
  lcat status real                 a sweep in ./results
  lcat status /data/results/real   the folder of any sweep
  lcat status real --watch         every 10 seconds, until no run executes or waits"""

_PERIOD = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    add_sweep_argument(parser)
    parser.add_argument("--watch", action="store_true", help=f"repeat every {_PERIOD:.0f} seconds")


def add_sweep_argument(parser: argparse.ArgumentParser) -> None:
    """Add what ``status``, ``logs`` and ``cancel`` share."""
    parser.add_argument("sweep", metavar="SWEEP", help="the folder of a sweep, or its name in the results directory")
    add_results_option(parser)


def execute(args: argparse.Namespace) -> int:
    from lcat_run.sweep.folder import SweepFolder

    folder = SweepFolder.find(args.sweep, args.results_dir)
    while True:
        text, is_active = _status(folder)
        if args.watch and sys.stdout.isatty():
            print("\033[H\033[2J", end="")
        print(text, flush=True)
        if not args.watch or not is_active:
            if folder.searches:
                _print_best(folder)
            return 0
        time.sleep(_PERIOD)


def _print_best(folder: SweepFolder) -> None:
    """Name the configuration that validation chooses from the runs that are done."""
    from lcat_analysis.best import winners
    from lcat_analysis.load import load
    from lcat_analysis.select import select
    from lcat_core.errors import ResultsError

    with contextlib.suppress(ResultsError):  # nothing is done yet, or the files are damaged: the text above says so
        found = winners(select(load(folder.path)))
        texts = "\n".join(winner.describe() for winner in found)
        print(f"\n{texts}\n`lcat best {folder.path}` writes {'it' if len(found) == 1 else 'them'} for `lcat run`")


def _status(folder: SweepFolder) -> tuple[str, bool]:
    """Return the text, and whether a run may still end without a new command."""
    from lcat_core.run_folder import State
    from lcat_run.engines.registry import look_at_all_queues
    from lcat_run.sweep.overview import describe_sweep
    from lcat_run.sweep.state import scan

    runs = folder.read_runs()
    snapshot = scan(folder, runs)
    notes: list[str] = []
    if not all(map(snapshot.is_done, runs)):
        queue = look_at_all_queues(folder)
        notes += queue.notes
        if queue.states:
            snapshot = scan(folder, runs, queue.states)
    text = describe_sweep(str(folder.path), runs, snapshot)
    lines = [text, *(f"note: {note}" for note in [*notes, *snapshot.notes])]
    return "\n".join(lines), bool(snapshot.run_ids(State.RUNNING, State.QUEUED, State.UNKNOWN))
