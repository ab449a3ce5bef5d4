"""Checkpoints: the newest one, and the one before it in case the newest is damaged."""

from __future__ import annotations

import io
import logging
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from graphgym_lcat.gym.settings import default_settings
from lcat_core.errors import SettingsError
from lcat_core.files import write_atomically
from lcat_core.identity import may_change_on_resume
from lcat_core.run_folder import CHECKPOINT

PREVIOUS = "checkpoint.previous.pt"
_FRESH = f".{CHECKPOINT}.new"
log = logging.getLogger("graphgym_lcat")


def save_checkpoint(run_dir: Path, state: Mapping[str, Any]) -> None:
    """Write the newest checkpoint, and keep the one that was newest until now as the previous one."""
    buffer = io.BytesIO()  # torch would report a full disk as a RuntimeError of its zip writer
    torch.save(state, buffer)
    fresh = run_dir / _FRESH
    write_atomically(fresh, lambda file: file.write(buffer.getbuffer()))
    if (run_dir / CHECKPOINT).exists():
        os.replace(run_dir / CHECKPOINT, run_dir / PREVIOUS)
    os.replace(fresh, run_dir / CHECKPOINT)


def load_checkpoint(run_dir: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Load the newest readable checkpoint of a run with these settings; None if there is none.

    Raises:
        SettingsError: The checkpoint was written with other settings, or does not say with which.
    """
    checkpoint = _newest_readable(run_dir)
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, dict) or not {"settings", "threads"} <= checkpoint.keys():
        raise unusable(run_dir, "it does not say which run it belongs to")
    defaults = default_settings()
    then, now = ({**defaults, **some} for some in (checkpoint["settings"], settings))
    for key in sorted(now.keys() | then.keys()):
        if may_change_on_resume(key) or then.get(key) == now.get(key):
            continue
        raise SettingsError(
            f"the checkpoint in {run_dir} belongs to other settings: `{key}` is {then.get(key)!r} there and "
            f"{now.get(key)!r} here; use another output folder, or delete the checkpoint",
            key,
        )
    return checkpoint


def unusable(run_dir: Path, reason: str) -> SettingsError:
    """Return the error for a checkpoint that another version has written."""
    return SettingsError(
        f"the checkpoint in {run_dir} cannot be used by this version ({reason}); use the version that wrote it, "
        "or delete the checkpoint to start the run again"
    )


def _newest_readable(run_dir: Path) -> Any | None:
    for name in (_FRESH, CHECKPOINT, PREVIOUS):
        path = run_dir / name
        if not path.is_file():
            continue
        try:
            return _read(path)
        except Exception as error:  # damaged bytes can make zipfile or the unpickler raise anything
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            log.warning("%s is damaged (%s); resuming from the one before it", path, reason)
    return None


def _read(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:  # torch itself does not verify the checksums
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"wrong checksum of {damaged}")
    return torch.load(path, map_location="cpu", weights_only=True)


def remove_checkpoints(run_dir: Path) -> None:
    """Delete the checkpoints of a finished run."""
    for name in (_FRESH, CHECKPOINT, PREVIOUS):
        (run_dir / name).unlink(missing_ok=True)
