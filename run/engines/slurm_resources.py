"""What a task asks SLURM for: the options of the command line, and their translation for submitit."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lcat_core.errors import UserError
from lcat_run.arguments import positive

_SIGNAL_SECONDS = 60


@dataclass
class Resources:
    """What a task asks SLURM for, and how many runs it executes."""

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

    @staticmethod
    def add_options(options: argparse._ArgumentGroup) -> None:
        options.add_argument("--partition", help="partition to submit to")
        options.add_argument("--account", help="account to charge")
        options.add_argument("--qos", help="quality of service")
        options.add_argument(
            "--time", default="60", help="time limit of a task: minutes, or [D-]HH:MM:SS (default: 60)"
        )
        options.add_argument("--mem", help="memory of a task, such as 8G")
        options.add_argument("--cpus", type=positive, default=1, help="cores of a task (default: 1)")
        options.add_argument("--gpus", type=positive, help="GPUs of a task")
        options.add_argument("--constraint", help="features that a node must have")
        options.add_argument(
            "--array-parallelism", type=positive, default=256, metavar="N", help="tasks at the same time (default: 256)"
        )
        options.add_argument(
            "--runs-per-task", type=positive, default=10, metavar="N", help="runs of one task (default: 10)"
        )
        options.add_argument(
            "--setup", action="append", default=[], metavar="CMD", help="shell command to run before the task"
        )
        options.add_argument(
            "--sbatch", action="append", default=[], metavar="KEY=VALUE", help="any other option of sbatch"
        )

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Resources:
        same = ("cpus", "partition", "account", "qos", "mem", "gpus", "constraint", "array_parallelism")
        return cls(
            minutes=parse_minutes(options.time),
            runs_per_task=options.runs_per_task,
            setup=options.setup,
            sbatch=parse_sbatch(options.sbatch),
            **{name: getattr(options, name) for name in same},
        )

    def parameters(self, job_name: str) -> dict[str, Any]:
        """Return the parameters for submitit; only what was asked for."""
        wanted = {
            "job_name": job_name,
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
        return {key: value for key, value in wanted.items() if value is not None}


def parse_minutes(text: str) -> int:
    """Parse a time as SLURM writes it: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS."""
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
    """``["mail-type=END", "exclusive"]`` → ``{"mail-type": "END", "exclusive": True}``."""
    options: dict[str, str | bool] = {}
    for entry in entries:
        key, sign, value = entry.lstrip("-").partition("=")
        if not re.fullmatch(r"[a-z][a-z-]*", key):
            raise UserError(f"--sbatch takes an option of sbatch such as mail-type=END, got {entry!r}")
        options[key] = value if sign else True
    return options
