"""``lcat cancel``: stop a sweep on this machine and on clusters; finished runs and checkpoints are kept."""

from __future__ import annotations

import argparse
import sys

from lcat_run.commands.status import add_sweep_argument

HELP = "stop a sweep: its launchers on this machine and its jobs on clusters; runs keep their checkpoints"
EXAMPLES = """\
  lcat cancel real
  lcat sweep real        resumes later"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_sweep_argument(parser)


def execute(args: argparse.Namespace) -> int:
    from lcat_run.engines.registry import cancel_everything
    from lcat_run.sweep.folder import SweepFolder

    folder = SweepFolder.find(args.sweep, args.results_dir)
    cancelled, problems = cancel_everything(folder)
    for line in cancelled:
        print(line)
    for problem in problems:
        print(f"lcat cancel: {problem}", file=sys.stderr)
    if not cancelled and not problems:
        print(f"nothing of {folder.path} runs on this machine or waits in a queue")
    return 1 if problems else 0
