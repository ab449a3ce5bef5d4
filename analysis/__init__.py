"""Tables, tests and figures from the files that runs write. Imports neither torch nor GraphGym.

from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_analysis.compare import compare
from lcat_analysis.tables import performance_table
from lcat_analysis.render import render

results = load("results/real")              # a pandas table with one row per run, and what is missing
selection = select(results)                 # by validation; never by the test set
comparisons = compare(selection, results.grid["compare"])
print(render(performance_table(selection, comparisons), "markdown"))
"""
