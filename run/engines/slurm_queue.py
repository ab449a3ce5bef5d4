"""What a SLURM cluster knows about a sweep: one call of ``squeue``, and the records of what was submitted.

A submission is written to ``slurm/submission-<token>.json`` before ``sbatch`` is called, and the token is part of the
job's name. If a launcher dies between ``sbatch`` and recording the number of the job, the job can still be found.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcat_core.errors import LcatError, UserError
from lcat_core.files import exclusive_lock, make_folder, read_json, write_json
from lcat_core.run_folder import RunState, State
from lcat_run.engines.engine import QueueLook
from lcat_run.sweep.folder import SweepFolder

#: A submitted run that is in no queue is reported as lost only if it is still missing so many seconds later.
SECONDS_UNTIL_LOST = 60.0
#: How long a cancelled job may take to end: SLURM kills it 30 seconds (KillWait) after it asked.
SECONDS_UNTIL_ENDED = 120.0
_LOOK_AGAIN_SECONDS = 0.5
_FORMAT = "%i|%j|%T|%r"
_DEFAULT_ARRAY_SIZE = 1000


class QueueUnreachable(LcatError):
    """The cluster did not answer, so nothing is known about its jobs."""


@dataclass(frozen=True)
class QueuedTask:
    """One line of ``squeue``: a task of an array, or a job without one."""

    job: str
    task: int
    name: str
    state: str
    reason: str


@dataclass
class Submission:
    """One array: the ids of the runs of each of its tasks, and its job number once that is known."""

    path: Path
    token: str
    tasks: list[list[str]]
    job: str | None = None
    closed: bool = False

    @classmethod
    def read(cls, path: Path) -> Submission | None:
        """Read a record; None if the file is damaged."""
        content = read_json(path)
        if not isinstance(content, dict) or not _are_lists_of_text(content.get("tasks")):
            return None
        token, job = content.get("token"), content.get("job")
        if not isinstance(token, str) or not isinstance(job, str | None):
            return None
        return cls(path, token, content["tasks"], job, content.get("closed") is True)

    def write(self) -> None:
        content = {key: value for key, value in vars(self).items() if key != "path"}
        write_json(self.path, content, indent=None)

    def close(self) -> None:
        """Record that nothing of it waits or runs any more."""
        self.closed = True
        self.write()

    def job_name(self, sweep: str) -> str:
        return f"lcat-{sweep}-{self.token}"

    def is_named(self, job_name: str) -> bool:
        """Whether a job with this name is this submission; the token suffices, as the sweep may have been renamed."""
        return job_name.startswith("lcat-") and job_name.endswith(f"-{self.token}")


def _are_lists_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(part, list) and all(isinstance(item, str) for item in part) for part in value
    )


def slurm_folder(folder: SweepFolder) -> Path:
    return folder.engine_folder("slurm")


def open_submissions(folder: SweepFolder) -> list[Submission]:
    """Return the submissions of which something may still wait or run."""
    found = (Submission.read(path) for path in sorted(slurm_folder(folder).glob("submission-*.json")))
    return [submission for submission in found if submission is not None and not submission.closed]


def squeue() -> list[QueuedTask]:
    """Return all jobs of this user that wait or run.

    Raises:
        QueueUnreachable: ``squeue`` is missing, fails or takes too long.
    """
    lines = _call(["squeue", "--me", "-h", "-r", "-o", _FORMAT]).splitlines()
    return [task for task in map(_parse, lines) if task is not None]


def _parse(line: str) -> QueuedTask | None:
    parts = line.strip().split("|")
    if len(parts) < 4:
        return None
    job, _, task = parts[0].partition("_")
    return QueuedTask(job, int(task) if task.isdigit() else 0, parts[1], parts[2], "|".join(parts[3:]))


def _call(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except FileNotFoundError as error:
        raise QueueUnreachable(f"there is no {command[0]} on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise QueueUnreachable(f"{command[0]} did not answer within 30 seconds") from error
    except subprocess.CalledProcessError as error:
        raise QueueUnreachable(f"{command[0]} failed: {error.stderr.strip() or error.returncode}") from error
    return done.stdout


def look_at_queue(folder: SweepFolder) -> QueueLook:
    """Say which submitted runs wait, why, and which have vanished; ask the cluster only if something was submitted."""
    submissions = open_submissions(folder)
    look = QueueLook()
    if not submissions:
        return look
    try:
        tasks = squeue()
    except QueueUnreachable as problem:
        look.notes.append(f"the queue is unknown: {problem}")
        look.states = {run_id: RunState(State.UNKNOWN, str(problem)) for run_id, _ in _submitted(submissions)}
        return look
    waiting = {run_id: task for submission in submissions for run_id, task in _waiting(submission, tasks)}
    vanished = _Vanished(slurm_folder(folder))
    for run_id, submission in _submitted(submissions):
        task = waiting.get(run_id)
        if task is not None:
            reason = "" if task.reason in ("None", "") else f"{task.state.lower()}: {task.reason}"
            look.states[run_id] = RunState(State.QUEUED, reason)
        elif vanished.for_long(run_id):
            look.states[run_id] = RunState(State.LOST, f"job {submission.job} left the queue without finishing it")
    vanished.save()
    return look


def _submitted(submissions: list[Submission]) -> Iterator[tuple[str, Submission]]:
    for submission in submissions:
        for run_ids in submission.tasks:
            for run_id in run_ids:
                yield run_id, submission


def _waiting(submission: Submission, tasks: list[QueuedTask]) -> Iterator[tuple[str, QueuedTask]]:
    for task in tasks:
        if task.job == submission.job and task.task < len(submission.tasks):
            for run_id in submission.tasks[task.task]:
                yield run_id, task


class _Vanished:
    """When submitted runs were first missing from the queue; a single look could fall between two states of a job."""

    def __init__(self, folder: Path):
        self._path = folder / "vanished.json"
        content = read_json(self._path)
        self._first: dict[str, float] = content if isinstance(content, dict) else {}
        self._seen: dict[str, float] = {}

    def for_long(self, run_id: str) -> bool:
        now = time.time()
        first = self._first.get(run_id)
        self._seen[run_id] = first if isinstance(first, (int, float)) else now
        return now - self._seen[run_id] >= SECONDS_UNTIL_LOST

    def save(self) -> None:
        if self._seen == self._first:
            return
        try:
            write_json(self._path, self._seen, indent=None)
        except OSError:  # a full or read-only disk: nothing is reported as lost
            return


def find_orphans(folder: SweepFolder, tasks: list[QueuedTask]) -> list[tuple[Submission, str | None]]:
    """Return submissions whose job number was never recorded, each with that number if the job is in the queue."""
    return [
        (submission, next((task.job for task in tasks if submission.is_named(task.name)), None))
        for submission in open_submissions(folder)
        if submission.job is None
    ]


def cancel_jobs(folder: SweepFolder) -> list[str]:
    """Cancel the sweep's jobs that wait or run; return their numbers."""
    submissions = open_submissions(folder)
    if not submissions:
        return []
    jobs = sorted({task.job for task in squeue() if any(entry.is_named(task.name) for entry in submissions)})
    if jobs:
        scancel(jobs)
    return jobs


