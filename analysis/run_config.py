"""Settings that a sweep does not vary, from the configuration that a run has kept."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import yaml

from lcat_analysis.errors import AnalysisError


def configured(runs: pd.DataFrame, key: str) -> object | None:
    """A key such as ``lcat.heads`` in the ``config.yaml`` of the first run; None if it has none."""
    path = Path(runs["path"].iloc[0]) / "config.yaml"
    try:
        tree = yaml.safe_load(path.read_bytes()) if path.exists() else None
    except yaml.YAMLError as error:
        raise AnalysisError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree
