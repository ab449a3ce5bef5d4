"""What one task of an array does: it is a local engine for its share of the runs."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

_KILLED_SOON_SECONDS = 600.0


class SlurmTask:
    """Makes some runs of a sweep; pickled by submitit, so it holds nothing but text and numbers.

    Before the time limit SLURM sends SIGUSR2 to every process of the task: the workers write checkpoints and leave,
    submitit calls :meth:`checkpoint` and puts the job back into the queue, and the runs go on from their checkpoints.
    """

    def __init__(
        self,
        folder: str,
        common: dict[str, Any],
        runs: list[dict[str, Any]],
        jobs: int,
        threads: int,
        environment: dict[str, str],
    ):
        self.folder = folder
        # Kept as they were when the runs got their names: the sweep may be given other settings while this task waits.
        self.common = common
        self.runs = runs
        self.jobs = jobs
        self.threads = threads
        self.environment = environment
        self._engine = None

    def __call__(self) -> dict[str, int]:
        from lcat_run.sweep.folder import SweepFolder
        from lcat_run.sweep.local import LocalEngine
        from lcat_run.sweep.plan import Run

        os.environ.update(self.environment)
        runs = [Run.from_record(record) for record in self.runs]
        self._engine = LocalEngine(
            SweepFolder(Path(self.folder)),
            self.common,
            runs,
            self.jobs,
            self.threads,
            _Log(),
            stop_when_paused=True,
        )
        outcome = self._engine.run()
        if outcome.paused:
            self._wait_to_be_killed()
        return {name: len(getattr(outcome, name)) for name in ("done", "done_elsewhere", "failed", "killed")}

    def checkpoint(self):
        """Called by submitit at the time limit; the same task is submitted again."""
        import submitit

        if self._engine is not None:
            self._engine.stop(patience=20.0)
            self._engine.wait()
        again = SlurmTask(self.folder, self.common, self.runs, self.jobs, self.threads, self.environment)
        return submitit.helpers.DelayedSubmission(again)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_engine": None}

    @staticmethod
    def _wait_to_be_killed() -> None:
        """Workers were told to stop by SLURM, which will end this task, too.

        A task that returned instead would count as finished and not be started again after a preemption.
        """
        time.sleep(_KILLED_SOON_SECONDS)
        sys.exit("the workers were asked to stop, but the job goes on")


class _Log:
    """Tells a task's own log what happened."""

    def finished(self, run_id: str, outcome: str) -> None:
        print(f"{outcome}: {run_id}", flush=True)

    def tick(self, running: int) -> None:
        pass

    def say(self, message: str) -> None:
        print(message, flush=True)
