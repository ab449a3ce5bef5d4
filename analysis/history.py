"""The long files of a run, read only on request: the metrics of every epoch, and λ over training."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pandas as pd

from lcat_core.errors import ResultsError
from lcat_core.files import MAX_LINES_BYTES, parse_json, read_bytes
from lcat_core.run_folder import LAMBDAS, STATS

LAMBDA_COLUMNS = ["epoch", "layer", "head", "lambda1", "lambda2"]


def read_history(run_path: str | os.PathLike[str], split: str) -> pd.DataFrame:
    """Return every epoch of one run on one split (``train``, ``val`` or ``test``); empty if it was not logged."""
    return read_stats(Path(run_path) / split / STATS)


def read_stats(path: Path) -> pd.DataFrame:
    """Read GraphGym's ``stats.json``, one JSON object per line; if an epoch has several lines, the last one counts.

    Stock GraphGym writes a check of the untrained network as another epoch 0, and repeats epochs when it resumes.
    """
    table = pd.DataFrame(_read_json_lines(path))
    return table.drop_duplicates("epoch", keep="last", ignore_index=True) if "epoch" in table else table


def read_lambdas(run_path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read ``lambdas.csv`` of one run: epoch, layer, head, lambda1, lambda2; empty if the run has none."""
    path = Path(run_path) / LAMBDAS
    content = _read_if_present(path)
    if content is None:
        return pd.DataFrame()
    try:
        return pd.read_csv(io.BytesIO(content))[LAMBDA_COLUMNS]
    except (ValueError, KeyError) as error:  # the parsing errors of pandas are ValueErrors
        raise ResultsError(f"{path} is not a table of λ: {error}") from error


def _read_json_lines(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(io.BytesIO(_read_if_present(path) or b""), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            text = line[:60].decode(errors="replace")
            raise ResultsError(f"{path}, line {number}: expected a JSON object, got {text!r}")
        rows.append(row)
    return rows


def _read_if_present(path: Path) -> bytes | None:
    try:
        return read_bytes(path, MAX_LINES_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
