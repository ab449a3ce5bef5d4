from __future__ import annotations

from pathlib import Path

import pytest
from fake_results import FakeSweep, write_sweep

from lcat_analysis.compare import Comparisons, compare
from lcat_analysis.load import Results, load
from lcat_analysis.report import write_report
from lcat_analysis.select import Selection, select


@pytest.fixture(scope="session")
def sweep_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep of 5 models on 4 datasets; tests that change files write their own."""
    sweep = FakeSweep(
        models=("gcn", "gat", "cat", "lcat", "gatv2"),
        datasets=("AmazonPhoto", "GitHub", "Cora", "CiteSeer"),
        compare={"cat": "gat", "lcat": "gat"},
        seeds=4,
        epochs=12,
    )
    return write_sweep(tmp_path_factory.mktemp("results"), sweep)


@pytest.fixture(scope="session")
def results(sweep_folder: Path) -> Results:
    return load(sweep_folder)


@pytest.fixture(scope="session")
def selection(results: Results) -> Selection:
    return select(results)


@pytest.fixture(scope="session")
def comparisons(results: Results, selection: Selection) -> Comparisons:
    return compare(selection, results.grid["compare"])


@pytest.fixture(scope="session")
def report_file(tmp_path_factory: pytest.TempPathFactory, results: Results) -> Path:
    return write_report(results, tmp_path_factory.mktemp("report") / "report.html")
