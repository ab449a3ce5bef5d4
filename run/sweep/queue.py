"""What a SLURM cluster knows about a sweep: one call of ``squeue``, and the records of what was submitted.

A submission is written to ``slurm/submission-<token>.json`` before ``sbatch`` is called, and the token is part of the
job's name. So a launcher that dies between ``sbatch`` and noting the job's number leaves enough to find the job again.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lcat_run.sweep import files
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.state import RunState

#: A run that was submitted and is in no queue is called lost only by the second look, so many seconds after the first.
SECONDS_UNTIL_LOST = 60.0
_FORMAT = "%i|%j|%T|%r"


class QueueUnreachable(Exception):
    """The cluster did not answer; nothing can be said about its jobs."""


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
    """One array: the runs of each of its tasks, and its job number once that is known."""

    path: Path
    token: str
    tasks: list[list[str]]
    job: str | None = None
    closed: bool = False
    submitted: float = 0.0

    @classmethod
    def read(cls, path: Path) -> Submission | None:
        content = files.read_json(path)
        if not isinstance(content, dict) or not {"token", "tasks"} <= content.keys():
            return None
        known = {key: content[key] for key in ("token", "tasks", "job", "closed", "submitted") if key in content}
        return cls(path=path, **known)

    def write(self) -> None:
        content = {key: value for key, value in vars(self).items() if key != "path"}
        files.write_json(self.path, content, indent=None)


@dataclass
class QueueLook:
    """States of the runs that were submitted and are not finished, and remarks for the user."""

    states: dict[str, RunState] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def submissions(folder: SweepFolder) -> list[Submission]:
    found = (Submission.read(path) for path in sorted(folder.slurm.glob("submission-*.json")))
    return [submission for submission in found if submission is not None]


def job_name(sweep: str, token: str) -> str:
    return f"lcat-{sweep}-{token}"


def squeue() -> list[QueuedTask]:
    """All jobs of this user that wait or run.

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
    """Which submitted runs wait, why, and which have vanished. Asks the cluster only if something was submitted."""
    open_submissions = [submission for submission in submissions(folder) if not submission.closed]
    look = QueueLook()
    if not open_submissions:
        return look
    try:
        tasks = squeue()
    except QueueUnreachable as problem:
        look.notes.append(f"the queue is unknown: {problem}")
        look.states = {run_id: RunState("unknown", str(problem)) for run_id, _ in _submitted(open_submissions)}
        return look
    waiting = {run_id: task for submission in open_submissions for run_id, task in _waiting(submission, tasks)}
    vanished = _Vanished(folder)
    for run_id, submission in _submitted(open_submissions):
        task = waiting.get(run_id)
        if task is not None:
            reason = "" if task.reason in ("None", "") else f"{task.state.lower()}: {task.reason}"
            look.states[run_id] = RunState("queued", reason)
        elif vanished.for_long(run_id):
            look.states[run_id] = RunState("lost", f"job {submission.job} has left the queue without finishing it")
    vanished.save()
    return look


def _submitted(open_submissions: list[Submission]) -> Iterator[tuple[str, Submission]]:
    for submission in open_submissions:
        for run_ids in submission.tasks:
            for run_id in run_ids:
                yield run_id, submission


def _waiting(submission: Submission, tasks: list[QueuedTask]) -> Iterator[tuple[str, QueuedTask]]:
    for task in tasks:
        if task.job == submission.job and task.task < len(submission.tasks):
            for run_id in submission.tasks[task.task]:
                yield run_id, task


class _Vanished:
    """When submitted runs were first missed in the queue; one look could fall between two states of a job."""

    def __init__(self, folder: SweepFolder):
        self._path = folder.slurm / "vanished.json"
        content = files.read_json(self._path)
        self._first: dict[str, float] = content if isinstance(content, dict) else {}
        self._seen: dict[str, float] = {}

    def for_long(self, run_id: str) -> bool:
        now = time.time()
        self._seen[run_id] = self._first.get(run_id, now)
        return now - self._seen[run_id] >= SECONDS_UNTIL_LOST

    def save(self) -> None:
        if self._seen == self._first:
            return
        try:
            files.write_json(self._path, self._seen, indent=None)
        except OSError:  # a full or read-only disk: nothing is called lost
            return


def find_orphans(folder: SweepFolder, tasks: list[QueuedTask], sweep: str) -> list[tuple[Submission, str | None]]:
    """Submissions whose job number was never noted, each with the number of its job if that is in the queue."""
    numbers = {task.name: task.job for task in tasks}
    return [
        (submission, numbers.get(job_name(sweep, submission.token)))
        for submission in submissions(folder)
        if not submission.closed and submission.job is None
    ]


def cancel_jobs(folder: SweepFolder) -> list[str]:
    """Cancels the sweep's jobs that wait or run; their numbers."""
    open_submissions = [submission for submission in submissions(folder) if not submission.closed]
    if not open_submissions:
        return []
    tasks = squeue()
    sweep = str(folder.info.get("name", folder.path.name))
    names = {job_name(sweep, submission.token) for submission in open_submissions}
    jobs = sorted({task.job for task in tasks if task.name in names})
    if jobs:
        scancel(jobs)
    return jobs


def max_array_size() -> int:
    """The largest number of tasks an array may have (SLURM's MaxArraySize counts from 0, so one less)."""
    text = _call(["scontrol", "show", "config"])
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "MaxArraySize" and value.strip().isdigit():
            return max(1, int(value) - 1)
    return 1000


def scancel(jobs: list[str]) -> None:
    _call(["scancel", *jobs])
