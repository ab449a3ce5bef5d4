"""Worker processes on this machine, each served by a thread that gives it one run after another.

A worker that dies takes only its current run with it, and that run is retried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lcat_core.claims import Claim
from lcat_core.errors import SweepFailed
from lcat_core.outcomes import EXIT_PAUSED, PAUSE_SIGNALS, Outcome, is_disk_full
from lcat_core.process import Process
from lcat_core.run_folder import RunRecord, is_done
from lcat_run.engines.run_queue import LOOK_AGAIN_SECONDS, RESUME_ADVICE, RunQueue, Tally, Watcher
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.worker import Worker, WorkerDied

#: How a worker ends that was asked to stop: with a checkpoint, or before it could catch the signal.
_ASKED_TO_STOP = (EXIT_PAUSED, *(-number for number in PAUSE_SIGNALS))
_TICK_SECONDS = 0.1


class WorkerPool:
    """Executes ``runs``, in this order, with ``jobs`` workers of ``threads`` threads each.

    Args:
        common: The settings that all runs share.
        first_worker: An idle worker to use as the first one.
        devices: GPUs, as ``CUDA_VISIBLE_DEVICES`` names them; each worker sees one of them, in turn.
        stop_when_paused: A worker that was asked to stop means that all of them are about to be stopped.
    """

    def __init__(
        self,
        folder: SweepFolder,
        common: Mapping[str, Any],
        runs: Sequence[RunRecord],
        jobs: int,
        threads: int,
        watcher: Watcher,
        first_worker: Worker | None = None,
        stop_when_paused: bool = False,
        devices: Sequence[str] = (),
    ):
        self._folder = folder
        self._common = dict(common)
        self._jobs = jobs
        self._threads = threads
        self._watcher = watcher
        self._stop_when_paused = stop_when_paused
        self._devices = devices
        self._queue = RunQueue(folder, runs, watcher)
        self._workers: dict[int, Worker] = {} if first_worker is None else {0: first_worker}
        self._service: list[threading.Thread] = []
        self._kill_at: float | None = None
        self._error: BaseException | None = None

    def run(self) -> Tally:
        """Return when nothing is left to do, or everything has stopped.

        Raises:
            SweepFailed: The disk is full, or workers cannot be started.
        """
        for slot in range(max(1, min(self._jobs, len(self._queue)))):
            self._service.append(threading.Thread(target=self._serve, args=(slot,), name=f"worker-{slot}"))
            self._service[-1].start()
        self.wait()
        if self._error is not None:
            raise self._error
        return self._queue.tally

    def wait(self) -> None:
        """Return when no worker is busy any more. Waits for no lock, so a signal handler may call it."""
        while any(thread.is_alive() for thread in self._service):
            time.sleep(_TICK_SECONDS)
            self._watcher.tick(self._queue.running)
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                for worker in list(self._workers.values()):
                    worker.kill()

    def stop(self, patience: float = 30.0) -> None:
        """Ask every worker to write a checkpoint and end; after ``patience`` seconds, kill those that have not."""
        self._queue.stopping = self._queue.tally.stopped = True
        self._kill_at = time.monotonic() + patience
        for worker in list(self._workers.values()):
            worker.pause()

    def _serve(self, slot: int) -> None:
        try:
            while not self._queue.stopping:
                job = self._queue.take()
                if job is not None:
                    self._execute(slot, *job)
                elif self._queue.is_empty():
                    break
                else:
                    time.sleep(LOOK_AGAIN_SECONDS / 4)
        except OSError as error:
            self._abort(self._failure(error, is_disk_full(error)))
        except BaseException as error:  # passed on to the thread that called run()
            self._abort(error)
        finally:
            worker = self._workers.pop(slot, None)
            if worker is not None:
                worker.close()

    def _abort(self, error: BaseException) -> None:
        self._error = self._error or error
        self.stop()

    def _failure(self, reason: object, disk_full: bool) -> SweepFailed:
        where = f"no space left in {self._folder.path}: " if disk_full else ""
        return SweepFailed(f"{where}{reason}; {RESUME_ADVICE}")

    def _execute(self, slot: int, run: RunRecord, claim: Claim) -> None:
        """Execute one run on the worker of ``slot``, starting it if needed; the claim is released in every case."""
        outcome, detail = Outcome.KILLED, "the launcher failed"
        try:
            worker = self._worker(slot)
            claim.name_worker(worker.identity)
            self._folder.record_event("started", run.run_id)
            outcome, detail = self._ask(worker, run)
        finally:
            claim.release(Outcome.PAUSED if outcome is Outcome.BUSY else outcome, detail)
        self._folder.record_event(outcome, run.run_id, **({"detail": detail} if detail else {}))
        if outcome is Outcome.PAUSED and self._stop_when_paused and not self._queue.stopping:
            self.stop()
        self._queue.settle(run, outcome, detail)

    def _worker(self, slot: int) -> Worker:
        worker = self._workers.get(slot)
        if worker is None or not worker.is_alive():
            if worker is not None:
                worker.close()
            device = self._devices[slot % len(self._devices)] if self._devices else None
            worker = Worker(self._threads, log=worker_log(self._folder, slot), device=device)
            self._workers[slot] = worker
        return worker

    def _ask(self, worker: Worker, run: RunRecord) -> tuple[Outcome, str]:
        """Have the run executed; return the outcome, and the reason unless it is done."""
        if self._queue.stopping:
            return Outcome.PAUSED, "stopped before it started"
        run_dir = self._folder.run_dir(run.run_id)
        request = {
            "run_dir": str(run_dir.absolute()),
            "model": run.model,
            "settings": run.settings(self._common),
            "params": run.params,
        }
        try:
            reply = worker.run(request)
        except WorkerDied as death:
            if is_done(run_dir):
                return Outcome.DONE, ""  # it died after its result was on the disk
            was_asked = death.status in _ASKED_TO_STOP or self._queue.stopping
            return Outcome.PAUSED if was_asked else Outcome.KILLED, str(death)
        outcome, error = _outcome(reply), str(reply.get("error") or "")
        if reply.get("cause") == "disk full":
            self._abort(self._failure(error, disk_full=True))
        return outcome, error


def _outcome(reply: Mapping[str, Any]) -> Outcome:
    try:
        return Outcome(str(reply.get("status")))
    except ValueError:
        return Outcome.FAILED


def worker_log(folder: SweepFolder, slot: int) -> Path:
    """Return the file for what a worker of this process prints."""
    this = Process.current()
    return folder.logs / f"worker-{this.host}-{this.pid}-{slot}.log"
