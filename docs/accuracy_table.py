"""Fill the accuracy table of the README from docs/reproduction.csv and the paper's published means.

python docs/accuracy_table.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lcat_analysis.published import published_degrees, published_results
from lcat_analysis.table_order import model_order
from lcat_core.models import display_name

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"


def accuracy_table(runs: pd.DataFrame) -> str:
    """Return models × datasets in Markdown: our mean ± sd over seeds and splits (number of runs), and the paper's mean below.

    Only splits on which all models of a dataset were run count, so that a column compares models, not splits.
    """
    runs = runs.groupby("dataset", group_keys=False)[list(runs.columns)].apply(_on_common_splits)
    published = published_results().query("experiment == 'real'").set_index(["name", "dataset"])["mean"]
    degrees = published_degrees()
    datasets = sorted(runs["dataset"].unique(), key=lambda name: -degrees[name])
    lines = [["model", *datasets], [":---", *["---:"] * len(datasets)]]
    for model in model_order(runs["model"].unique()):
        cells = (_cell(runs, published, model, dataset) for dataset in datasets)
        lines.append([display_name(model), *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _on_common_splits(runs: pd.DataFrame) -> pd.DataFrame:
    models = runs.groupby("split_seed")["model"].nunique()
    return runs[runs["split_seed"].isin(models.index[models == runs["model"].nunique()])]


def _cell(runs: pd.DataFrame, published: pd.Series, model: str, dataset: str) -> str:
    values = 100 * runs.loc[(runs["model"] == model) & (runs["dataset"] == dataset), "test.accuracy"]
    if values.empty:
        return "–"
    spread = f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""
    return f"{values.mean():.2f}{spread} ({len(values)})<br>*{published[model, dataset]:.2f}*"


def fill(readme: str, table: str) -> str:
    """Return the README with this table between its two comments."""
    return readme[: readme.index(BEGIN) + len(BEGIN)] + f"\n{table}\n" + readme[readme.index(END) :]


def main() -> None:
    path = ROOT / "README.md"
    table = accuracy_table(pd.read_csv(ROOT / "docs/reproduction.csv"))
    path.write_text(fill(path.read_text(encoding="utf-8"), table), encoding="utf-8")
    print("wrote the accuracy table of README.md")


if __name__ == "__main__":
    main()
