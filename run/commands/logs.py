"""`lcat logs`: what a run wrote about itself, and why others failed."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "show the log of a run, or why runs of a sweep failed"
EXAMPLES = """\
  lcat logs real                          the failed and killed runs, a line each
  lcat logs real lcat-Cora-s0-1bd05b5301  the log and the traceback of one (the first letters are enough)"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", metavar="SWEEP", help="a sweep's folder, or its name in the results directory")
    parser.add_argument("run", metavar="RUN", nargs="?", help="a run's id, or how it begins")
    parser.add_argument("--results", metavar="DIR", help="the results directory (default: ./results)")


def execute(args: argparse.Namespace) -> int:
    from lcat_run.errors import UserError, nearest
    from lcat_run.sweep.folder import SweepFolder
    from lcat_run.sweep.state import scan

    folder = SweepFolder.find(args.sweep, args.results)
    runs = folder.read_runs(with_old=True)
    if args.run is None:
        snapshot = scan(folder, runs)
        bad = snapshot.of("failed", "killed")
        for run_id in bad:
            state = snapshot.states[run_id]
            print(f"{state.state}  {run_id}  {state.detail}")
        if not bad:
            print("no run failed or was killed")
        return 0
    ids = [run.run_id for run in runs]
    found = [run_id for run_id in ids if run_id.startswith(args.run)]
    if not found:
        raise UserError(f"no run of {folder.path} begins with {args.run!r}{nearest(args.run, ids)}")
    if len(found) > 1 and args.run not in found:
        raise UserError(
            f"{len(found)} runs begin with {args.run!r}, such as {found[0]} and {found[1]}; give more of it"
        )
    _show(folder.run_dir(args.run if args.run in found else found[0]))
    return 0


def _show(run_dir: Path) -> None:
    from lcat_run.sweep import files
    from lcat_run.sweep.state import RESULT

    print(run_dir)
    try:
        print((run_dir / "log.txt").read_text(encoding="utf-8", errors="replace").rstrip())
    except OSError:
        print("(no log.txt: the run has not started)")
    failure = files.read_json(run_dir / "failed.json")
    if isinstance(failure, dict) and not (run_dir / RESULT).exists():
        print(f"\n{str(failure.get('traceback') or failure.get('error')).rstrip()}")
