"""Checkpoints: the newest one, and the one before it in case the newest is damaged."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from graphgym_lcat.data.tensor_file import DamagedFile, load_tensors
from graphgym_lcat.gym.history import find_loss
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
    """Load the newest usable checkpoint of a run with these settings; None if there is none, so that the run starts again.

    A checkpoint cannot be used if it is damaged, or if the files that grew with it have become shorter since.

    Raises:
        SettingsError: The checkpoint was written with other settings, or does not say with which.
    """
    found = [path for name in (_FRESH, CHECKPOINT, PREVIOUS) if (path := run_dir / name).is_file()]
    for path in found:
        try:
            checkpoint = load_tensors(path)
        except DamagedFile as damage:
            log.warning("%s and is not used", damage)
            continue
        _check_settings(run_dir, checkpoint, settings)
        loss = find_loss(run_dir, checkpoint.get("positions"))
        if loss is None:
            return checkpoint
        log.warning("%s, so %s is not used", loss, path.name)
    if found:
        log.warning("no usable checkpoint is left in %s: the run starts again", run_dir)
    return None


def _check_settings(run_dir: Path, checkpoint: Any, settings: Mapping[str, Any]) -> None:
    parts = checkpoint if isinstance(checkpoint, dict) else {}
    if not isinstance(parts.get("settings"), dict) or not isinstance(parts.get("threads"), int):
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


def unusable(run_dir: Path, reason: str) -> SettingsError:
    """Return the error for a checkpoint that another version has written."""
    return SettingsError(
        f"the checkpoint in {run_dir} cannot be used by this version ({reason}); use the version that wrote it, "
        "or delete the checkpoint to start the run again"
    )


def remove_checkpoints(run_dir: Path) -> None:
    """Delete the checkpoints of a finished run."""
    for name in (_FRESH, CHECKPOINT, PREVIOUS):
        (run_dir / name).unlink(missing_ok=True)
