"""The name of a run: equal settings, equal name, on every machine.

The name says model, dataset and seed, and ends in a hash of the settings that differ from the defaults. Moving a
results folder, or a new version that adds a key with a default, therefore renames no run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

#: Keys, and prefixes of keys, that change where or how a run is made but not what it computes.
NOT_PART_OF_A_RUN = (
    "out_dir",
    "run_dir",
    "cfg_dest",
    "dataset.dir",
    "num_threads",
    "num_workers",
    "accelerator",
    "devices",
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


def run_id(model: str, settings: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """``<model>-<dataset>-s<seed>-<10 hex>`` of a run with these flat settings."""
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


def counts(key: str) -> bool:
    """Whether a key changes what a run computes."""
    return not key.startswith(NOT_PART_OF_A_RUN)


def _canonical(value: object) -> object:
    """One spelling of equal values: 1 for 1.0, a list for a tuple."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return value


def _same(value: object, default: object) -> bool:
    """Equality that keeps true apart from 1."""
    return value == default and isinstance(value, bool) == isinstance(default, bool)


def _safe(name: object) -> str:
    return re.sub(r"[^A-Za-z0-9._+]+", "_", str(name)).strip("._") or "_"
