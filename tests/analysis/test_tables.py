from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from fake_results import FakeSweep, write_sweep

from lcat_analysis.cells import Cell, Row, Table, signed
from lcat_analysis.compare import compare
from lcat_analysis.load import load
from lcat_analysis.metrics import ACCURACY, find_measure
from lcat_analysis.render import FORMATS, render, to_html, to_latex, to_markdown, to_terminal
from lcat_analysis.select import select
from lcat_analysis.tables import Summary, arrange, performance_table, summarise
from lcat_core.errors import ResultsError

HOSTILE = '<script>alert("x")</script>|&_$%{}\\`*[a](b)'


def hostile_table() -> Table:
    rows = [Row((HOSTILE,), [Cell(HOSTILE, "better", True, 1.0)], True), Row(("b",), [Cell("–")])]
    return Table(
        HOSTILE,
        [HOSTILE],
        [HOSTILE],
        rows,
        [HOSTILE],
        pd.DataFrame({"model": [HOSTILE]}),
        [(HOSTILE, [HOSTILE])],
    )


def cell(table: Table, row: str, column: str) -> Cell:
    found = next(r for r in table.rows if r.labels[0] == row)
    return found.cells[table.columns.index(column)]


def test_a_cell_is_the_mean_and_the_sample_deviation_of_the_chosen_runs(selection, comparisons):
    values = selection.values("cat", ("Cora",)).to_numpy()
    text = f"{values.mean():.2f} ± {np.sqrt(((values - values.mean()) ** 2).sum() / (len(values) - 1)):.2f}"
    assert cell(performance_table(selection, comparisons), "CAT", "Cora").text == text


def test_marks_follow_the_plain_p_as_the_paper_or_holms_on_request(selection, comparisons):
    for correction, column in (("none", "p"), ("holm", "p_holm")):
        table = performance_table(selection, comparisons, correction=correction)
        for row in comparisons.table.to_dict("records"):
            name = {"cat": "CAT", "lcat": "L-CAT"}[row["model"]]
            expected = "" if row[column] >= 0.05 else "better" if row["difference"] > 0 else "worse"
            assert cell(table, name, row["dataset"]).mark == expected


def test_the_best_mean_of_each_dataset_is_underlined(selection, comparisons):
    table = performance_table(selection, comparisons)
    for i in range(len(table.columns)):
        means = [row.cells[i].sort for row in table.rows]
        best = [row.cells[i].sort for row in table.rows if row.cells[i].best]
        assert best == [max(means)]


def test_equal_means_at_two_decimals_are_both_best():
    summaries = {("gat", ("Cora",)): Summary(90.001, 0.1, 3), ("cat", ("Cora",)): Summary(90.003, 0.1, 3)}
    table = arrange(summaries, ["gat", "cat"], [("Cora",)], measure=ACCURACY, title="t")
    assert [row.cells[0].best for row in table.rows] == [True, True]


def test_a_single_model_is_not_called_best():
    table = arrange({("gat", ("Cora",)): Summary(90, 0.1, 3)}, ["gat"], [("Cora",)], measure=ACCURACY, title="t")
    assert not table.rows[0].cells[0].best


def test_the_smallest_loss_is_best():
    summaries = {("gat", ("Cora",)): Summary(0.5, 0.1, 3), ("cat", ("Cora",)): Summary(0.4, 0.1, 3)}
    table = arrange(summaries, ["gat", "cat"], [("Cora",)], measure=find_measure("loss", {}), title="t")
    assert [row.cells[0].best for row in table.rows] == [False, True]


def test_columns_are_sorted_by_degree_and_the_degrees_are_a_row(selection, comparisons):
    table = performance_table(selection, comparisons)
    assert table.columns == ["AmazonPhoto", "GitHub", "Cora", "CiteSeer"]
    assert table.header == [("Avg. degree", ["31.13", "15.33", "3.90", "2.74"])]


def test_the_footer_states_runs_split_selection_test_and_correction(selection, comparisons):
    text = " ".join(performance_table(selection, comparisons).notes)
    for part in (
        "ddof 1",
        "n = 4",
        "one split",
        "optim.base_lr",
        "val.accuracy",
        "paired t-test",
        "α = 0.05",
        "not corrected for the number of tests",
    ):
        assert part in text
    assert "Holm over all 8 tests" in " ".join(performance_table(selection, comparisons, correction="holm").notes)


def test_a_line_separates_each_baseline_and_its_models(selection, comparisons):
    table = performance_table(selection, comparisons)
    assert {row.labels[0]: row.rule for row in table.rows} == {
        "GCN": False, "GAT": True, "CAT": False, "L-CAT": False, "GATv2": True,
    }  # fmt: skip


