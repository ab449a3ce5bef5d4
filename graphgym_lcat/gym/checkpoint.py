"""Checkpoints: the newest one, and the one before it in case the newest is damaged."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import torch

from graphgym_lcat.gym.files import write_atomically

NEWEST = "checkpoint.pt"
PREVIOUS = "checkpoint.previous.pt"


def save_checkpoint(run_dir: Path, state: dict[str, Any]) -> None:
    """Writes the newest checkpoint; the one that was newest is kept as the previous."""
    buffer = io.BytesIO()  # torch would report a full disk as a RuntimeError of its zip writer
    torch.save(state, buffer)
    fresh = run_dir / f".{NEWEST}.new"
    write_atomically(fresh, lambda file: file.write(buffer.getbuffer()))
    if (run_dir / NEWEST).exists():
        os.replace(run_dir / NEWEST, run_dir / PREVIOUS)
    os.replace(fresh, run_dir / NEWEST)


def load_checkpoint(run_dir: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest checkpoint that can be read, and what is to be said about those that cannot."""
    complaints = []
    for name in (f".{NEWEST}.new", NEWEST, PREVIOUS):
        path = run_dir / name
        if not path.is_file():
            continue
        try:
            return _read(path), complaints
        except Exception as error:  # whatever damaged bytes lead zipfile or the unpickler to
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            complaints.append(f"{path} is damaged ({reason}); going on from the one before it")
    return None, complaints


def _read(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:  # torch itself does not look at the checksums
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"wrong checksum of {damaged}")
    return torch.load(path, map_location="cpu", weights_only=True)


def remove_checkpoints(run_dir: Path) -> None:
    """A finished run needs none."""
    for name in (f".{NEWEST}.new", NEWEST, PREVIOUS):
        (run_dir / name).unlink(missing_ok=True)
