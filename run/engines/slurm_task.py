"""What one task of a SLURM array does, as submitit calls it."""

from __future__ import annotations

import sys
import time
from typing import Any

from lcat_run.engines.task import Task
from lcat_run.engines.worker_pool import WorkerPool

_KILLED_SOON_SECONDS = 600.0


class SlurmTask:
    """Executes a :class:`~lcat_run.engines.task.Task`; pickled by submitit.

    Before the time limit SLURM sends SIGUSR2 to every process of the task. The workers write checkpoints and end, submitit
    calls :meth:`checkpoint` and requeues the job, and the runs resume from their checkpoints.
    """

    def __init__(self, task: Task):
        self.task = task
        self._pool: WorkerPool | None = None

    def __call__(self) -> dict[str, int]:
        self._pool = self.task.pool(stop_when_paused=True)
        tally = self._pool.run()
        if tally.paused:
            self._wait_to_be_killed()
        return tally.counts()

    def checkpoint(self) -> Any:
        """Submit the same task again; submitit calls this at the time limit."""
        import submitit

        if self._pool is not None:
            self._pool.stop(patience=20.0)
            self._pool.wait()
        return submitit.helpers.DelayedSubmission(SlurmTask(self.task))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}

    @staticmethod
    def _wait_to_be_killed() -> None:
        """Wait, because SLURM has asked the workers to stop and will end this task too.

        If the task returned instead, it would count as finished, and would not be started again after a preemption.
        """
        time.sleep(_KILLED_SOON_SECONDS)
        sys.exit("the workers were asked to stop, but the job was not ended")
