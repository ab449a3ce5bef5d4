"""The configuration of a run, ``config.yaml``, as flat settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from lcat_core.errors import ResultsError
from lcat_core.identity import distinguishes_experiments
from lcat_core.run_folder import CONFIG, RESULT, load_result
from lcat_core.settings import Settings, flatten
from lcat_core.strict_yaml import read_generated_yaml

#: Settings that number the repetitions of one experiment.
REPETITIONS = ("seed", "dataset.split_seed", "dataset.split_index")

#: Of settings that distinguish published numbers: what a run uses that does not record them.
DEFAULTS = {"lcat.init": "uniform", "lcat.score_weights": "shared"}


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


def split_text(complete: Settings) -> str | None:
    """Describe how nodes were split, such as ``random 70/15/15``; None if the settings do not say it."""
    mode, ratios = complete.get("dataset.split_mode"), complete.get("dataset.split")
    if mode == "random" and ratios:
        return f"random {'/'.join(f'{100 * ratio:.4g}' for ratio in ratios)}"
    return f"from {complete.get('dataset.split_file')}" if mode == "file" else mode


def configured_value(runs: pd.DataFrame, key: str) -> Any | None:
    """Look up a setting that a sweep does not vary, such as ``lcat.heads``, for the first run.

    A run from an archive has no configuration file. Its result records the settings that differ from the defaults.
    """
    folder = Path(runs["path"].iloc[0])
    if (folder / CONFIG).exists():
        return read_config(folder / CONFIG).get(key)
    if not (folder / RESULT).exists():
        return None
    return load_result(folder).settings.get(key, DEFAULTS.get(key))
