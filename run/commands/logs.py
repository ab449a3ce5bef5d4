"""``lcat logs``: the log of a run, and why others failed."""

from __future__ import annotations

import argparse
from pathlib import Path

from lcat_run.commands.status import add_sweep_argument

HELP = "show the log of a run, or why runs of a sweep failed"
EXAMPLES = """\
  lcat logs real                          the failed and killed runs, one line each
  lcat logs real lcat-Cora-s0-1bd05b5301  the log and the traceback of one (the first letters are enough)"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_sweep_argument(parser)
    parser.add_argument("run", metavar="RUN", nargs="?", help="the id of a run, or its first letters")


def execute(args: argparse.Namespace) -> None:
    from lcat_core.run_folder import State
    from lcat_run.sweep.folder import SweepFolder
    from lcat_run.sweep.state import scan

    folder = SweepFolder.find(args.sweep, args.results_dir)
    runs = folder.read_runs(with_old=True)
    if args.run is not None:
        _show(folder.run_dir(_find_run(args.run, [run.run_id for run in runs], folder.path)))
        return
    snapshot = scan(folder, runs)
    bad = snapshot.run_ids(State.FAILED, State.KILLED)
    for run_id in bad:
        print(f"{snapshot.states[run_id].state}  {run_id}  {snapshot.states[run_id].detail}")
    if not bad:
        print("no run failed or was killed")


def _find_run(beginning: str, run_ids: list[str], folder: Path) -> str:
    from lcat_core.errors import UserError, did_you_mean

    found = [run_id for run_id in run_ids if run_id.startswith(beginning)]
    if not found:
        raise UserError(f"no run of {folder} begins with {beginning!r}{did_you_mean(beginning, run_ids)}")
    if len(found) > 1 and beginning not in found:
        raise UserError(
            f"{len(found)} runs begin with {beginning!r}, such as {found[0]} and {found[1]}; give more letters"
        )
    return beginning if beginning in found else found[0]


def _show(run_dir: Path) -> None:
    from lcat_core.files import read_bytes, read_json
    from lcat_core.run_folder import FAILURE, LOG, RESULT

    print(run_dir)
    try:
        print(read_bytes(run_dir / LOG).decode(errors="replace").rstrip())
    except OSError:
        print(f"(no {LOG}: the run has not started)")
    failure = read_json(run_dir / FAILURE)
    if isinstance(failure, dict) and not (run_dir / RESULT).exists():
        print(f"\n{str(failure.get('traceback') or failure.get('error')).rstrip()}")
