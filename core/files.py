"""Files that are either complete or absent, and JSON that is read without surprises."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

#: No JSON document of a results folder is larger.
MAX_JSON_BYTES = 16 * 2**20
#: No file with one document per line is larger: 100,000 runs need half of it.
MAX_LINES_BYTES = 128 * 2**20
_LINK_REFUSED = "is a symbolic link, and files of results are not written through links"
_NOT_REGULAR = "not a regular file"


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a new file beside ``path``, force it to the disk, and rename it into place.

    Readers see the old content or the new one, never a part of it. A symbolic link at ``path`` is replaced, not followed.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.partial")
    try:
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with open(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        # A full disk reports no name, other errors that of the partial file.
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        partial.unlink(missing_ok=True)
    _sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically; bytes of a file name that are not valid text are written as escapes."""
    data = text.encode("utf-8", errors="backslashreplace")
    write_atomically(path, lambda file: file.write(data))


def write_json(path: Path, content: Any, indent: int | None = 2) -> None:
    """Write one JSON document atomically; NaN and infinities are refused, since JSON has none."""
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False) + "\n")


def make_folder(path: Path) -> None:
    """Create a folder, and those above it, unless it exists; a symbolic link in its place is refused."""
    path.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, _LINK_REFUSED, str(path))


def open_or_create(path: Path, flags: int) -> int:
    """Return a descriptor of a regular file, which is created if it is missing; links and pipes are refused, never followed.

    Everything that is not written atomically is opened here: in a folder that others can write to, a symbolic link could point to
    any file of the user.
    """
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            error.strerror = _LINK_REFUSED
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, _NOT_REGULAR, str(path))
    return descriptor


def open_to_append(path: Path) -> BinaryIO:
    """Open a file to append to it; see :func:`open_or_create`."""
    return open(open_or_create(path, os.O_WRONLY | os.O_APPEND), "ab")


def append_line(path: Path, line: str) -> None:
    """Append one line in a single write, so that lines of several processes do not mix; see :func:`open_or_create`."""
    with open_to_append(path) as file:
        os.write(file.fileno(), line.encode("utf-8", errors="backslashreplace") + b"\n")


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock on this file, and hold it; see :func:`open_or_create`."""
    descriptor = open_or_create(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_bytes(path: Path, limit: int = MAX_JSON_BYTES) -> bytes:
    """Read a regular file of at most ``limit`` bytes; anything else, a pipe for example, raises ``OSError`` and never blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, _NOT_REGULAR, str(path))
        if status.st_size > limit:
            raise OSError(errno.EFBIG, f"larger than {limit} bytes", str(path))
        return file.read()


def read_json(path: Path) -> Any | None:
    """Return the JSON document, or None if the file is missing, incomplete or unreadable."""
    try:
        return parse_json(read_bytes(path))
    except (OSError, ValueError):
        return None


def parse_json(data: bytes | str) -> Any:
    """Parse a JSON document; everything wrong with it, extreme nesting too, raises ``ValueError``."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def remove_partial_files(folder: Path) -> None:
    """Delete what a killed process was writing in a folder that nobody else uses now."""
    for partial in folder.glob(".*.partial"):
        partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Force a rename to the disk: it is there only once its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
