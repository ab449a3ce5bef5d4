"""Tables in LaTeX: what TeX would misread is escaped, and a real LaTeX compiles them where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess

import pandas as pd
import pytest

from lcat_analysis.across import published_across
from lcat_analysis.cells import Cell, Row, Table
from lcat_analysis.comparison_table import comparison_table
from lcat_analysis.latex import latex, to_latex, two_lines
from lcat_analysis.paper import published_table
from lcat_analysis.rank_tables import pairs_table, posthoc_table, ranks_table
from lcat_analysis.ranking import published_ranking
from lcat_analysis.seed_plan import plan_table
from lcat_analysis.tables import performance_table
from lcat_analysis.trend import published_trend
from lcat_analysis.trend_table import trend_table

LATEX = shutil.which("pdflatex")
PUBLISHED = ("tabapp:performance_node_small1", "tabapp:performance_node_small2")


def table(*labels: str) -> Table:
    rows = [Row((label,), [Cell("<0.001"), Cell("90.00 ± 0.10 †", "better", True)]) for label in labels]
    return Table("A <b> | title", ["[name]"], ["d_z", "*"], rows, ["d_z: x > y."], pd.DataFrame())


def test_less_and_greater_are_mathematics():
    assert latex("<0.001 > |x|") == r"$<$0.001 $>$ \textbar{}x\textbar{}"


def test_the_effect_size_is_mathematics():
    assert latex("d_z: mean difference") == "$d_z$: mean difference"
    assert latex("an end_zone") == r"an end\_zone"


@pytest.mark.parametrize("label", ["[0, 1]", "*starred"])
def test_a_row_may_begin_with_what_would_be_an_option_of_the_line_break(label):
    lines = to_latex(table("first", label)).splitlines()
    before = lines.index(next(line for line in lines if line.startswith("first")))
    assert lines[before + 1].startswith("{}" + label)
    assert next(line for line in lines if "name]" in line).startswith("{}[name]")


def test_long_names_take_two_lines():
    assert two_lines("AmazonComputers") == ["Amazon", "Computers"]
    assert two_lines("FacebookPagePage") == ["Facebook", "PagePage"]
    assert two_lines("ogbn-arxiv") == ["ogbn-", "arxiv"]
    assert two_lines("Cora") == ["Cora"]


def test_columns_split_a_table_into_blocks_of_one_float():
    text = to_latex(published_table(*PUBLISHED), 6)
    assert text.count(r"\begin{table*}") == text.count(r"\label{tab:") == 1
    tabulars = re.findall(r"\\begin{tabular}{@{}(.*?)@{}}", text)
    assert tabulars == ["lcccccc", "lccccc"]


def test_the_methods_are_a_note_and_not_in_the_caption(comparisons):
    text = to_latex(comparison_table(comparisons))
    caption = re.search(r"\\caption{(.*)}\n", text)[1]
    assert caption == "Paired comparisons, test accuracy (\\%)."
    assert text.index("Verdict: better or worse") > text.index(r"\end{tabular}")


def test_an_option_keeps_its_two_hyphens():
    assert latex("use --unit split – or not") == "use -{}-unit split -- or not"


def test_a_table_longer_than_a_page_continues():
    long = to_latex(table(*(f"row {i}" for i in range(60))))
    assert long.count(r"\begin{table*}") == 2
    assert long.count("(continued)") == long.count(r"\label{") == 1


@pytest.mark.skipif(
    LATEX is None, reason="needs pdflatex: apt-get install texlive-latex-recommended texlive-fonts-recommended"
)
def test_a_real_latex_compiles_the_tables_without_an_overfull_box(tmp_path, selection, comparisons):
    """On a page of ICLR: 5.5 inches of text."""
    across, ranking = published_across(), published_ranking()
    tables = [table("[0, 1]", "*", "a_b & c"), performance_table(selection, comparisons), comparison_table(comparisons)]
    tables += [pairs_table(across), ranks_table(ranking), posthoc_table(ranking), trend_table(published_trend())]
    tables += [plan_table(comparisons), published_table(*PUBLISHED)]
    body = "\n".join([*map(to_latex, tables), to_latex(published_table(*PUBLISHED), 6)])
    text = (
        r"\documentclass{article}\usepackage[utf8]{inputenc}\usepackage{booktabs,amssymb}"
        r"\usepackage[textwidth=5.5in,textheight=9in]{geometry}\begin{document}" + body + r"\end{document}"
    )
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    command = [LATEX, "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout, re.findall("Overfull.*", done.stdout)
