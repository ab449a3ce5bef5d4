"""The paper's own numbers, as data: every cell of its tables, and its datasets."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd


@cache
def published_results() -> pd.DataFrame:
    """A row a cell: table, experiment, dataset, name (our model name), mean, std, significant, best, heads,
    init…

    Means and deviations are in per cent. An empty field is an empty string.
    """
    with files("lcat_analysis").joinpath("published/results.csv").open(encoding="utf-8") as file:
        text = [
            "table",
            "experiment",
            "dataset",
            "model",
            "significant",
            "best",
            "metric",
            "heads",
            "init",
            "weights",
            "name",
        ]
        return pd.read_csv(
            file, dtype=dict.fromkeys(text, str), keep_default_na=False, na_values={"mean": "", "std": ""}
        )


@cache
def published_datasets() -> pd.DataFrame:
    """The paper's dataset statistics, indexed by name."""
    with files("lcat_analysis").joinpath("published/datasets.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, index_col="dataset")


def published_degrees() -> dict[str, float]:
    return published_datasets()["avg_degree"].to_dict()
