"""Files written by ``torch.save``, read only if every byte is as it was written."""

from __future__ import annotations

import errno
import zipfile
from pathlib import Path
from typing import Any

import torch

_SHOWN = 200
_NOT_DAMAGE = (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ENOMEM)


class DamagedFile(ValueError):
    """A file that is incomplete, has a wrong checksum, or was not written by ``torch.save``."""


def load_tensors(path: Path, device: torch.device | str = "cpu") -> Any:
    """Load what ``torch.save`` has written, without running code from the file.

    The file is a zip archive with a checksum for each of its parts; torch itself does not verify them.

    Raises:
        DamagedFile: The file is not what was written; the message names the file and the reason.
        FileNotFoundError: The file does not exist.
        OSError: It cannot be read now, which says nothing about its content; likewise if memory runs out.
    """
    try:
        _verify(path)
        return torch.load(path, map_location=device, weights_only=True)
    except (FileNotFoundError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # damaged bytes lead zipfile and the unpickler to errors of every kind
        if isinstance(error, OSError) and error.errno in _NOT_DAMAGE:
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DamagedFile(f"{path} is damaged ({reason[:_SHOWN]})") from error


def _verify(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            # torch stores parts as they are; compressed ones could be a thousand times larger than the file.
            if part.compress_type != zipfile.ZIP_STORED:
                raise ValueError("it has compressed parts")
            # torch never writes these, and its reader leaves memory uninitialised for a part that is marked as a folder.
            if part.external_attr or part.internal_attr or part.volume or part.file_size != part.compress_size:
                raise ValueError(f"wrong header of {part.filename}")
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"wrong checksum of {damaged}")
