"""The long files of a run, read only when somebody asks: every epoch's metrics, and λ over training."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd

from lcat_analysis.errors import AnalysisError

LAMBDA_COLUMNS = ("epoch", "layer", "head", "lambda1", "lambda2")


def read_history(run_path: str | os.PathLike[str], split: str) -> pd.DataFrame:
    """Every epoch of one run on one split (``train``, ``val`` or ``test``); empty when it was not logged."""
    return read_stats(Path(run_path) / split / "stats.json")


def read_stats(path: Path) -> pd.DataFrame:
    """GraphGym's ``stats.json``: one JSON object a line; of several lines for one epoch the last counts.

    Stock GraphGym writes an untrained check of the validation set as one more epoch 0, and repeats epochs
    when it resumes.
    """
    table = pd.DataFrame(read_json_lines(path) if path.exists() else [])
    return table.drop_duplicates("epoch", keep="last", ignore_index=True) if "epoch" in table else table


def read_lambdas(run_path: str | os.PathLike[str]) -> pd.DataFrame:
    """``lambdas.csv`` of one run: epoch, layer, head, lambda1, lambda2; empty when the run has none."""
    path = Path(run_path) / "lambdas.csv"
    if not path.exists():
        return pd.DataFrame()
    try:
        return pd.read_csv(path)[list(LAMBDA_COLUMNS)]
    except (ValueError, KeyError) as error:  # pandas' own errors of parsing are ValueErrors
        raise AnalysisError(f"{path} is not a table of λ: {error}") from error


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """A file of one JSON object a line."""
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:  # neither JSON nor, perhaps, UTF-8
                row = None
            if not isinstance(row, dict):
                text = line[:60].decode(errors="replace")
                raise AnalysisError(f"{path}, line {number}: expected a JSON object, got {text!r}")
            rows.append(row)
    return rows
