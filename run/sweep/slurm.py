"""The SLURM engine: arrays of tasks, each with several runs, submitted through submitit and never watched with it.

What became of the runs is read from their files and one ``squeue``, so no accounting is needed, and the launcher may
end as soon as it has submitted.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from lcat_run.errors import UserError
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.plan import Run
from lcat_run.sweep.queue import (
    QueueUnreachable,
    Submission,
    find_orphans,
    job_name,
    max_array_size,
    scancel,
    squeue,
    submissions,
)
from lcat_run.sweep.slurm_task import SlurmTask
from lcat_run.sweep.worker import COMMAND_VARIABLE

_SIGNAL_SECONDS = 60
_MANY_REQUEUES = 1000
_T = TypeVar("_T")


@dataclass
class Resources:
    """What a task asks SLURM for."""

    minutes: int
    cpus: int = 1
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    mem: str | None = None
    gpus: int | None = None
    constraint: str | None = None
    array_parallelism: int = 256
    runs_per_task: int = 10
    setup: list[str] = field(default_factory=list)
    sbatch: dict[str, str | bool] = field(default_factory=dict)

    def parameters(self, name: str) -> dict:
        """In submitit's words; only what was asked for."""
        asked = {
            "job_name": name,
            "time": self.minutes,
            "cpus_per_task": self.cpus,
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "mem": self.mem,
            "gpus_per_node": self.gpus,
            "constraint": self.constraint,
            "array_parallelism": self.array_parallelism,
            "setup": self.setup or None,
            # srun does not inherit the number of cores from sbatch in every version of SLURM.
            "srun_args": [f"--cpus-per-task={self.cpus}"],
            "signal_delay_s": min(_SIGNAL_SECONDS, max(1, self.minutes * 60 // 2)),
            # After a preemption SLURM starts the task again; at the time limit submitit does.
            "additional_parameters": {"requeue": True, **self.sbatch},
        }
        return {key: value for key, value in asked.items() if value is not None}


def parse_minutes(text: str) -> int:
    """SLURM's ways to write a time: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if match is None:
        raise UserError(f"--time must be minutes or [D-]HH:MM:SS, got {text!r}")
    days, *parts = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    if days is not None:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, [*numbers, 0][:2]
    total = int(days or 0) * 1440 + hours * 60 + minutes + (1 if seconds else 0)
    if total < 1:
        raise UserError(f"--time must be at least one minute, got {text!r}")
    return total


def parse_sbatch(entries: Sequence[str]) -> dict[str, str | bool]:
    """``["mail-type=END", "exclusive"]``."""
    options: dict[str, str | bool] = {}
    for entry in entries:
        key, sign, value = entry.lstrip("-").partition("=")
        if not re.fullmatch(r"[a-z][a-z-]*", key):
            raise UserError(f"--sbatch takes an option of sbatch such as mail-type=END, got {entry!r}")
        options[key] = value if sign else True
    return options


class SlurmEngine:
    """Submits the runs of a sweep."""

    def __init__(self, folder: SweepFolder, name: str, resources: Resources, threads: int | None = None):
        if find_spec("submitit") is None:
            raise UserError("--engine slurm needs submitit: pip install 'graphgym-lcat[slurm]'")
        self._folder = folder
        self._name = name
        self._resources = resources
        self._threads = threads or 1
        self._jobs = max(1, resources.cpus // self._threads)

    def submit(self, runs: Sequence[Run], common: Mapping[str, Any]) -> list[Submission]:
        """Hands the runs to SLURM in as few arrays as it allows; ``common`` is what all of them set."""
        self._folder.slurm.mkdir(parents=True, exist_ok=True)
        tasks = [self._task(share, common) for share in share_out(runs, self._resources.runs_per_task)]
        size = _ask(max_array_size)
        return [self._submit_array(tasks[start : start + size]) for start in range(0, len(tasks), size)]

    def _submit_array(self, tasks: list[SlurmTask]) -> Submission:
        import submitit

        token = uuid.uuid4().hex[:8]
        run_ids = [[run["run_id"] for run in task.runs] for task in tasks]
        submission = Submission(self._folder.slurm / f"submission-{token}.json", token, run_ids, submitted=time.time())
        submission.write()
        executor = self._executor(self._folder.slurm / "jobs", token)
        try:
            with executor.batch():
                jobs = [executor.submit(task) for task in tasks]
        except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
            submission.closed = True
            submission.write()
            raise UserError(f"sbatch refused the jobs: {_last_line(error)}") from error
        submission.job = jobs[0].job_id.partition("_")[0]
        submission.write()
        return submission

    def _task(self, runs: Sequence[Run], common: Mapping[str, Any]) -> SlurmTask:
        kept = {key: os.environ[key] for key in (COMMAND_VARIABLE,) if key in os.environ}
        records = [run.record() for run in runs]
        return SlurmTask(str(self._folder.path.absolute()), dict(common), records, self._jobs, self._threads, kept)

    def _executor(self, folder: Path, token: str):
        import submitit

        try:
            executor = submitit.SlurmExecutor(folder=folder.absolute(), max_num_timeout=_MANY_REQUEUES)
        except RuntimeError as error:
            raise UserError("--engine slurm needs SLURM's commands, and there is no srun on this machine") from error
        executor.update_parameters(**self._resources.parameters(job_name(self._name, token)))
        return executor

    def parallel_runs(self, runs: Sequence[Run]) -> int:
        """How many of the runs can be made at once, if the cluster has room."""
        tasks = -(-len(runs) // self._resources.runs_per_task)
        return min(tasks, self._resources.array_parallelism) * self._jobs

    def preview(self, runs: Sequence[Run]) -> str:
        """The text for sbatch, and what SLURM thinks of it; nothing is submitted or written to the sweep."""
        tasks = share_out(runs, self._resources.runs_per_task)
        size = _ask(max_array_size)
        with tempfile.TemporaryDirectory(prefix="lcat-") as scratch:
            executor = self._executor(Path(scratch), "preview")
            executor.parameters["map_count"] = min(size, len(tasks))
            text = executor._make_submission_file_text(executor._submitit_command_str, "preview")
            text = text.replace(str(Path(scratch).absolute()), str((self._folder.slurm / "jobs").absolute()))
            script = Path(scratch) / "preview.sh"
            script.write_text(text, encoding="utf-8")
            verdict = subprocess.run(
                ["sbatch", "--test-only", str(script)], capture_output=True, text=True, timeout=60, check=False
            )
        arrays = -(-len(tasks) // size)
        opinion = (verdict.stderr + verdict.stdout).strip()
        return f"{len(tasks)} tasks in {arrays} arrays\n\n{text}\nsbatch --test-only: {opinion}"

    def recover(self) -> list[str]:
        """Looks after submissions whose launcher died before it noted their job; returns what was done, in words.

        Their tasks may lack what submitit writes after sbatch, so a job that is found is cancelled, to be submitted
        anew.
        """
        words = []
        for submission, job in find_orphans(self._folder, _ask(squeue), self._name):
            if job is not None:
                _ask(lambda job=job: scancel([job]))
                words.append(f"job {job} was submitted by a launcher that died before it could say so; cancelled")
            submission.closed = True
            submission.write()
        return words

    def close_finished(self) -> None:
        """Forgets submissions of which nothing waits or runs any more; their unfinished runs will be submitted anew."""
        alive = {task.job for task in _ask(squeue)}
        for submission in submissions(self._folder):
            if not submission.closed and submission.job not in alive:
                submission.closed = True
                submission.write()


def share_out(runs: Sequence[_T], runs_per_task: int) -> list[Sequence[_T]]:
    """Runs by task. They come longest first and are dealt like cards, so that tasks take about equally long."""
    count = -(-len(runs) // runs_per_task)
    return [runs[start::count] for start in range(count)]


def _ask(question: Callable[[], _T]) -> _T:
    try:
        return question()
    except QueueUnreachable as problem:
        raise UserError(f"SLURM cannot be asked, so nothing was submitted: {problem}") from problem


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
