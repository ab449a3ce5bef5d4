"""A share of a sweep's runs that can be sent to another process or machine: ``python -m lcat_run.engines.task FILE``.

An engine writes a task to a file and has this command executed anywhere with the same file system and packages. The
command takes the claims of its runs, so runs that are done, or that somebody else executes, are skipped. After SIGTERM,
SIGUSR2 or SIGHUP it writes checkpoints and exits with status 75; the same command resumes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lcat_core.errors import LcatError, UserError
from lcat_core.files import read_json, write_json
from lcat_core.outcomes import EXIT_PAUSED, PAUSE_SIGNALS, Outcome, handle_signals
from lcat_core.run_folder import RunRecord
from lcat_run.engines.engine import Launch
from lcat_run.engines.worker_pool import WorkerPool
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.worker import COMMAND_VARIABLE


@dataclass(frozen=True)
class Task:
    """Some runs of a sweep, as text and numbers only.

    Attributes:
        folder: The sweep's folder.
        common: The settings that all runs share, as they were when the runs got their ids: the sweep may be given others
            while the task waits.
        runs: The records of its runs.
        jobs: Number of workers.
        threads: Threads of each worker.
        environment: Variables to set.
    """

    folder: str
    common: Mapping[str, Any]
    runs: Sequence[Mapping[str, Any]]
    jobs: int = 1
    threads: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, launch: Launch, runs: Sequence[RunRecord], jobs: int = 1, threads: int = 1) -> Task:
        kept = {key: os.environ[key] for key in (COMMAND_VARIABLE,) if key in os.environ}
        records = [run.line() for run in runs]
        return cls(str(launch.folder.path.absolute()), dict(launch.plan.common), records, jobs, threads, kept)

    @classmethod
    def read(cls, path: Path) -> Task:
        """Read what :meth:`write` wrote.

        Raises:
            UserError: The file is missing, incomplete, or something else.
        """
        content = read_json(path)
        try:
            return cls(**content)  # type: ignore[arg-type]  # TypeError is what we want to know
        except TypeError as error:
            raise UserError(f"{path} is not a task of a sweep") from error

    def write(self, path: Path) -> None:
        write_json(path, asdict(self), indent=None)

    @property
    def run_ids(self) -> list[str]:
        return [run["run_id"] for run in self.runs]

    def pool(self, stop_when_paused: bool = False) -> WorkerPool:
        """Return the workers that execute the task; they print to standard output."""
        os.environ.update(self.environment)
        runs = [RunRecord.parse(record) for record in self.runs]
        folder = SweepFolder(Path(self.folder))
        return WorkerPool(
            folder, self.common, runs, self.jobs, self.threads, _PlainLog(), stop_when_paused=stop_when_paused
        )


class _PlainLog:
    """Prints what happens, one line each."""

    def finished(self, run_id: str, outcome: Outcome) -> None:
        print(f"{outcome}: {run_id}", flush=True)

    def tick(self, running: int) -> None:
        pass

    def say(self, message: str) -> None:
        print(message, flush=True)


def main(arguments: Sequence[str]) -> int:
    try:
        pool = Task.read(Path(arguments[0])).pool()
        with handle_signals(PAUSE_SIGNALS, lambda *_: pool.stop()):
            tally = pool.run()
    except LcatError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    if tally.stopped:
        return EXIT_PAUSED
    return 1 if tally.failed or tally.killed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
