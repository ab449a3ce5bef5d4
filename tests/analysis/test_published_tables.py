"""The paper's tables, laid out and written by the code that writes ours.

To renew the golden files after a change that is meant: ``python tests/analysis/test_published_tables.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lcat_analysis.paper import published_table
from lcat_analysis.published import published_degrees, published_results
from lcat_analysis.render import render, to_terminal
from lcat_core.errors import ResultsError

GOLDEN = Path(__file__).parent / "golden"
TABLES = {
    "real": ("tabapp:performance_node_small1", "tabapp:performance_node_small2"),
    "arxiv": ("tab:results-arxiv-full",),
    "init": ("tab:results-proteins-init",),
    "ogb": ("tab:performance_ogb",),
}
SUFFIXES = {"markdown": "md", "latex": "tex", "csv": "csv", "html": "html", "terminal": "txt"}
CASES = [(name, style) for name in TABLES for style in SUFFIXES]


def rendered(name: str, style: str) -> str:
    table = published_table(*TABLES[name])
    return to_terminal(table, width=150) if style == "terminal" else render(table, style)


@pytest.mark.parametrize(("name", "style"), CASES)
def test_a_published_table_is_written_as_on_record(name, style):
    assert rendered(name, style) == (GOLDEN / f"{name}.{SUFFIXES[style]}").read_text(encoding="utf-8")


def test_every_published_cell_is_in_its_table_with_its_mark():
    results = published_results()
    for name in results["table"].unique():
        if name.startswith("inset:"):
            continue
        table = published_table(name)
        own = results[(results["table"] == name) & (results["heads"] != "all")]
        assert len(table.data) == len(own)
        assert sorted(table.data["mark"]) == sorted(own["significant"])
        assert sorted(table.data["mean"]) == sorted(own["mean"])


def test_the_underlined_cells_are_the_published_ones_where_the_paper_underlines_the_maximum():
    """In four tables of PNA and GCNII the paper underlines a cell that is not the maximum."""
    wrong_in_paper = {f"tabapp:performance_{name}" for name in ("pna_3", "pna_4", "gcn2_2", "gcn2_4")}
    results = published_results()
    tables = [t for t in results["table"].unique() if not t.startswith("inset:") and t not in wrong_in_paper]
    assert len(tables) == 13
    for name in tables:
        own = results[(results["table"] == name) & (results["heads"] != "all")]
        keys = ["name", "dataset", *(k for k in ("heads", "init") if own[k].nunique() > 1)]
        published = {tuple(row) for row in own.loc[own["best"] == "best", keys].itertuples(index=False)}
        data = published_table(name).data.rename(columns={"model": "name"})
        ours = {tuple(row) for row in data.loc[data["best"], keys].itertuples(index=False)}
        assert ours == published, name


def test_an_unknown_table_is_refused_with_the_nearest_name():
    with pytest.raises(ResultsError, match=r"did you mean 'tab:performance_ogb'"):
        published_table("tab:performance_obg")


def test_the_published_data_are_complete():
    assert len(published_results()) == 548
    assert set(published_results()["dataset"]) == set(published_degrees())


if __name__ == "__main__":
    for name, style in CASES:
        (GOLDEN / f"{name}.{SUFFIXES[style]}").write_text(rendered(name, style), encoding="utf-8")
