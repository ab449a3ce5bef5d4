"""The configuration of a run, ``config.yaml``, as flat settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from lcat_core.errors import ResultsError
from lcat_core.identity import distinguishes_experiments
from lcat_core.run_folder import CONFIG
from lcat_core.settings import Settings, flatten
from lcat_core.strict_yaml import read_generated_yaml

#: Settings that number the repetitions of one experiment.
REPETITIONS = ("seed", "dataset.split_seed", "dataset.split_index")


def read_config(path: Path) -> Settings:
    """Read all settings of a ``config.yaml``.

    Raises:
        ResultsError: The file cannot be read, is not valid YAML, or not a mapping.
    """
    try:
        tree = read_generated_yaml(path)
    except ValueError as error:
        raise ResultsError(f"{path} is {error}") from error
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ResultsError(f"{path} must hold a mapping, got {tree!r:.80}")
    return flatten(tree, str(path), ResultsError)


def experiment_settings(config: Settings) -> Settings:
    """Return the settings that make a run another experiment: not its seed, where it was written, or how fast it ran."""
    return {key: value for key, value in config.items() if distinguishes_experiments(key)}


def configured_value(runs: pd.DataFrame, key: str) -> Any | None:
    """Look up a setting that a sweep does not vary, such as ``lcat.heads``, in the configuration of the first run."""
    path = Path(runs["path"].iloc[0]) / CONFIG
    return read_config(path).get(key) if path.exists() else None
