"""The paper's own numbers, as data: every cell of its tables."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

from lcat_core.datasets import SIZES

_NUMBERS = ("mean", "std", "runs")
#: The one average degree that the paper prints differently from edges / nodes.
_PRINTED_DEGREES = {"ogbn-mag": 18.61}


@cache
def published_results() -> pd.DataFrame:
    """Return one row per cell: table, experiment, dataset, name (our name of the model), mean, std, significant, best, heads, …

    Means and deviations are in per cent. Text that the paper does not print is empty.
    """
    with files("lcat_analysis").joinpath("published/results.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, dtype=str, keep_default_na=False)
    return table.assign(**{name: pd.to_numeric(table[name]) for name in _NUMBERS})


@cache
def published_cells() -> frozenset[tuple[str, str]]:
    """Return the models and datasets for which the paper has a number."""
    table = published_results()
    return frozenset(zip(table["name"], table["dataset"], strict=True))


def published_degrees() -> dict[str, float]:
    """Return the average degree of every dataset of the paper, as it prints them: to two decimals."""
    return {name: round(size.avg_degree, 2) for name, size in SIZES.items()} | _PRINTED_DEGREES
