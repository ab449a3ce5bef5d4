"""The local engine: worker processes, each watched by a thread and given one run after another.

A worker that dies takes only its current run with it, and that run is tried again. Several launchers, and jobs of a
cluster, may work on the same sweep: whoever takes a run's claim makes it, the others pass over it and look again later.
"""

from __future__ import annotations

import errno
import signal
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lcat_run.sweep.claims import Claim
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.plan import Run
from lcat_run.sweep.process import Process
from lcat_run.sweep.state import NO_SPACE, read_result
from lcat_run.sweep.worker import Worker, WorkerDied

#: A run whose worker was killed is tried again so many times before this launcher gives it up.
RETRIES = 2
_DEATHS_IN_A_ROW = 10
_LOOK_AGAIN_SECONDS = 1.0
#: How a worker ends that was asked to stop: with a checkpoint, or before it could catch the signal.
_ASKED_TO_STOP = (75, -signal.SIGTERM, -signal.SIGUSR2)
_TICK_SECONDS = 0.1


class SweepFailed(Exception):
    """The sweep cannot go on, for a reason that is no run's own."""


class Watcher(Protocol):
    """Who is told how it goes."""

    def finished(self, run_id: str, outcome: str) -> None: ...

    def tick(self, running: int) -> None: ...

    def say(self, message: str) -> None: ...


@dataclass
class Outcome:
    """What happened to the runs of one launch, by id."""

    done: list[str] = field(default_factory=list)
    done_elsewhere: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    retries: int = 0
    stopped: bool = False


