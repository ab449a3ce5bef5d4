"""Claims: of all commands, launchers and cluster jobs that work on a results folder, only one at a time executes a given run.

A claim is a lock (``flock``) on ``runs/<id>/claim.json``. The kernel releases it however its owner ends, so no claim outlives
its owner. The content of the file names the owner, or says how the last one left; it serves people, ``lcat status``, and
recognises a worker that briefly outlives its launcher.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from lcat_core.errors import UserError
from lcat_core.files import open_or_create, parse_json
from lcat_core.outcomes import Outcome
from lcat_core.process import Process

CLAIM = "claim.json"
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
_MAX_BYTES = 65536


class Claim:
    """The right to execute one run, until :meth:`release`; ``previous`` is what the last owner left in the file."""

    def __init__(self, descriptor: int, previous: dict[str, Any]):
        self._descriptor = descriptor
        self.previous = previous
        self._content = {
            "owner": Process.current().record(),
            "job": os.environ.get("SLURM_JOB_ID"),
            "since": time.time(),
        }

    @classmethod
    def take(cls, run_dir: Path) -> Claim | None:
        """Take the claim to a run; None while somebody else has it.

        Raises:
            UserError: The file system has no locks.
        """
        path = run_dir / CLAIM
        descriptor = open_or_create(path, os.O_RDWR)
        try:
            if not _lock(descriptor, fcntl.LOCK_EX, path):
                os.close(descriptor)
                return None
            previous = _read(descriptor)
            survivor = Process.from_record(previous.get("worker"))
            if "left" not in previous and survivor is not None and survivor.is_here and survivor.is_alive():
                os.close(descriptor)  # its launcher is dead, and it will soon be
                return None
            claim = cls(descriptor, previous)
            claim._write(claim._content)
        except BaseException:
            os.close(descriptor)
            raise
        return claim

    def name_worker(self, worker: Process) -> None:
        """Record which process executes the run."""
        self._write({**self._content, "worker": worker.record()})

    def release(self, outcome: Outcome, detail: str = "") -> None:
        """Release the claim and record how the attempt ended."""
        try:
            self._write({"left": outcome.value, "detail": detail, "at": time.time()})
        finally:
            os.close(self._descriptor)

    def _write(self, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode() + b"\n"
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))


def inspect_claim(run_dir: Path) -> tuple[bool, dict[str, Any]]:
    """Return whether a live process has claimed the run, and what the claim says."""
    path = run_dir / CLAIM
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return False, {}
    try:
        free = _lock(descriptor, fcntl.LOCK_SH, path)
        return not free, _read(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            raise UserError(
                f"the file system of {path.parent} has no locks (flock: {error.strerror}), which keep two processes "
                "from executing the same run; choose another one with `out_dir`"
            ) from error
        raise
    return True


def _read(descriptor: int) -> dict[str, Any]:
    try:
        content = parse_json(os.pread(descriptor, _MAX_BYTES, 0) or b"{}")
    except (OSError, ValueError):
        return {}
    return content if _is_valid(content) else {}


def _is_valid(content: Any) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("owner", {}), dict):
        return False
    return all(isinstance(content.get(key, 0), (int, float)) for key in ("since", "at"))
