"""`lcat cancel`: stops a sweep, here and on the cluster; nothing that is finished or saved is lost."""

from __future__ import annotations

import argparse

HELP = "stop a sweep: its launchers on this machine and its jobs on the cluster; runs keep their checkpoints"
EXAMPLES = """\
  lcat cancel real
  lcat sweep real        goes on later"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", metavar="SWEEP", help="a sweep's folder, or its name in the results directory")
    parser.add_argument("--results", metavar="DIR", help="the results directory (default: ./results)")


def execute(args: argparse.Namespace) -> int:
    import contextlib
    import os
    import signal
    import sys

    from lcat_run.sweep.folder import SweepFolder
    from lcat_run.sweep.queue import QueueUnreachable, cancel_jobs

    folder = SweepFolder.find(args.sweep, args.results)
    launchers = folder.live_launchers()
    for launcher in launchers:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(launcher.pid, signal.SIGTERM)
        print(f"asked the launcher {launcher.pid} to stop")
    try:
        jobs = cancel_jobs(folder)
    except QueueUnreachable as problem:
        print(f"lcat cancel: jobs of {folder.path} may still wait or run: {problem}", file=sys.stderr)
        return 1
    if jobs:
        print(f"cancelled the jobs {', '.join(jobs)}")
    if not launchers and not jobs:
        print(f"nothing of {folder.path} runs on this machine or waits in a queue")
    return 0
