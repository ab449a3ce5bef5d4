"""Runs that a cell lost, diverged, never recorded or has twice are visible wherever the cell is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fake_results import FakeSweep, invent_result, write_sweep

from lcat_analysis.compare import compare
from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_analysis.tables import performance_table

SWEEP = FakeSweep(models=("gat", "cat"), datasets=("Cora", "GitHub"), seeds=3, axes={}, over=(), histories=False)


def change(folder: Path, model: str, dataset: str, seed: int, **metrics) -> None:
    (path,) = folder.glob(f"runs/{model}-{dataset}-s{seed}-*/result.json")
    result = json.loads(path.read_text())
    result["test"].update(metrics)
    path.write_text(json.dumps(result))


def cell(folder: Path, row: int, column: int):
    return performance_table(select(load(folder))).rows[row].cells[column]


def test_a_cell_with_fewer_runs_than_its_rivals_is_marked_and_never_the_best(tmp_path):
    folder = write_sweep(tmp_path, SWEEP)
    for seed in range(3):
        change(folder, "cat", "Cora", seed, accuracy=0.99)
    assert cell(folder, 1, 1).best
    shutil.rmtree(next(folder.glob("runs/cat-Cora-s2-*")))
    table = performance_table(select(load(folder)))
    assert table.rows[1].cells[1].text == "99.00 ± 0.00 †"
    assert not table.rows[1].cells[1].best
    assert any("† Fewer runs" in note and "CAT on Cora (n = 2)" in note for note in table.notes)
    assert table.data.set_index(["model", "dataset"])["complete"].to_dict()["cat", "Cora"] is False


def test_a_diverged_run_is_counted_in_the_note(tmp_path):
    folder = write_sweep(tmp_path, SWEEP)
    change(folder, "cat", "Cora", 0, accuracy=None)
    assert any("CAT on Cora (n = 2, 1 diverged)" in note for note in performance_table(select(load(folder))).notes)


def test_datasets_may_have_different_numbers_of_runs(tmp_path):
    folder = write_sweep(tmp_path, SWEEP)
    for path in folder.glob("runs/*-Cora-s2-*"):
        shutil.rmtree(path)
    table = performance_table(select(load(folder)))
    assert not any("†" in c.text for row in table.rows for c in row.cells)
    assert "n = 2 to 3 runs" in table.notes[0]


def test_a_dataset_that_lacks_the_metric_is_not_called_diverged(tmp_path):
    folder = write_sweep(tmp_path, SWEEP)
    for path in folder.glob("runs/*-Cora-*/result.json"):
        result = json.loads(path.read_text())
        for split in ("train", "val", "test"):
            del result[split]["accuracy"]
        path.write_text(json.dumps(result))
    chosen = select(load(folder), "accuracy")
    table = performance_table(chosen)
    assert [row.cells[1].text for row in table.rows] == ["–", "–"]
    assert "Not recorded: accuracy on Cora." in table.notes
    row = compare(chosen).table.set_index("dataset").loc["Cora"]
    assert (row["verdict"], row["note"]) == ("refused", "CAT did not record accuracy")


def test_two_results_of_one_seed_that_differ_are_both_kept_and_named(tmp_path):
    for name, value in (("a", 0.8), ("b", 0.9)):
        folder = tmp_path / "my" / "runs" / name
        folder.mkdir(parents=True)
        result = invent_result(FakeSweep(), "lcat", "Cora", {}, 0, 0) | {"run_id": name, "params": {}}
        result["test"]["accuracy"] = value
        (folder / "result.json").write_text(json.dumps(result))
    results = load(tmp_path / "my")
    assert len(results.runs) == 2
    assert results.counts() == {"done": 1, "conflicting": 1}
    (detail,) = results.problems["detail"]
    assert detail == "same settings, split and seed as a, but test.accuracy is 0.9 instead of 0.8"


def test_a_conflict_of_two_runs_is_not_tested(tmp_path):
    folder = write_sweep(tmp_path, SWEEP)
    (first,) = folder.glob("runs/cat-Cora-s0-*")
    shutil.copytree(first, first.with_name("copy"))
    path = first.with_name("copy") / "result.json"
    result = json.loads(path.read_text())
    result["test"]["accuracy"] += 0.01
    path.write_text(json.dumps(result | {"run_id": "copy"}))
    row = compare(select(load(folder))).table.set_index("dataset").loc["Cora"]
    assert (row["verdict"], row["note"]) == ("refused", "several runs share a seed, so they cannot be paired")


@pytest.fixture
def two_splits(tmp_path):
    sweep = FakeSweep(
        models=("gat", "cat"), datasets=("Cora",), seeds=3, split_seeds=(0, 1, 2), axes={}, over=(), histories=False
    )
    return select(load(write_sweep(tmp_path, sweep)))


def test_a_table_says_that_its_tests_pool_splits(two_splits):
    text = " ".join(performance_table(two_splits, compare(two_splits)).notes)
    assert "pooled as if independent" in text
    assert "--unit split" in text


def test_a_table_can_test_the_means_of_splits(two_splits):
    comparisons = compare(two_splits, unit="split")
    text = " ".join(performance_table(two_splits, comparisons).notes)
    assert "pooled as if independent" not in text
    assert "two-sided corrected resampled t-test of the means of splits" in text
