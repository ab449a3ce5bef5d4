"""The name of a run: equal settings give equal names, on every machine.

A name states model, dataset and seed, and ends in a hash of the settings that differ from the defaults. Moving a results
folder, or a new version that adds a key with a default, therefore renames no run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

#: Prefixes of keys that change where or how a run is executed, but not what it computes.
WHERE_AND_HOW = (
    "out_dir",
    "run_dir",
    "cfg_dest",
    "dataset.dir",
    "num_threads",
    "num_workers",
    "gpu_mem",
    "print",
    "tensorboard_",
    "lcat.log_every",
    "lcat.checkpoint_seconds",
    "lcat.plugins",
    "train.ckpt_period",
    "train.ckpt_clean",
    "train.enable_ckpt",
    "train.auto_resume",
)
#: The device does not name a run, but a checkpoint resumes only on the kind of device that wrote it.
DEVICE = ("accelerator", "devices")
#: What a run leaves behind, and its seed: runs that differ only in these repeat the same experiment.
REPEATS = ("seed", "run_id", "lcat.save_model", "lcat.save_predictions")
#: Groups that only stock GraphGym and GraphGPS have, and that do not change what is computed.
STOCK_GROUPS = ("wandb", "share", "run_multiple_splits", "tensorboard", "view_emb", "params", "device")


def counts(key: str) -> bool:
    """Whether a key changes what a run computes, and so belongs to its name."""
    return not key.startswith(WHERE_AND_HOW + DEVICE)


def may_change_on_resume(key: str) -> bool:
    """Whether a run may resume from a checkpoint that was written with another value of this key."""
    return key.startswith(WHERE_AND_HOW)


def distinguishes_experiments(key: str) -> bool:
    """Whether runs with different values of this key must not be averaged."""
    return counts(key) and key not in REPEATS and key.split(".")[0] not in STOCK_GROUPS


def run_id(model: str, settings: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """Return ``<model>-<dataset>-s<seed>-<10 hex>`` for flat settings."""
    canonical = {key: _canonical(value) for key, value in settings.items() if counts(key)}
    changed = {
        key: value
        for key, value in canonical.items()
        if key not in defaults or not _same(value, _canonical(defaults[key]))
    }
    text = json.dumps(changed, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    dataset = settings.get("dataset.name", defaults.get("dataset.name", ""))
    seed = settings.get("seed", defaults.get("seed", 0))
    return f"{_safe(model)}-{_safe(dataset)}-s{seed}-{digest}"


def _canonical(value: object) -> object:
    """Return one spelling for equal values: 1 for 1.0, a list for a tuple."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return value


def _same(value: object, default: object) -> bool:
    """Compare for equality, but distinguish true from 1."""
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _safe(name: object) -> str:
    return re.sub(r"[^A-Za-z0-9._+]+", "_", str(name)).strip("._") or "_"
