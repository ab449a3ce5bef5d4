"""Claims: of all launchers and cluster jobs that work on a sweep, one at a time makes a given run.

A claim is a lock (``flock``) on ``runs/<id>/claim.json``. The kernel gives it back when its owner ends in whatever way,
so no claim outlives its owner. The file's content says who the owner is or how the last one left; it is for people, for
``lcat status``, and to recognise a worker that has outlived its launcher for a moment.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from lcat_run.errors import UserError
from lcat_run.sweep.process import Process

FILE = "claim.json"
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


class Claim:
    """The right to make one run, until :meth:`release`; ``previous`` is what the last owner left in the file."""

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
        """The claim to a run, or None while another owner has it."""
        path = run_dir / FILE
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if not _lock(descriptor, fcntl.LOCK_EX, path):
                os.close(descriptor)
                return None
            previous = _read(descriptor)
            survivor = Process.from_record(previous.get("worker"))
            if "left" not in previous and survivor is not None and survivor.is_here and survivor.is_alive():
                os.close(descriptor)  # its launcher is dead, it will follow
                return None
            claim = cls(descriptor, previous)
            claim._write(claim._content)
        except BaseException:
            os.close(descriptor)
            raise
        return claim

    def name_worker(self, worker: Process) -> None:
        """Says which process makes the run."""
        self._write({**self._content, "worker": worker.record()})

    def release(self, outcome: str, detail: str = "") -> None:
        """Gives the claim back; ``outcome`` is how it went: done, failed, killed or paused."""
        try:
            self._write({"left": outcome, "detail": detail, "at": time.time()})
        finally:
            os.close(self._descriptor)

    def _write(self, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode() + b"\n"
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))


def inspect(run_dir: Path) -> tuple[bool, dict[str, Any]]:
    """Whether a run is claimed by somebody alive, and what the claim says."""
    path = run_dir / FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
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
                f"the file system of {path.parent} has no locks (flock: {error.strerror}), which keep two launchers "
                "from making the same run; put the results on another one with `out_dir`"
            ) from error
        raise
    return True


def _read(descriptor: int) -> dict[str, Any]:
    try:
        content = json.loads(os.pread(descriptor, 65536, 0) or b"{}")
    except ValueError:
        return {}
    return content if _is_whole(content) else {}


def _is_whole(content: Any) -> bool:
    if not isinstance(content, dict) or not isinstance(content.get("owner", {}), dict):
        return False
    return all(isinstance(content.get(key, 0), (int, float)) for key in ("since", "at"))