@pytest.fixture(scope="module")
def by_heads(tmp_path_factory):
    axes = {"lcat.heads": [1, 8], "lcat.init": ["uniform", "normal"]}
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=3, axes=axes, over=(), histories=False)
    return select(load(write_sweep(tmp_path_factory.mktemp("heads"), sweep)))


def test_with_variants_the_models_are_columns_and_the_settings_rows(by_heads):
    table = performance_table(by_heads, compare(by_heads))
    assert table.label_names == ["Dataset", "heads", "init"]
    assert table.columns == ["GAT", "CAT"]
    assert [row.labels for row in table.rows] == [
        ("Cora", "1", "uniform"), ("Cora", "1", "normal"), ("Cora", "8", "uniform"), ("Cora", "8", "normal"),
    ]  # fmt: skip


def test_the_average_row_is_over_all_runs_of_a_model(by_heads):
    row = performance_table(by_heads, average=True).rows[-1]
    values = by_heads.runs.loc[by_heads.runs["model"] == "cat", "value"]
    assert row.labels == ("average", "", "")
    assert row.cells[1].text == f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"


def test_a_model_that_lacks_a_condition_has_no_average(by_heads):
    import dataclasses

    runs = by_heads.runs.query("not (model == 'cat' and `lcat.heads` == 8)")
    row = performance_table(dataclasses.replace(by_heads, runs=runs), average=True).rows[-1]
    assert row.cells[1].text == "–"


def test_diverged_runs_are_counted_in_the_footer_and_not_averaged(tmp_path):
    folder = write_sweep(
        tmp_path, FakeSweep(models=("gat",), datasets=("Cora",), seeds=3, axes={}, over=(), histories=False)
    )
    path = sorted(folder.glob("runs/*/result.json"))[0]
    result = json.loads(path.read_text())
    result["test"]["accuracy"] = float("nan")
    path.write_text(json.dumps(result))
    table = performance_table(select(load(folder)))
    assert "nan" not in table.rows[0].cells[0].text
    assert any("GAT on Cora (n = 2, 1 diverged)" in note for note in table.notes)


def test_summaries_of_one_and_of_no_finite_run_are_defined():
    assert summarise(np.array([3.0])).sd is None
    assert summarise(np.array([np.nan])).n == 0


@pytest.mark.parametrize("style", FORMATS)
def test_every_format_holds_every_number(selection, comparisons, style):
    text = render(performance_table(selection, comparisons), style)
    for mean in performance_table(selection, comparisons).data["mean"]:
        assert f"{mean:.2f}" in text or repr(mean) in text


def test_csv_is_tidy_and_exact(selection, comparisons):
    table = performance_table(selection, comparisons)
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert len(rows) == 5 * 4
    assert float(rows[0]["mean"]) == table.data["mean"].iloc[0]


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)

    def handle_data(self, data):
        self.text += data


def test_html_escapes_whatever_a_file_holds():
    parsed = Tags(to_html(hostile_table()))
    assert "script" not in parsed.found
    assert HOSTILE in parsed.text


def test_markdown_keeps_its_columns_whatever_a_file_holds():
    lines = [line for line in to_markdown(hostile_table()).splitlines() if line.startswith("| ")]
    assert len(lines) == 5
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in lines)
    assert "<script" not in "".join(lines)


def test_latex_escapes_its_special_characters():
    text = to_latex(hostile_table())
    assert r"\textbar{}\&\_\$\%\{\}\textbackslash{}`*[a](b)" in text
    assert text.count(r"\midrule") == 1  # the rule above the first row is that of the header


def test_the_terminal_splits_a_table_that_is_too_wide(selection, comparisons):
    table = performance_table(selection, comparisons)
    narrow, wide = to_terminal(table, width=60), to_terminal(table, width=200)
    body = narrow.split("\n\nMean")[0]
    assert max(len(line) for line in body.splitlines()) <= 60
    assert narrow.count("Avg. degree") == 2
    assert wide.count("Avg. degree") == 1


def test_colour_marks_better_bold_and_best_underlined():
    rows = [Row(("a",), [Cell("1.0", "better", True), Cell("2.0", "worse")])]
    text = to_terminal(Table("t", ["m"], ["x", "y"], rows, [], pd.DataFrame()), colour=True)
    assert "\x1b[1;4m1.0\x1b[0m" in text
    assert "2.0▼" in text


def test_an_unknown_format_is_refused_with_the_nearest_name(selection):
    with pytest.raises(ResultsError, match=r"unknown format: 'latx'; did you mean 'latex'"):
        render(performance_table(selection), "latx")


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.2, "+1.20"), (-0.3, "−0.30"), (-0.001, "0.00"), (0.0, "0.00"), (float("inf"), "+∞")],
)
def test_signed_numbers_have_a_real_minus_and_no_negative_zero(value, text):
    assert signed(value) == text
