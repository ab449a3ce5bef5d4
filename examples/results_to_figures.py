"""Turn a results folder into the numbers and figures of a paper, in Python, as `lcat table`, `compare`, `trend` and `plot` do.

python examples/results_to_figures.py results/demo figures
"""

import sys
from pathlib import Path

from lcat_analysis.compare import compare
from lcat_analysis.comparison_table import comparison_table
from lcat_analysis.curves import curves_figure
from lcat_analysis.figures import save
from lcat_analysis.lambdas import distribution_figure
from lcat_analysis.load import load
from lcat_analysis.render import render
from lcat_analysis.select import select
from lcat_analysis.tables import performance_table
from lcat_analysis.trend import trend
from lcat_analysis.trend_figure import trend_figure

results = load(sys.argv[1])
folder = Path(sys.argv[2])
print(f"finished runs: {len(results.runs)}; runs without a usable result: {len(results.problems)}")

selection = select(results)  # by validation; never by the test set
comparisons = compare(selection, results.grid["compare"])
print(render(performance_table(selection, comparisons), "markdown"))

folder.mkdir(parents=True, exist_ok=True)
(folder / "table.tex").write_text(render(performance_table(selection, comparisons), "latex"), encoding="utf-8")
(folder / "tests.csv").write_text(render(comparison_table(comparisons), "csv"), encoding="utf-8")
save(trend_figure(trend(comparisons, selection)), folder, "trend", formats=("pdf",))
save(curves_figure(selection), folder, "curves", formats=("pdf",))
save(distribution_figure(selection), folder, "lambdas", formats=("pdf",))

# `results.runs` is a plain pandas table with one row per run, for everything else.
print(results.runs.groupby("model")["test.accuracy"].mean().round(3).to_string())