def cancel_and_wait(job: str) -> None:
    """Cancel a job and return when it has left the queue: only then are the claims of its runs free.

    Raises:
        UserError: It is still ending after a while.
        QueueUnreachable: The cluster does not answer.
    """
    scancel([job])
    deadline = time.monotonic() + SECONDS_UNTIL_ENDED
    while any(task.job == job for task in squeue()):
        if time.monotonic() > deadline:
            raise UserError(
                f"job {job}, which was submitted by a launcher that died, is still ending; rerun the command in a minute"
            )
        time.sleep(_LOOK_AGAIN_SECONDS)


@contextmanager
def submitting(folder: SweepFolder) -> Iterator[None]:
    """Hold the lock under which jobs are submitted and recorded: whoever finds a record without a job then knows it is orphaned."""
    make_folder(slurm_folder(folder))
    with exclusive_lock(slurm_folder(folder) / ".lock"):
        yield


def max_array_size() -> int:
    """Return the largest number of tasks an array may have; SLURM's MaxArraySize is one more."""
    for line in _call(["scontrol", "show", "config"]).splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "MaxArraySize" and value.strip().isdigit():
            return max(1, int(value) - 1)
    return _DEFAULT_ARRAY_SIZE


def scancel(jobs: list[str]) -> None:
    _call(["scancel", *jobs])
