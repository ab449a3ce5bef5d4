"""The runs of one launch that are not settled yet, shared by the threads that execute them.

Several launchers, and jobs of a cluster, may work on the same sweep. Whoever takes the claim of a run executes it; the
others skip it and look again later.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lcat_core.claims import Claim
from lcat_core.errors import SweepFailed
from lcat_core.outcomes import Outcome, is_disk_full
from lcat_core.run_folder import RunRecord, is_done
from lcat_run.sweep.folder import SweepFolder

#: A run whose worker was killed is retried so many times before this launch gives it up.
RETRIES = 2
LOOK_AGAIN_SECONDS = 1.0
_DEATHS_IN_A_ROW = 10
RESUME_ADVICE = "finished runs are safe; rerun the same command to resume"


class Watcher(Protocol):
    """Receives progress updates."""

    def finished(self, run_id: str, outcome: Outcome) -> None: ...

    def tick(self, running: int) -> None: ...

    def say(self, message: str) -> None: ...


@dataclass
class Tally:
    """What happened to the runs of one launch, by id."""

    done: list[str] = field(default_factory=list)
    done_elsewhere: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    retries: int = 0
    stopped: bool = False

    def counts(self) -> dict[str, int]:
        """Return how many runs ended in each way."""
        return {name: len(value) for name, value in vars(self).items() if isinstance(value, list)}


class RunQueue:
    """Gives every run to one thread at a time, and decides what happens after an attempt."""

    def __init__(self, folder: SweepFolder, runs: Sequence[RunRecord], watcher: Watcher):
        self.tally = Tally()
        # Plain flag, since signal handlers set it, which must not wait for locks.
        self.stopping = False
        self._folder = folder
        self._watcher = watcher
        self._pending = deque(runs)
        self._elsewhere: dict[str, tuple[float, RunRecord]] = {}
        self._running: set[str] = set()
        self._kills: dict[str, int] = {}
        self._deaths_in_a_row = 0
        self._started = time.time()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def running(self) -> int:
        """How many runs execute now."""
        return len(self._running)

    def is_empty(self) -> bool:
        """Whether all runs are settled, by this launch or by others."""
        with self._lock:
            return not self._elsewhere and not self._running and not self._pending

    def take(self) -> tuple[RunRecord, Claim] | None:
        """Return the next run that is not done and that nobody else has claimed; None if there is none now."""
        with self._lock:
            now = time.monotonic()
            due = [run_id for run_id, (at, _) in self._elsewhere.items() if at <= now]
            candidates = [self._elsewhere.pop(run_id)[1] for run_id in due]
            try:
                while not self.stopping and (self._pending or candidates):
                    run = self._pending.popleft() if self._pending else candidates.pop()
                    claim = self._claim(run, now)
                    if claim is not None:
                        self._running.add(run.run_id)
                        return run, claim
            finally:
                for run in candidates:
                    self._elsewhere[run.run_id] = (0.0, run)
        return None

    def _claim(self, run: RunRecord, now: float) -> Claim | None:
        """Take the claim; None if another process has it, or has settled the run, or if it cannot be taken."""
        try:
            run_dir = self._folder.make_run_dir(run.run_id)
            if is_done(run_dir):
                self._settle_elsewhere(run, Outcome.DONE)
                return None
            claim = Claim.take(run_dir)
        except OSError as error:  # a link, or anything else in the place of its folder or claim: the other runs go on
            if is_disk_full(error):
                raise
            self._settle_elsewhere(run, Outcome.FAILED)
            self._watcher.say(f"failed: {run.run_id}: {error}")
            return None
        if claim is None:
            self._elsewhere[run.run_id] = (now + LOOK_AGAIN_SECONDS, run)
            return None
        if is_done(run_dir):
            claim.release(Outcome.DONE)
            self._settle_elsewhere(run, Outcome.DONE)
            return None
        left, at = claim.previous.get("left"), claim.previous.get("at", 0)
        if left == Outcome.FAILED and at > self._started:
            claim.release(Outcome.FAILED, str(claim.previous.get("detail", "")))
            self._settle_elsewhere(run, Outcome.FAILED)
            return None
        return claim

    def _settle_elsewhere(self, run: RunRecord, outcome: Outcome) -> None:
        (self.tally.done_elsewhere if outcome is Outcome.DONE else self.tally.failed).append(run.run_id)
        self._watcher.finished(run.run_id, outcome)

    def settle(self, run: RunRecord, outcome: Outcome, detail: str) -> None:
        """Record how an attempt ended; a run that was killed, paused or busy may be given out again.

        Raises:
            SweepFailed: Too many workers died one after another.
        """
        with self._lock:
            self._running.discard(run.run_id)
            match outcome:
                case Outcome.DONE:
                    self._end(run, outcome, self.tally.done)
                case Outcome.FAILED:
                    self._end(run, outcome, self.tally.failed)
                    self._watcher.say(f"failed: {run.run_id}: {detail}")
                case Outcome.KILLED:
                    self._after_death(run, detail)
                case Outcome.BUSY:
                    self._elsewhere[run.run_id] = (time.monotonic() + LOOK_AGAIN_SECONDS, run)
                case Outcome.PAUSED if self.stopping:
                    self.tally.paused.append(run.run_id)
                case Outcome.PAUSED:  # somebody stopped this worker, not the sweep
                    self._pending.appendleft(run)

    def _end(self, run: RunRecord, outcome: Outcome, ended: list[str]) -> None:
        self._deaths_in_a_row = 0
        ended.append(run.run_id)
        self._watcher.finished(run.run_id, outcome)

    def _after_death(self, run: RunRecord, detail: str) -> None:
        if self.stopping:
            self.tally.killed.append(run.run_id)
            return
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _DEATHS_IN_A_ROW:
            raise SweepFailed(
                f"{self._deaths_in_a_row} workers died one after another; the last time {detail}; {RESUME_ADVICE}"
            )
        kills = self._kills[run.run_id] = self._kills.get(run.run_id, 0) + 1
        if kills > RETRIES:
            self.tally.killed.append(run.run_id)
            self._watcher.finished(run.run_id, Outcome.KILLED)
            self._watcher.say(f"given up for now: {run.run_id}: {detail} ({kills} times)")
        else:
            self.tally.retries += 1
            self._pending.append(run)
            self._watcher.say(f"retried: {run.run_id}: {detail}")
