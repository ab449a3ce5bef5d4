"""Tables in LaTeX: what TeX would misread is escaped, and a real LaTeX compiles them where there is one."""

from __future__ import annotations

import shutil
import subprocess

import pandas as pd
import pytest

from lcat_analysis.cells import Cell, Row, Table
from lcat_analysis.comparison_table import comparison_table
from lcat_analysis.render import latex, to_latex
from lcat_analysis.tables import performance_table

LATEX = shutil.which("pdflatex")


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


@pytest.mark.skipif(
    LATEX is None, reason="needs pdflatex: apt-get install texlive-latex-recommended texlive-fonts-recommended"
)
def test_a_real_latex_compiles_the_tables(tmp_path, selection, comparisons):
    tables = [table("[0, 1]", "*", "a_b & c"), performance_table(selection, comparisons), comparison_table(comparisons)]
    body = "\n".join(map(to_latex, tables))
    text = (
        r"\documentclass{article}\usepackage[utf8]{inputenc}\usepackage{booktabs,amssymb}\begin{document}"
        + body
        + r"\end{document}"
    )
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    command = [LATEX, "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
