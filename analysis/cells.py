"""The parts of a table, whatever it is about: cells, rows, and how numbers are written in them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pandas as pd

MISSING = "–"
#: How tables write the keys of hyperparameters that the paper's tables name.
KEY_NAMES = {"lcat.heads": "heads", "lcat.init": "init", "lcat.score_weights": "score weights"}


@dataclass
class Cell:
    """One field: its text, its mark (``better``, ``worse`` or nothing), and the number that it is sorted by."""

    text: str
    mark: str = ""
    best: bool = False
    sort: float | None = None


@dataclass
class Row:
    """One row; ``rule`` draws a line above it."""

    labels: tuple[str, ...]
    cells: list[Cell]
    rule: bool = False


@dataclass
class Table:
    """What a renderer needs.

    Attributes:
        label_names: Headers of the columns with the labels of the rows.
        columns: Headers of the other columns.
        notes: Sentences below the table.
        data: The same content with full precision, for CSV.
        header: Further rows of the header: a label and its texts.
        left: Columns of words, aligned to the left.
        paper_columns: The columns that a paper has room for; empty for all.
    """

    title: str
    label_names: list[str]
    columns: list[str]
    rows: list[Row]
    notes: list[str]
    data: pd.DataFrame
    header: list[tuple[str, list[str]]] = field(default_factory=list)
    left: tuple[str, ...] = ()
    paper_columns: tuple[str, ...] = ()


def key_name(key: str) -> str:
    """Return how a table writes the key of a hyperparameter."""
    return KEY_NAMES.get(key, key)


def show(value: object) -> str:
    """Format the value of a hyperparameter: ``0.01``, ``uniform``."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def signed(value: float, digits: int = 2) -> str:
    """``+1.20``, ``−0.30``, ``0.00``, ``+∞``: with a real minus, and never −0.00."""
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def signed_cell(value: float | None, digits: int = 2) -> Cell:
    """A signed number; a dash for None and NaN."""
    return Cell(MISSING) if value is None or math.isnan(value) else Cell(signed(value, digits), sort=value)


def number_cell(value: float | None, digits: int = 2) -> Cell:
    """A number without a sign; a dash for None and NaN."""
    if value is None or math.isnan(value):
        return Cell(MISSING)
    return Cell(f"{value:.{digits}f}".replace("-", "−"), sort=value)


def p_cell(p: float | None) -> Cell:
    """A p-value with three decimals, or ``<0.001``."""
    if p is None or math.isnan(p):
        return Cell(MISSING)
    return Cell("<0.001" if p < 0.001 else f"{p:.3f}", sort=p)


def p_text(p: float) -> str:
    """``p = 0.012``, ``p < 0.001``; two decimals are enough for a large one."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def interval_cell(low: float | None, high: float | None, digits: int = 2) -> Cell:
    """An interval, sorted by its lower end."""
    if low is None or high is None or math.isnan(low):
        return Cell(MISSING)
    return Cell(f"[{signed(low, digits)}, {signed(high, digits)}]", sort=low)


def mean_sd_cell(mean: float, sd: float | None) -> Cell:
    """``94.02 ± 0.33``, or the mean alone if the deviation is unknown."""
    known = sd is not None and math.isfinite(sd)
    return Cell(f"{mean:.2f} ± {sd:.2f}" if known else f"{mean:.2f}", sort=mean)
