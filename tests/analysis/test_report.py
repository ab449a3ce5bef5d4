from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fake_results import FakeSweep, fail_run, write_sweep

from lcat_analysis.load import load
from lcat_analysis.report import render_report, write_report
from lcat_core.errors import ResultsError

pytestmark = pytest.mark.slow

HOSTILE = '<img src=x onerror="alert(1)"></script><script>alert(2)</script>{{ 7*7 }}'


class Page(HTMLParser):
    """Tags with their attributes, and the text outside of style and script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.raw = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.raw = tag in ("style", "script")

    def handle_endtag(self, tag):
        self.raw = False

    def handle_data(self, data):
        self.text += "" if self.raw else data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module")
def html(report_file) -> str:
    return report_file.read_text(encoding="utf-8")


def test_the_page_has_all_sections_that_the_results_allow(html):
    titles = re.findall(r"<h2>(.*?)</h2>", html)
    assert titles == [
        "Across datasets", "Results", "Tests", "Degree trend", "Learned λ", "Training curves", "Beside the paper", "Runs",
        "Configuration",
    ]  # fmt: skip


def test_the_page_needs_no_network(html):
    page = Page(html)
    for _, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


def test_the_page_shows_configuration_and_versions(html):
    assert "base: real.yaml" in html
    assert "torch-geometric" in html
    assert re.search(r"statsmodels \d", html)


def test_ids_in_the_page_are_unique(html):
    ids = [attributes["id"] for _, attributes in Page(html).tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_failures_are_listed_with_their_errors(tmp_path):
    folder = write_sweep(tmp_path, FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=3, axes={}, over=()))
    fail_run(sorted((folder / "runs").iterdir())[0], "ValueError: no such thing")
    text = Page(render_report(load(folder))).text
    assert "5 runs are finished of 6 in the grid." in text
    assert "ValueError: no such thing" in text
    assert "CAT lacks seed 0" in text


def test_everything_from_files_is_escaped(tmp_path):
    sweep = FakeSweep(
        name="hostile", models=("gat", "lcat", HOSTILE), datasets=(HOSTILE, "Cora", "GitHub"), seeds=3,
        axes={HOSTILE: [1, 2]}, over=(HOSTILE,), compare={HOSTILE: "gat"}, epochs=4,
    )  # fmt: skip
    folder = write_sweep(tmp_path, sweep)
    grid = folder / "grid.yaml"
    grid.write_text(grid.read_text().replace("name: hostile", f"name: {json.dumps(HOSTILE)}"))
    info = {"created": HOSTILE, "versions": {HOSTILE: HOSTILE}}
    (folder / "sweep.json").write_text(json.dumps(info))
    failing = next(p for p in sorted((folder / "runs").iterdir()) if p.name.startswith("gat-Cora"))
    fail_run(failing, HOSTILE)
    page = Page(render_report(load(folder)))
    assert page.count("script") == 1
    assert not any(attributes.get("onerror") for _, attributes in page.tags)
    assert not any(attributes.get("src") == "x" for _, attributes in page.tags)
    assert "{{ 7*7 }}" in page.text
    assert page.text.count(HOSTILE) > 5


def test_a_sweep_of_heads_has_an_average_row_and_no_trend(tmp_path):
    axes = {"lcat.heads": [1, 8]}
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora",), seeds=3, axes=axes, over=(), histories=False)
    html = render_report(load(write_sweep(tmp_path, sweep)))
    assert '<th scope="row">average</th>' in html
    assert 'id="trend"' not in html


def test_a_single_run_makes_a_page(tmp_path):
    sweep = FakeSweep(models=("gat",), datasets=("Mine",), seeds=1, axes={}, over=(), histories=False)
    titles = re.findall(r"<h2>(.*?)</h2>", render_report(load(write_sweep(tmp_path, sweep))))
    assert titles == ["Results", "Runs", "Configuration"]


def test_no_page_shows_a_value_that_is_not_a_number(tmp_path):
    sweep = FakeSweep(models=("gat", "cat"), datasets=("Cora", "GitHub"), seeds=2, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        result["test"]["accuracy"] = None if result["dataset"]["name"] == "Cora" else 0.5
        path.write_text(json.dumps(result))
    text = Page(render_report(load(folder))).text
    assert not re.search(r"\bnan\b", text, flags=re.I)


def test_a_sweep_without_a_finished_run_is_an_error_that_counts(tmp_path):
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), seeds=2, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/*/result.json"):
        path.unlink()
    with pytest.raises(ResultsError, match=r"no finished run in real: 0 done, 2 missing"):
        render_report(load(folder))


def test_the_file_is_written_where_asked(tmp_path):
    sweep = FakeSweep(models=("gat",), datasets=("Mine",), seeds=2, axes={}, over=(), histories=False)
    target = write_report(load(write_sweep(tmp_path, sweep)), tmp_path / "deep" / "page.html")
    assert target == tmp_path / "deep" / "page.html"
    assert Path(target).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_file_that_cannot_be_read_is_named_where_its_figure_would_be(tmp_path):
    folder = write_sweep(tmp_path, FakeSweep(models=("lcat",), datasets=("Cora",), seeds=2, axes={}, over=(), epochs=3))
    run = sorted((folder / "runs").iterdir())[0]
    (run / "test" / "stats.json").write_text('{"epoch": 0')
    (run / "lambdas.csv").write_text("")
    text = Page(render_report(load(folder))).text
    assert f"Left out: {run / 'test' / 'stats.json'}, line 1: expected a JSON object" in text
    assert f"Left out: {run / 'lambdas.csv'} is not a table of λ" in text


def test_a_figure_with_a_panel_per_dataset_shows_no_more_than_twelve(tmp_path):
    names = tuple(f"Dataset{i:02}" for i in range(30))
    sweep = FakeSweep(models=("gat", "lcat"), datasets=names, seeds=2, axes={}, over=(), epochs=2)
    html = render_report(load(write_sweep(tmp_path, sweep)))
    assert html.count("λ over training: Dataset") == 12
    assert html.count("12 of 30 datasets are shown.") == 4, "of λ and of the curves, as caption and as label"


def test_seeds_and_splits_are_counted_apart(tmp_path):
    sweep = FakeSweep(
        models=("gat",), datasets=("Cora",), seeds=2, split_seeds=(0, 1, 2), axes={}, over=(), histories=False
    )
    html = render_report(load(write_sweep(tmp_path, sweep)))
    assert "<dt>seeds</dt><dd>2</dd>" in html
    assert "<dt>splits</dt><dd>3</dd>" in html
    assert "1 model on 1 dataset," in html


def test_the_page_opens_with_two_sentences_then_the_forest_plot_then_the_tables(html):
    opening = html[html.index('<div class="answer">') :]
    sentences = re.findall(r"<p>(.*?)</p>", opening[: opening.index("</div>")])
    assert len(sentences) == 2
    assert sentences[0].startswith("Over 4 datasets, L-CAT is better than GAT on ")
    assert opening.index('id="across"') < opening.index("Diamond: pooled estimate") < opening.index('id="table"')


def test_a_report_tests_splits_if_asked(tmp_path):
    sweep = FakeSweep(
        models=("gat", "cat"),
        datasets=("Cora", "GitHub"),
        seeds=2,
        split_seeds=(0, 1, 2),
        axes={},
        over=(),
        histories=False,
    )
    text = render_report(load(write_sweep(tmp_path, sweep)), unit="split")
    assert "corrected resampled t-test (Nadeau and Bengio)" in text
    assert "split by split" in text
