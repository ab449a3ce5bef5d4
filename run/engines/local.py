"""The engine ``local``: worker processes on this machine."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Iterator

from lcat_core.outcomes import handle_signals
from lcat_core.run_folder import State
from lcat_run.arguments import positive
from lcat_run.engines.engine import Ending, Engine, Launch, QueueLook
from lcat_run.engines.launchers import announced_launcher, live_launchers
from lcat_run.engines.run_queue import Tally
from lcat_run.engines.worker_pool import WorkerPool
from lcat_run.sweep.cost import cost
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.plan import Plan
from lcat_run.sweep.progress import Progress
from lcat_run.sweep.worker import Worker
from lcat_run.threads import available_cores, workers_and_threads

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130
_PATIENCE_SECONDS = 30.0
#: Values of ``accelerator`` that leave open which GPU is used.
_ANY_GPU = ("auto", "cuda", "gpu")


class LocalEngine(Engine):
    """Executes the runs in worker processes and returns when all have ended."""

    name = "local"
    summary = "worker processes on this machine"
    # It waits for runs that another launcher executes, and takes them over if that one dies.
    skipped_states = frozenset[State]()

    def __init__(self) -> None:
        self._jobs: int | None = None
        self._asked_threads: int | None = None
        self._workers = 1
        self._threads = 1
        self._devices: list[str] = []

    def add_options(self, options: argparse._ArgumentGroup) -> None:
        options.add_argument(
            "-j",
            "--jobs",
            type=positive,
            metavar="N",
            help="number of workers (default: cores / threads, or one per GPU)",
        )

    def configure(self, options: argparse.Namespace) -> None:
        cores = available_cores()
        self._jobs, self._asked_threads = options.jobs, options.threads
        self._workers, self._threads = workers_and_threads(options.jobs, options.threads, cores)
        self.planning_threads = self._threads
        if self._workers * self._threads > cores:
            print(f"note: {self._workers} workers × {self._threads} threads share {cores} cores", file=sys.stderr)

    def adapt(self, plan: Plan, worker: Worker) -> None:
        """Start one worker per GPU if the runs use GPUs, and give each its own."""
        if worker.gpus and any(plan.value(run, "accelerator") in _ANY_GPU for run in plan.runs):
            self._devices = gpu_names(worker.gpus)
            cores = available_cores()
            self._workers, self._threads = workers_and_threads(self._jobs, self._asked_threads, cores, worker.gpus)

    def look(self, folder: SweepFolder) -> QueueLook:
        return QueueLook()  # the claims of the runs say what executes now, and nothing else waits

    def parallel_runs(self, number: int) -> int:
        return self._workers

    def start(self, launch: Launch) -> Ending:
        costs = {run.run_id: cost(launch.plan, run) for run in launch.runs}
        done_before = launch.snapshot.counts(launch.chosen)[State.DONE]
        progress = Progress(len(launch.chosen), done_before, costs)
        pool = WorkerPool(
            launch.folder,
            launch.plan.common,
            launch.runs,
            self._workers,
            self._threads,
            progress,
            # A worker that sees all GPUs would write checkpoints that one that sees a single GPU cannot resume.
            first_worker=None if self._devices else launch.worker,
            devices=self._devices,
        )
        try:
            with announced_launcher(launch.folder), _stop_on_signals(pool):
                tally = pool.run()
        finally:
            progress.close()
        failed = bool(tally.failed or tally.killed)
        return Ending(last_words(tally, launch), _INTERRUPTED if tally.stopped else int(failed))

    def cancel(self, folder: SweepFolder) -> list[str]:
        launchers = live_launchers(folder)
        for launcher in launchers:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(launcher.pid, signal.SIGTERM)
        return [f"asked the launcher {launcher.pid} to stop" for launcher in launchers]


def gpu_names(count: int) -> list[str]:
    """Return the GPUs of this process as ``CUDA_VISIBLE_DEVICES`` names them."""
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return named[:count] if named else [str(number) for number in range(count)]


@contextlib.contextmanager
def _stop_on_signals(pool: WorkerPool) -> Iterator[None]:
    """On the first Ctrl-C (or SIGTERM, or a closed terminal) ask for checkpoints; on the second, do not wait for them.

    A closed terminal never shortens the wait: the kernel and the shell both send SIGHUP, and a session manager SIGTERM after it.
    """
    received: list[int] = []

    def handle(number: int, _: object) -> None:
        is_impatient = number != signal.SIGHUP and any(earlier != signal.SIGHUP for earlier in received)
        if not received or is_impatient:
            pool.stop(patience=0.0 if is_impatient else _PATIENCE_SECONDS)
        if not received:
            print("\nstopping: writing checkpoints (again to kill)", file=sys.stderr, flush=True)
        received.append(number)

    with handle_signals(_STOP_SIGNALS, handle):
        yield


def last_words(tally: Tally, launch: Launch) -> str:
    """Say how the launch went, and what to do next."""
    counts = [f"{len(tally.done)} done"]
    for runs, text in (
        (tally.done_elsewhere, "done by others"),
        (tally.failed, "failed"),
        (tally.killed, "killed"),
        (tally.paused, "paused"),
    ):
        if runs:
            counts.append(f"{len(runs)} {text}")
    if tally.retries:
        counts.append(f"{tally.retries} retries of killed runs")
    path = launch.folder.path
    lines = [f"{', '.join(counts)}; results in {path}"]
    if tally.stopped or tally.killed:
        lines.append(f"resume with: lcat {shlex.join(launch.command)}")
    if tally.failed:
        lines += [f"see why with: lcat logs {path}", "try them again with --retry-failed"]
    return "\n".join(lines)
