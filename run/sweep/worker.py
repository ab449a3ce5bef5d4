"""The launcher's end of a worker process: one JSON object per line, in both directions.

Workers import torch, so the launcher need not. They live for many runs, because that import takes seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from lcat_core.errors import SweepFailed, UserError
from lcat_core.process import Process
from lcat_core.settings import Settings
from lcat_run.sweep.worker_log import WorkerLog
from lcat_run.threads import let_threads_sleep

#: Set in the environment to run another program that speaks the protocol; the tests do.
COMMAND_VARIABLE = "LCAT_WORKER"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class WorkerDied(SweepFailed):
    """The process ended without an answer; ``status`` is as in ``Popen.returncode``: −9 for SIGKILL."""

    def __init__(self, status: int | None, last_line: str = ""):
        super().__init__(describe_status(status) + (f"; the last line it printed: {last_line}" if last_line else ""))
        self.status = status


def describe_status(status: int | None) -> str:
    """Say how the process ended; None if it still runs."""
    if status is None:
        return "the worker closed its pipe"
    if status < 0:
        return f"the worker was killed by {signal.Signals(-status).name}"
    return f"the worker ended with exit status {status}"


def worker_command() -> list[str]:
    custom = os.environ.get(COMMAND_VARIABLE)
    return shlex.split(custom) if custom else [sys.executable, "-m", "graphgym_lcat.gym.worker"]


class Worker:
    """A worker process. Start it from the thread that will end last: it dies with that thread.

    Args:
        device: The only GPU that it sees, as ``CUDA_VISIBLE_DEVICES`` names it.
    """

    def __init__(
        self, threads: int, log: Path | None = None, command: Sequence[str] | None = None, device: str | None = None
    ):
        self.threads = threads
        self.gpus = 0
        self.log = WorkerLog(log)
        environment = os.environ | dict.fromkeys(_THREAD_VARIABLES, str(threads))
        environment |= {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
        let_threads_sleep(environment)
        launcher = [sys.executable, "-m", "lcat_run.sweep.tied_process", str(os.getpid())]
        self._process = subprocess.Popen(
            [*launcher, *(command or worker_command())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.write_end,
            env=environment,
            start_new_session=True,  # Ctrl-C at the terminal is for the launcher, which passes it on
        )
        self.log.start()
        self._requests = cast("IO[bytes]", self._process.stdin)
        self._answers = cast("IO[bytes]", self._process.stdout)
        self.identity = Process.with_pid(self._process.pid)

    def describe(self, base: Path | None) -> tuple[Settings, Settings]:
        """Return the defaults of all keys, and what the configuration file ``base`` sets; count the GPUs, too."""
        reply = self.ask({"op": "describe", "base": None if base is None else str(base)})
        if not reply.get("ok"):
            raise UserError(str(reply.get("error")))
        self.gpus = int(reply.get("gpus") or 0)
        if reply.get("note"):
            print(f"note: {reply['note']}", file=sys.stderr)
        return reply["defaults"], reply["base"]

    def check(self, settings: list[Settings]) -> tuple[int, str] | None:
        """Return the index and the error of the first invalid settings; None if all are valid."""
        reply = self.ask({"op": "check", "settings": settings})
        return None if reply.get("ok") else (int(reply.get("index") or 0), str(reply.get("error")))

    def prepare(self, settings: Settings) -> dict[str, Any]:
        """Download and process a dataset unless that is done already; return the answer with its size."""
        return self.ask({"op": "prepare", "settings": settings})

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Execute one run, whose claim the caller holds; return how it ended."""
        return self.ask({"op": "run", "threads": self.threads, "claimed": True, **request})

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for the answer.

        Raises:
            WorkerDied: The process ended instead of answering.
        """
        try:
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()
        except (BrokenPipeError, ValueError):
            raise self._death() from None
        try:
            return json.loads(self._answers.readline())
        except ValueError:  # nothing, or a line cut off by the death of its writer
            raise self._death() from None

    def _death(self) -> WorkerDied:
        status: int | None
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            status = None
        return WorkerDied(status, self.log.last_line())

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def pause(self) -> None:
        """Ask it to write a checkpoint of its run and to end."""
        if self.is_alive():
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.is_alive():
            self._process.kill()

    def close(self, patience: float = 5.0) -> None:
        """End an idle worker, which leaves when its input is closed."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        try:
            self._process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()


@contextlib.contextmanager
def planning_worker(threads: int) -> Iterator[Worker]:
    """Start a worker that answers questions about settings before the sweep has a folder."""
    worker = Worker(threads)
    try:
        yield worker
    finally:
        worker.close()
