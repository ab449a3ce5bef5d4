"""`lcat sweep`: every run of a grid, on this machine or on a SLURM cluster."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lcat_run.sweep.launch import Launch

HELP = "make every run of a grid, here or on a SLURM cluster; the same command again goes on where it stopped"
EXAMPLES = """\
  lcat sweep demo                                      an included grid, one worker per core
  lcat sweep mygrid.yaml --dry-run                     how many runs, the first one in full, an estimate
  lcat sweep real -j 4 --threads 2                     4 workers of 2 threads each
  lcat sweep real --only dataset.name=Cora,model=lcat  part of a grid
  lcat sweep real optim.max_epoch 100 seeds 3          with other settings
  lcat sweep real --engine slurm --partition cpu --time 2:00:00 --cpus 2 --runs-per-task 20"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("grid", metavar="GRID", help="a YAML file, or the name of a packaged grid")
    parser.add_argument(
        "settings", nargs="*", default=[], metavar="KEY VALUE", help="settings of all runs; `seeds N` is one too"
    )
    parser.add_argument("--engine", choices=("local", "slurm"), default="local", help="where to run (default: local)")
    parser.add_argument("-j", "--jobs", type=_positive, metavar="N", help="workers (default: cores / threads)")
    parser.add_argument("--threads", type=_positive, metavar="T", help="threads of a worker (default: cores / N, or 1)")
    parser.add_argument("--dry-run", action="store_true", help="check and show the sweep, write and start nothing")
    parser.add_argument(
        "--retry-failed", action="store_true", help="also the runs that failed by an error of their own"
    )
    parser.add_argument("--only", action="append", default=[], metavar="KEY=VALUE,…", help="only the runs that match")
    slurm = parser.add_argument_group("SLURM")
    slurm.add_argument("--partition", help="partition to submit to")
    slurm.add_argument("--account", help="account to charge")
    slurm.add_argument("--qos", help="quality of service")
    slurm.add_argument("--time", default="60", help="limit of a task: minutes, or [D-]HH:MM:SS (default: 60)")
    slurm.add_argument("--mem", help="memory of a task, such as 8G")
    slurm.add_argument("--cpus", type=_positive, default=1, help="cores of a task (default: 1)")
    slurm.add_argument("--gpus", type=_positive, help="GPUs of a task")
    slurm.add_argument("--constraint", help="features a node must have")
    slurm.add_argument("--array-parallelism", type=_positive, default=256, metavar="N", help="tasks at once (256)")
    slurm.add_argument("--runs-per-task", type=_positive, default=10, metavar="N", help="runs of a task (default: 10)")
    slurm.add_argument("--setup", action="append", default=[], metavar="CMD", help="a shell command before the task")
    slurm.add_argument("--sbatch", action="append", default=[], metavar="KEY=VALUE", help="any other option of sbatch")

    _accept_settings_anywhere(parser)


def _accept_settings_anywhere(parser: argparse.ArgumentParser) -> None:
    """Lets settings stand before, after and between options; argparse alone takes only the first group of them."""
    plain = parser.parse_known_args

    def parse(args=None, namespace=None):
        parser.parse_known_args = plain  # which the intermixed version calls
        try:
            return parser.parse_known_intermixed_args(args, namespace)
        finally:
            parser.parse_known_args = parse

    parser.parse_known_args = parse


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return number


def execute(args: argparse.Namespace) -> int:
    from lcat_run.sweep import launch
    from lcat_run.sweep.local import SweepFailed

    request = launch.Launch(
        grid=args.grid,
        overrides=launch.parse_overrides(args.settings),
        only=launch.parse_only(args.only),
        jobs=args.jobs,
        threads=args.threads,
        retry_failed=args.retry_failed,
    )
    try:
        return _slurm(args, request) if args.engine == "slurm" else _local(args, request)
    except SweepFailed as error:
        print(f"lcat sweep: {error}\nfinished runs are safe; the same command goes on", file=sys.stderr)
        return 1


def _local(args: argparse.Namespace, request: Launch) -> int:
    from lcat_run.sweep import launch

    cores = launch.available_cores()
    workers, threads = request.workers_and_threads(cores)
    if workers * threads > cores:
        print(f"note: {workers} workers × {threads} threads share {cores} cores", file=sys.stderr)
    with launch.planning_worker(threads) as worker:
        plan = request.plan(worker)
        folder = request.folder(plan)
        snapshot = launch.look(folder, plan.runs)
        runs = request.to_do(plan, snapshot)
        if args.dry_run:
            print(launch.describe(plan, runs, snapshot, workers))
            return 0
        old = folder.write(plan, sys.argv[1:])
        if old:
            print(f"note: {old} runs of an earlier version of the grid are kept in {folder.runs}", file=sys.stderr)
        chosen = snapshot.counts(request.chosen(plan))
        left_out = 0 if request.retry_failed else chosen["failed"]
        if not runs:
            print(f"nothing to do: {chosen['done']} done, {left_out} failed; results in {folder.path}")
            return 1 if left_out else 0
        print(f"{plan.grid.name}: {len(runs)} of {len(plan.runs)} runs to do, {workers} workers", file=sys.stderr)
        launch.prepare_datasets(plan, runs, worker)
        outcome = launch.run_locally(request, plan, folder, runs, snapshot, worker)
    print(launch.last_words(outcome, folder, sys.argv[1:]))
    if left_out:
        print(f"{left_out} more that failed in an earlier launch were left out; --retry-failed tries them again")
    if outcome.stopped:
        return 130
    return 1 if outcome.failed or outcome.killed or left_out else 0


def _slurm(args: argparse.Namespace, request: Launch) -> int:
    from lcat_run.sweep import launch
    from lcat_run.sweep.queue import look_at_queue
    from lcat_run.sweep.slurm import Resources, SlurmEngine, parse_minutes, parse_sbatch

    resources = Resources(
        minutes=parse_minutes(args.time),
        setup=args.setup,
        sbatch=parse_sbatch(args.sbatch),
        **{
            name: getattr(args, name)
            for name in (
                *("cpus", "partition", "account", "qos", "mem", "gpus", "constraint"),
                *("array_parallelism", "runs_per_task"),
            )
        },
    )
    with launch.planning_worker(threads=1) as worker:
        plan = request.plan(worker)
        folder = request.folder(plan)
        engine = SlurmEngine(folder, plan.grid.name, resources, request.threads)
        if not args.dry_run:
            for words in engine.recover():
                print(f"note: {words}", file=sys.stderr)
            engine.close_finished()
        queue = look_at_queue(folder)
        snapshot = launch.look(folder, plan.runs, queue.states)
        waiting = set(snapshot.of("queued", "running", "unknown"))
        runs = [run for run in request.to_do(plan, snapshot) if run.run_id not in waiting]
        if args.dry_run:
            print(launch.describe(plan, runs, snapshot, engine.parallel_runs(runs)))
            if runs:
                print(f"\n{engine.preview(runs)}")
            return 0
        folder.write(plan, sys.argv[1:])
        if runs:
            launch.prepare_datasets(plan, runs, worker)
    submitted = engine.submit(runs, plan.common) if runs else []
    jobs = f" as {', '.join(f'job {submission.job}' for submission in submitted)}" if submitted else ""
    print(
        f"{len(runs)} runs submitted{jobs}; {len(snapshot.of('done'))} done, {len(waiting)} waiting or running, "
        f"{len(snapshot.of('failed'))} failed\nsee how it goes with: lcat status {folder.path}"
    )
    return 0
