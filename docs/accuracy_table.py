"""The accuracy table of the README: our means beside the published ones, for every dataset of the paper."""

from __future__ import annotations

import pandas as pd
from archives import REBUILT, REBUILT_NOTE, load_runs, marked

from lcat_analysis.published import published_degrees, published_results
from lcat_analysis.table_order import model_order
from lcat_core.models import display_name

BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"
SWEEPS = ("real", "reproduction")


def accuracy_table(runs: pd.DataFrame) -> str:
    """Return datasets × models in Markdown: our mean ± sd over seeds and splits (number of runs), and the paper's mean below.

    Only splits on which all models of a dataset were run count, so that a row compares models, not splits.
    """
    runs = runs.groupby("dataset", group_keys=False)[list(runs.columns)].apply(_on_common_splits)
    published = published_results().query("experiment == 'real'").set_index(["name", "dataset"])["mean"]
    degrees = published_degrees()
    models = model_order(runs["model"].unique())
    lines = [["dataset", "degree", *map(display_name, models)], [":---", "---:", *["---:"] * len(models)]]
    for dataset in sorted(runs["dataset"].unique(), key=lambda name: -degrees[name]):
        cells = (_cell(runs, published, model, dataset) for model in models)
        lines.append([marked(dataset), f"{degrees[dataset]:.1f}", *cells])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{table}\n\n{REBUILT_NOTE}" if set(REBUILT) & set(runs["dataset"]) else table


def _on_common_splits(runs: pd.DataFrame) -> pd.DataFrame:
    models = runs.groupby("split_seed")["model"].nunique()
    return runs[runs["split_seed"].isin(models.index[models == runs["model"].nunique()])]


def _cell(runs: pd.DataFrame, published: pd.Series, model: str, dataset: str) -> str:
    values = 100 * runs.loc[(runs["model"] == model) & (runs["dataset"] == dataset), "test.accuracy"]
    if values.empty:
        return f"–<br>*{published[model, dataset]:.2f}*"
    spread = f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""
    return f"{values.mean():.2f}{spread} ({len(values)})<br>*{published[model, dataset]:.2f}*"


def fill(readme: str) -> str:
    """Return the README with the table of the recorded runs between its two comments."""
    table = accuracy_table(load_runs(*SWEEPS))
    return readme[: readme.index(BEGIN) + len(BEGIN)] + f"\n{table}\n" + readme[readme.index(END) :]
