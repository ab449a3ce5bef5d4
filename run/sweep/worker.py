"""The launcher's end of a worker process: one JSON object a line, in both directions.

Workers import torch, so that the launcher need not, and live for many runs, since that import takes seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lcat_run.errors import UserError
from lcat_run.sweep.grid import Settings
from lcat_run.sweep.process import Process

#: Set in the environment to have another program speak the protocol (the tests do).
COMMAND_VARIABLE = "LCAT_WORKER"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class WorkerDied(Exception):
    """The process ended without an answer. ``status`` is as in ``Popen.returncode``: −9 for SIGKILL."""

    def __init__(self, status: int | None, last_words: str = ""):
        super().__init__(describe_status(status) + (f"; its last words: {last_words}" if last_words else ""))
        self.status = status


def describe_status(status: int | None) -> str:
    if status is None:
        return "the worker closed its pipe"
    if status < 0:
        return f"the worker was killed by {signal.Signals(-status).name}"
    return f"the worker ended with exit status {status}"


def worker_command() -> list[str]:
    custom = os.environ.get(COMMAND_VARIABLE)
    return shlex.split(custom) if custom else [sys.executable, "-m", "graphgym_lcat.gym.worker"]


class Worker:
    """A worker process. Must be started by the thread that will end last: it dies with that thread."""

    def __init__(self, threads: int, log: Path, command: Sequence[str] | None = None):
        self.log = log
        self.threads = threads
        environment = os.environ | dict.fromkeys(_THREAD_VARIABLES, str(threads))
        tied = [sys.executable, "-m", "lcat_run.sweep.process", str(os.getpid()), *(command or worker_command())]
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as stderr:
            self._process = subprocess.Popen(
                tied,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                start_new_session=True,  # Ctrl-C at the terminal is for the launcher to pass on
            )
        self.identity = Process.of(self._process.pid)

    def describe(self, base: Path | None) -> tuple[Settings, Settings]:
        """The defaults of all keys, and what the configuration file ``base`` sets."""
        reply = self.ask({"op": "describe", "base": None if base is None else str(base)})
        if not reply.get("ok"):
            raise UserError(str(reply.get("error")))
        if reply.get("note"):
            print(f"note: {reply['note']}", file=sys.stderr)
        return reply["defaults"], reply["base"]

    def check(self, settings: list[Settings]) -> tuple[int, str] | None:
        """None if every set of settings can run, else the first that cannot, and why."""
        reply = self.ask({"op": "check", "settings": settings})
        return None if reply.get("ok") else (int(reply.get("index") or 0), str(reply.get("error")))

    def prepare(self, settings: Settings) -> dict[str, Any]:
        """Downloads and processes a dataset unless that was done; its size."""
        return self.ask({"op": "prepare", "settings": settings})

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Makes one run and returns how it went."""
        return self.ask({"op": "run", "threads": self.threads, **request})

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._death() from None
        try:
            return json.loads(self._process.stdout.readline())
        except ValueError:  # nothing, or a line cut off by the death of its writer
            raise self._death() from None

    def _death(self) -> WorkerDied:
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            status = None
        return WorkerDied(status, self._last_words())

    def _last_words(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].strip() if lines else ""

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def pause(self) -> None:
        """Asks it to write a checkpoint of its run and to end."""
        if self.is_alive():
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.is_alive():
            self._process.kill()

    def close(self, patience: float = 5.0) -> None:
        """Ends an idle worker: it leaves when nobody can ask any more."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
