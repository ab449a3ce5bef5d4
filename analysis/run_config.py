"""The configuration that a run has kept, ``config.yaml``, as flat keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from lcat_analysis.errors import AnalysisError

# Where a run was written, how fast it ran and what it left behind do not make it another experiment.
IGNORED_KEYS = (
    "out_dir",
    "run_dir",
    "seed",
    "cfg_dest",
    "dataset.dir",
    "run_id",
    "num_threads",
    "accelerator",
    "devices",
    "lcat.checkpoint_seconds",
    "lcat.log_every",
    "lcat.plugins",
    "lcat.save_model",
    "lcat.save_predictions",
)
IGNORED_GROUPS = (
    "wandb",
    "share",
    "run_multiple_splits",
    "tensorboard",
    "tensorboard_each_run",
    "tensorboard_agg",
    "print",
    "view_emb",
    "params",
    "device",
)


def read_config(path: Path) -> dict[str, Any]:
    """All keys of a ``config.yaml``, flat; thousands of them are read, so by the safe loader in C where there is one."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return _flatten(yaml.load(path.read_bytes(), Loader=loader) or {})


def parameters(config: dict[str, Any]) -> dict[str, Any]:
    """Those keys of a configuration that make a run another experiment."""
    return {
        key: value
        for key, value in config.items()
        if key not in IGNORED_KEYS and key.split(".")[0] not in IGNORED_GROUPS
    }


def configured(runs: pd.DataFrame, key: str) -> object | None:
    """A key such as ``lcat.heads``, which a sweep does not vary, in the ``config.yaml`` of the first run; None if it has none."""
    path = Path(runs["path"].iloc[0]) / "config.yaml"
    try:
        return read_config(path).get(key) if path.exists() else None
    except (yaml.YAMLError, AttributeError) as error:  # AttributeError: a list or text where a mapping belongs
        raise AnalysisError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error


def _flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