class LocalEngine:
    """Makes ``runs``, in this order, with ``jobs`` workers of ``threads`` threads each."""

    def __init__(
        self,
        folder: SweepFolder,
        common: Mapping[str, Any],
        runs: Sequence[Run],
        jobs: int,
        threads: int,
        watcher: Watcher,
        first_worker: Worker | None = None,
        stop_when_paused: bool = False,
    ):
        self.outcome = Outcome()
        self._folder = folder
        self._common = dict(common)
        self._jobs = jobs
        self._threads = threads
        self._watcher = watcher
        self._stop_when_paused = stop_when_paused
        self._pending = deque(runs)
        self._elsewhere: dict[str, tuple[float, Run]] = {}
        self._kills: dict[str, int] = {}
        self._deaths_in_a_row = 0
        self._started = time.time()
        self._lock = threading.Lock()
        self._workers: dict[int, Worker] = {} if first_worker is None else {0: first_worker}
        self._running: set[str] = set()
        self._service: list[threading.Thread] = []
        # Plain flags, since they are set by signal handlers, which must not wait for locks.
        self._stopping = False
        self._kill_at: float | None = None
        self._error: BaseException | None = None

    def run(self) -> Outcome:
        """Returns when nothing is left to do, or everything has stopped.

        Raises:
            SweepFailed: the disk is full, or workers cannot be started.
        """
        count = max(1, min(self._jobs, len(self._pending)))
        for slot in range(count):
            self._service.append(threading.Thread(target=self._serve, args=(slot,), name=f"worker-{slot}"))
            self._service[-1].start()
        self.wait()
        if self._error is not None:
            raise self._error
        return self.outcome

    def wait(self) -> None:
        """Returns when no worker works any more. Waits for no lock, so that a signal handler may call it, too."""
        while any(thread.is_alive() for thread in self._service):
            time.sleep(_TICK_SECONDS)
            self._watcher.tick(len(self._running))
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                for worker in list(self._workers.values()):
                    worker.kill()

    def stop(self, patience: float = 30.0) -> None:
        """Has every worker write a checkpoint and end; those that take longer than ``patience`` seconds are killed."""
        self._stopping = self.outcome.stopped = True
        self._kill_at = time.monotonic() + patience
        for worker in list(self._workers.values()):
            worker.pause()

    def _serve(self, slot: int) -> None:
        try:
            while not self._stopping:
                job = self._next_job()
                if job is None:
                    with self._lock:
                        idle = not self._elsewhere and not self._running and not self._pending
                    if idle:
                        break
                    time.sleep(_LOOK_AGAIN_SECONDS / 4)
                    continue
                self._make(slot, *job)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            where = f"no space left in {self._folder.path}: " if full else ""
            self._abort(SweepFailed(f"{where}{error}"))
        except BaseException as error:  # handed to the thread that called run()
            self._abort(error)
        finally:
            worker = self._workers.pop(slot, None)
            if worker is not None:
                worker.close()

    def _abort(self, error: BaseException) -> None:
        self._error = self._error or error
        self.stop()

    def _next_job(self) -> tuple[Run, Claim] | None:
        """The next run that is not done and that nobody else has claimed."""
        with self._lock:
            now = time.monotonic()
            due = [run_id for run_id, (at, _) in self._elsewhere.items() if at <= now]
            candidates = [self._elsewhere.pop(run_id)[1] for run_id in due]
            while not self._stopping and (self._pending or candidates):
                elsewhere = not self._pending
                run = candidates.pop() if elsewhere else self._pending.popleft()
                run_dir = self._folder.make_run_dir(run.run_id)
                if read_result(run_dir) is not None:
                    self.outcome.done_elsewhere.append(run.run_id)
                    self._watcher.finished(run.run_id, "done")
                    continue
                claim = Claim.take(run_dir)
                if claim is None:
                    self._elsewhere[run.run_id] = (now + _LOOK_AGAIN_SECONDS, run)
                elif not self._settled_elsewhere(run, run_dir, claim):
                    self._keep_looking(candidates)
                    self._running.add(run.run_id)
                    return run, claim
            self._keep_looking(candidates)
        return None

    def _settled_elsewhere(self, run: Run, run_dir: Path, claim: Claim) -> bool:
        """Whether another launcher has finished the run, or had it fail, since this one started."""
        left = claim.previous.get("left")
        if read_result(run_dir) is not None:
            claim.release("done")
            self.outcome.done_elsewhere.append(run.run_id)
            self._watcher.finished(run.run_id, "done")
        elif left == "failed" and claim.previous.get("at", 0) > self._started:
            claim.release("failed", claim.previous.get("detail", ""))
            self.outcome.failed.append(run.run_id)
            self._watcher.finished(run.run_id, "failed")
        else:
            return False
        return True

    def _keep_looking(self, candidates: list[Run]) -> None:
        for run in candidates:
            self._elsewhere[run.run_id] = (0.0, run)

    def _make(self, slot: int, run: Run, claim: Claim) -> None:
        """One run on the worker of ``slot``, which is started if need be; the claim is given back in every case."""
        outcome, detail = "killed", "the launcher failed"
        try:
            worker = self._worker(slot)
            claim.name_worker(worker.identity)
            self._folder.note("started", run.run_id)
            outcome, detail = self._ask(worker, run)
        finally:
            claim.release("paused" if outcome == "busy" else outcome, detail)
        self._folder.note(outcome, run.run_id, **({"detail": detail} if detail else {}))
        self._settle(run, outcome, detail)

    def _worker(self, slot: int) -> Worker:
        worker = self._workers.get(slot)
        if worker is None or not worker.is_alive():
            if worker is not None:
                worker.close()
            worker = Worker(self._threads, log=self._worker_log(slot))
            self._workers[slot] = worker
        return worker

    def _worker_log(self, slot: int) -> Path:
        this = Process.current()
        return self._folder.logs / f"worker-{this.host}-{this.pid}-{slot}.log"

    def _ask(self, worker: Worker, run: Run) -> tuple[str, str]:
        """Has the run made; the outcome, and the reason where it was not done."""
        if self._stopping:
            return "paused", "stopped before it started"
        request = {
            "run_dir": str(self._folder.run_dir(run.run_id).absolute()),
            "model": run.model,
            "settings": run.settings(self._common),
            "params": run.params,
            "claimed": True,
        }
        try:
            reply = worker.run(request)
        except WorkerDied as death:
            if read_result(self._folder.run_dir(run.run_id)) is not None:
                return "done", ""  # it died after its last word was on the disk
            paused = death.status in _ASKED_TO_STOP or self._stopping
            return ("paused" if paused else "killed"), str(death)
        status, error = str(reply.get("status") or "failed"), str(reply.get("error") or "")
        if NO_SPACE in error:  # no fault of the run's: it is made again when there is room
            self._abort(SweepFailed(f"no space left in {self._folder.path}: {error}"))
            return "paused", error
        return status, error

    def _settle(self, run: Run, outcome: str, detail: str) -> None:
        with self._lock:
            self._running.discard(run.run_id)
            if outcome == "killed":
                self._after_death(run, detail)
            elif outcome == "busy":
                self._elsewhere[run.run_id] = (time.monotonic() + _LOOK_AGAIN_SECONDS, run)
            elif outcome == "paused":
                self._after_pause(run)
            else:
                self._deaths_in_a_row = 0
                getattr(self.outcome, outcome).append(run.run_id)
                self._watcher.finished(run.run_id, outcome)
        if outcome == "failed":
            self._watcher.say(f"failed: {run.run_id}: {detail}")

    def _after_pause(self, run: Run) -> None:
        if self._stopping or self._stop_when_paused:
            self.outcome.paused.append(run.run_id)
            if not self._stopping:
                self.stop()
        else:  # somebody asked this worker, not the sweep, to stop
            self._pending.appendleft(run)

    def _after_death(self, run: Run, detail: str) -> None:
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _DEATHS_IN_A_ROW:
            raise SweepFailed(f"{self._deaths_in_a_row} workers died one after another; the last time {detail}")
        kills = self._kills[run.run_id] = self._kills.get(run.run_id, 0) + 1
        if kills > RETRIES:
            self.outcome.killed.append(run.run_id)
            self._watcher.finished(run.run_id, "killed")
            self._watcher.say(f"given up for now: {run.run_id}: {detail} ({kills} times)")
        else:
            self.outcome.retries += 1
            self._pending.append(run)
            self._watcher.say(f"retried: {run.run_id}: {detail}")
