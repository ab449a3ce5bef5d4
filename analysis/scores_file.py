"""Results from any table: a CSV file with one row per score, for people who ran their models elsewhere.

Columns: ``dataset``, ``model``, ``value``, and optionally ``seed``, ``split`` (several splits of one dataset) and ``avg_degree``.
Columns named like a known metric (``accuracy``, ``rocauc``, …) may replace ``value``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lcat_core.errors import ResultsError, did_you_mean
from lcat_core.metrics import METRICS

SUFFIX = ".csv"
_VALUE = "value"
_NEEDED = ("dataset", "model")
_OPTIONAL = ("seed", "split", "avg_degree")
#: Nobody says what the column ``value`` is: higher is better unless ``--better`` says otherwise.
DECLARED = {_VALUE: {"higher_is_better": True, "scale": "number"}}


def is_scores_file(path: Path) -> bool:
    """Whether a name is that of a table of scores."""
    return path.suffix.lower() == SUFFIX


def read_scores(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return one row per score, as `read_run_row` returns one per run, and what to tell the user.

    Raises:
        ResultsError: The file is not such a table; a name or number is missing; or a score is there twice.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row has more fields than the header
            table = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True, index_col=False)
    except pd.errors.ParserWarning as error:
        raise ResultsError(f"{path}: rows have more fields than the header") from error
    except (ValueError, UnicodeDecodeError) as error:  # pandas' own errors are ValueErrors
        raise ResultsError(f"{path} is not a CSV file: {error}") from error
    table.columns = [str(name).strip() for name in table.columns]
    values = [name for name in table.columns if name == _VALUE or name in METRICS]
    for name in (*_NEEDED, *([] if values else [_VALUE])):
        if name not in table:
            found = ", ".join(table.columns)
            hint = did_you_mean(name, table.columns)
            raise ResultsError(
                f"{path}: expected the columns dataset, model, seed and value; {name!r} is not among {found}{hint}"
            )
    if table.empty:
        raise ResultsError(f"{path}: no scores below the header")
    table[list(_NEEDED)] = table[list(_NEEDED)].apply(lambda column: column.str.strip())
    for name in (*_OPTIONAL, *values):
        if name in table:
            table[name] = _numbers(table[name], path, may_be_missing=name not in ("seed", "split"))
    for name in _NEEDED:
        if (table[name] == "").any():
            raise ResultsError(f"{path}, line {_line(table[name] == '')}: the {name} is missing")
    _refuse_repetitions(table, path)
    used = {*_NEEDED, *_OPTIONAL, *values}
    unused = [name for name in table.columns if name not in used]
    notes = [f"{path.name}: the columns {', '.join(unused)} are not used"] if unused else []
    return [_row(record, values, path) for record in table.to_dict("records")], notes


def _numbers(column: pd.Series, path: Path, *, may_be_missing: bool) -> pd.Series:
    numbers = pd.to_numeric(column.str.strip(), errors="coerce")
    allowed = column.str.strip().str.lower().isin(["", "nan", "na", "inf", "-inf"]) & may_be_missing
    wrong = (numbers.isna() | (numbers.abs() == math.inf)) & ~allowed
    if wrong.any():
        raise ResultsError(
            f"{path}, line {_line(wrong)}: {column.name} must be a number, got {column[wrong].iloc[0]!r:.40}"
        )
    return numbers


def _refuse_repetitions(table: pd.DataFrame, path: Path) -> None:
    keys = [name for name in ("dataset", "model", "split", "seed") if name in table]
    repeated = table.duplicated(keys)
    if repeated.any():
        shown = ", ".join(f"{name} {value}" for name, value in table.loc[repeated, keys].iloc[0].items())
        add = [name for name in ("seed", "split") if name not in table]
        hint = f"; if they are repetitions, add a column {' or '.join(add)}" if add else ""
        raise ResultsError(f"{path}, line {_line(repeated)}: a second score of {shown}{hint}")


def _line(mask: pd.Series) -> int:
    """Return the line of the first row where ``mask`` is true; the header is line 1."""
    return int(mask.to_numpy().argmax()) + 2


def _row(record: Mapping[Any, Any], values: list[str], path: Path) -> dict[str, Any]:
    metrics = {f"test.{name}": float(record[name]) for name in values}
    model, dataset = record["model"], record["dataset"]
    seed, split = _whole(record.get("seed", 0)), _whole(record.get("split", 0))
    return {
        "sweep": path.stem,
        "run_id": f"{model}-{dataset}-{split}-s{seed}",
        "model": model,
        "dataset": dataset,
        "avg_degree": float(record.get("avg_degree", math.nan)),
        "seed": seed,
        "split_seed": split,
        "seconds": math.nan,
        "diverged": tuple(name for name, value in metrics.items() if not math.isfinite(value)),
        "path": str(path),
        "metrics": metrics,
        "params": {},
        "settings": {},
    }


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value
