"""Which settings distinguish the experiments of runs that are read together, from one sweep or several.

A grid declares what its sweep varies. What else differs between runs, such as the number of epochs of two sweeps, is known only
from their settings. It must become a column as well; otherwise different experiments would be averaged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lcat_analysis.run_config import REPETITIONS, read_config
from lcat_core.errors import ResultsError
from lcat_core.run_folder import CONFIG
from lcat_core.settings import Settings


def distinguishing_settings(runs: pd.DataFrame, params: pd.DataFrame, settings: Sequence[Settings]) -> pd.DataFrame:
    """Return ``params`` completed: axes of one sweep that another sweep fixes, and undeclared settings that differ.

    Args:
        runs: One row per run, with the columns ``sweep``, ``model``, ``dataset`` and ``path``.
        params: What the grids vary, by flat key; NaN where a run's grid does not set the key.
        settings: For each run, the settings that differ from the defaults and distinguish experiments.
    """
    others = pd.DataFrame([{key: groupable(value) for key, value in own.items()} for own in settings], index=runs.index)
    params = params.copy()
    for key in params.columns:
        recorded = others[key] if key in others else pd.Series(None, runs.index, dtype=object)
        for _, rows in runs.groupby("sweep"):
            if params.loc[rows.index, key].isna().all():
                params[key] = params[key].astype(object)
                params.loc[rows.index, key] = _with_default(recorded.loc[rows.index], rows["path"], key)
    undeclared = [key for key in others if key not in params and key not in REPETITIONS]
    varying = _varying_within_cells(runs, params, others[undeclared])
    return params.assign(**{key: _with_default_by_sweep(others[key], runs, key) for key in varying})


def groupable(value: Any) -> Any:
    """Return a hyperparameter as something that a table can be grouped by."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def _varying_within_cells(runs: pd.DataFrame, params: pd.DataFrame, others: pd.DataFrame) -> list[str]:
    """Return the settings that differ between runs with the same model, dataset and parameters."""
    candidates = [key for key in others.columns if others[key].nunique(dropna=False) > 1]
    if not candidates:
        return []
    cells = pd.concat([runs[["model", "dataset"]], params], axis=1)
    cell = cells.groupby(list(cells.columns), dropna=False, sort=False).ngroup()
    return [key for key in candidates if others[key].groupby(cell).nunique(dropna=False).max() > 1]


def _with_default_by_sweep(recorded: pd.Series, runs: pd.DataFrame, key: str) -> pd.Series:
    parts = [
        _with_default(recorded.loc[rows.index], rows["path"], key) for _, rows in runs.groupby("sweep", sort=False)
    ]
    return pd.concat(parts).reindex(runs.index)


def _with_default(recorded: pd.Series, paths: pd.Series, key: str) -> pd.Series:
    """Fill in the default of a key, which only the configuration of a run records; unknown if there is none."""
    missing = recorded.isna()
    if not missing.any():
        return recorded
    path = Path(paths[missing].iloc[0]) / CONFIG
    try:
        default = groupable(read_config(path).get(key)) if path.exists() else None
    except ResultsError:  # reading the settings is not worth losing the run
        default = None
    return recorded.astype(object).where(~missing, default)
