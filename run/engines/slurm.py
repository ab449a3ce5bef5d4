"""The engine ``slurm``: arrays of tasks, each with several runs, submitted through submitit but not watched with it.

The states of the runs come from their files and one ``squeue``, so no accounting is needed, and the launcher may end as
soon as it has submitted.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lcat_core.errors import UserError
from lcat_core.run_folder import State
from lcat_core.text import count
from lcat_run.engines.engine import Ending, Engine, Launch, QueueLook
from lcat_run.engines.slurm_queue import (
    QueueUnreachable,
    Submission,
    cancel_and_wait,
    cancel_jobs,
    find_orphans,
    look_at_queue,
    max_array_size,
    open_submissions,
    slurm_folder,
    squeue,
    submitting,
)
from lcat_run.engines.slurm_resources import Resources
from lcat_run.engines.slurm_task import SlurmTask
from lcat_run.engines.task import Task
from lcat_run.optional_packages import require
from lcat_run.sweep.folder import SweepFolder

_MANY_REQUEUES = 1000
_T = TypeVar("_T")


class SlurmEngine(Engine):
    """Submits the runs to a SLURM cluster and returns."""

    name = "slurm"
    summary = "job arrays on a SLURM cluster"

    def __init__(self) -> None:
        self._resources = Resources(minutes=60)
        self._threads = 1
        self._jobs = 1

    def add_options(self, options: argparse._ArgumentGroup) -> None:
        Resources.add_options(options)

    def configure(self, options: argparse.Namespace) -> None:
        require("submitit")
        self._resources = Resources.from_options(options)
        self._threads = options.threads or 1
        self._jobs = max(1, self._resources.cpus // self._threads)

    def reconcile(self, folder: SweepFolder) -> list[str]:
        """Close submissions of which nothing waits or runs; their unfinished runs are submitted again.

        If a launcher died before it recorded the number of its job, the tasks of that job may lack what submitit writes
        after sbatch, so the job is cancelled. Its runs are submitted again once it has ended.
        """
        notes: list[str] = []
        with _needs_slurm():
            squeue()  # before anything is written: perhaps there is no SLURM here
        if not open_submissions(folder):
            return notes
        with _needs_slurm(), submitting(folder):
            tasks = squeue()
            for submission, job in find_orphans(folder, tasks):
                if job is not None:
                    cancel_and_wait(job)
                    notes.append(
                        f"job {job} was submitted by a launcher that died before it could record it; cancelled"
                    )
                submission.close()
            in_queue = {task.job for task in tasks}
            for submission in open_submissions(folder):
                if submission.job not in in_queue:
                    submission.close()
        return notes

    def look(self, folder: SweepFolder) -> QueueLook:
        return look_at_queue(folder)

    def parallel_runs(self, number: int) -> int:
        tasks = -(-number // self._resources.runs_per_task)
        return min(tasks, self._resources.array_parallelism) * self._jobs

    def preview(self, launch: Launch) -> str:
        """Return the script for sbatch, and what SLURM says about it."""
        tasks = share_out(launch.runs, self._resources.runs_per_task)
        with _needs_slurm():
            size = max_array_size()
        final_folder = _jobs_folder(launch.folder).absolute()
        with tempfile.TemporaryDirectory(prefix="lcat-") as scratch:
            executor = self._executor(Path(scratch), f"lcat-{launch.plan.grid.name}-preview")
            executor.parameters["map_count"] = min(size, len(tasks))
            text = executor._make_submission_file_text(executor._submitit_command_str, "preview")
            text = text.replace(str(Path(scratch).absolute()), str(final_folder))
            script = Path(scratch) / "preview.sh"
            script.write_text(text, encoding="utf-8")
            verdict = subprocess.run(
                ["sbatch", "--test-only", str(script)], capture_output=True, text=True, timeout=60, check=False
            )
        size_text = f"{count(len(tasks), 'task')} in {count(-(-len(tasks) // size), 'array')}"
        return f"{size_text}\n\n{text}\nsbatch --test-only: {(verdict.stderr + verdict.stdout).strip()}"

    def start(self, launch: Launch) -> Ending:
        """Submit the runs in as few arrays as the cluster allows."""
        shares = share_out(launch.runs, self._resources.runs_per_task)
        tasks = [Task.create(launch, share, self._jobs, self._threads) for share in shares]
        with _needs_slurm():
            size = max_array_size()
        submitted = [self._submit(launch, tasks[start : start + size]) for start in range(0, len(tasks), size)]
        jobs = ", ".join(f"job {submission.job}" for submission in submitted)
        counts = launch.snapshot.counts()
        waiting = sum(counts[state] for state in self.skipped_states)
        return Ending(
            f"{count(len(launch.runs), 'run')} submitted as {jobs}; {counts[State.DONE]} done, {waiting} waiting or "
            f"running, {counts[State.FAILED]} failed\nfollow them with: lcat status {launch.folder.path} --watch"
        )

    def _submit(self, launch: Launch, tasks: Sequence[Task]) -> Submission:
        import submitit

        token = uuid.uuid4().hex[:8]
        path = slurm_folder(launch.folder) / f"submission-{token}.json"
        submission = Submission(path, token, [task.run_ids for task in tasks])
        executor = self._executor(_jobs_folder(launch.folder), submission.job_name(launch.plan.grid.name))
        with submitting(launch.folder):
            submission.write()
            try:
                with executor.batch():
                    jobs = [executor.submit(SlurmTask(task)) for task in tasks]
            except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
                submission.close()
                raise UserError(f"sbatch refused the jobs: {_last_line(error)}") from error
            submission.job = jobs[0].job_id.partition("_")[0]
            submission.write()
        return submission

    def _executor(self, folder: Path, job_name: str) -> Any:
        import submitit

        try:
            executor = submitit.SlurmExecutor(folder=folder.absolute(), max_num_timeout=_MANY_REQUEUES)
        except RuntimeError as error:
            raise UserError("--engine slurm needs SLURM's commands, and there is no srun on this machine") from error
        executor.update_parameters(**self._resources.parameters(job_name))
        return executor

    def cancel(self, folder: SweepFolder) -> list[str]:
        jobs = cancel_jobs(folder)
        return [f"cancelled the jobs {', '.join(jobs)}"] if jobs else []


def share_out(runs: Sequence[_T], runs_per_task: int) -> list[Sequence[_T]]:
    """Distribute runs over tasks; they come longest first and are dealt like cards, so tasks take about equally long."""
    number = -(-len(runs) // runs_per_task)
    return [runs[start::number] for start in range(number)]


def _jobs_folder(folder: SweepFolder) -> Path:
    return slurm_folder(folder) / "jobs"


@contextmanager
def _needs_slurm() -> Iterator[None]:
    try:
        yield
    except QueueUnreachable as problem:
        raise UserError(f"SLURM does not answer, so nothing was submitted: {problem}") from problem


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
