from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fake_results import FakeSweep, write_graphgym_run, write_sweep

from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_analysis.tables import performance_table


def test_a_stock_tree_is_read_at_the_best_validation_epoch(tmp_path):
    write_graphgym_run(tmp_path / "gat-run", "gatconv", "Cora", seeds=2)
    runs = load(tmp_path).runs
    assert list(runs["seed"]) == [0, 1]
    assert list(runs["model"]) == ["gatconv", "gatconv"]
    # Not epoch 0, whose untrained check row has the highest accuracy; not epoch 3, best on the test set.
    assert list(runs["best_epoch"]) == [2, 2]
    assert list(runs["test.accuracy"]) == [0.8, 0.8]
    assert list(runs["val.accuracy"]) == pytest.approx([0.81, 0.82])


def test_a_test_set_scored_only_at_the_end_is_taken_as_it_is_and_says_so(tmp_path):
    write_graphgym_run(tmp_path / "gat-run", "gatconv", "Cora", seeds=1, test_once=True)
    row = load(tmp_path).runs.iloc[0]
    assert (row["best_epoch"], row["test_epoch"], row["test.accuracy"]) == (2, 3, 0.9)


def test_settings_that_differ_between_stock_runs_are_selected_over(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=2, lr=0.1)
    write_graphgym_run(tmp_path / "b", "gatconv", "Cora", seeds=2, lr=0.2)
    results = load(tmp_path)
    assert select(results).variants == ["optim.base_lr"]
    chosen = select(results, over=["optim.base_lr"])
    assert (chosen.variants, len(chosen.runs)) == ([], 2)


def test_the_degree_of_a_known_dataset_is_filled_in(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=1)
    assert load(tmp_path).runs["avg_degree"].iloc[0] == pytest.approx(10556 / 2708)


def test_the_means_that_graphgym_writes_beside_the_seeds_are_not_a_run(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=2)
    shutil.copytree(tmp_path / "a" / "0", tmp_path / "a" / "agg")
    assert load(tmp_path).counts() == {"done": 2}


def test_a_stock_configuration_that_is_not_yaml_makes_its_runs_unreadable(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=2)
    (tmp_path / "a" / "config.yaml").write_text("gnn: [")
    assert load(tmp_path).counts() == {"done": 0, "unreadable": 2}


def test_an_unfinished_stock_seed_is_counted(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=2)
    (tmp_path / "a" / "1" / "test" / "stats.json").unlink()
    assert load(tmp_path).counts() == {"done": 1, "missing": 1}


def write_validation(folder: Path, **columns: list[float]) -> None:
    """Replace the validation scores of seed 0, one value per epoch."""
    rows = [dict(zip(("epoch", *columns), row, strict=True)) for row in zip(range(99), *columns.values(), strict=False)]
    (folder / "0" / "val" / "stats.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_auto_means_auc_where_there_is_one(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=1)
    write_validation(tmp_path / "a", accuracy=[0.5, 0.9, 0.6], auc=[0.8, 0.5, 0.6])
    results = load(tmp_path)
    assert results.runs["best_epoch"].iloc[0] == 0
    assert "Epoch: best val.auc of the run." in " ".join(performance_table(select(results)).notes)


def test_metric_agg_says_whether_the_lowest_value_is_best(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=1, metric_best="mae", metric_agg="argmin")
    write_validation(tmp_path / "a", accuracy=[0.5, 0.9, 0.6], mae=[0.8, 0.5, 0.3])
    assert load(tmp_path).runs["best_epoch"].iloc[0] == 2


def test_folders_of_a_run_over_several_splits_are_splits_with_one_seed(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=3, run_multiple_splits=[0, 1, 2], seed=7)
    runs = load(tmp_path).runs
    assert list(runs["split_seed"]) == [0, 1, 2]
    assert set(runs["seed"]) == {7}


def test_a_test_set_that_was_scored_at_another_epoch_is_mentioned_below_the_table(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=2, test_once=True)
    text = " ".join(performance_table(select(load(tmp_path))).notes)
    assert "2 of 2 runs scored the test set only at another epoch" in text
    write_graphgym_run(tmp_path / "b", "gatconv", "Cora", seeds=2, lr=0.02)
    assert "scored the test set only" not in " ".join(performance_table(select(load(tmp_path / "b"))).notes)


def test_stock_runs_in_the_folder_of_a_sweep_are_shown_apart_from_its_own(tmp_path):
    sweep = FakeSweep(models=("gatconv",), datasets=("Cora",), seeds=2, axes={}, over=(), histories=False)
    folder = write_sweep(tmp_path, sweep)
    write_graphgym_run(folder / "stock", "gatconv", "Cora", seeds=2)
    chosen = select(load(folder))
    assert "trained by" in chosen.variants
    assert len(chosen.runs) == 4


def test_a_stock_run_on_a_dataset_with_masks_used_its_public_split_whatever_its_configuration_says(tmp_path):
    write_graphgym_run(tmp_path / "stock", "gatconv", "Cora", seeds=1)
    (tmp_path / "stock" / "config.yaml").write_text("dataset: {name: Cora, format: PyG, split_mode: random}\n")
    assert "Split: public." in performance_table(select(load(tmp_path))).notes


def test_validation_scores_that_are_not_numbers_make_a_run_unreadable(tmp_path):
    write_graphgym_run(tmp_path / "a", "gatconv", "Cora", seeds=1)
    write_validation(tmp_path / "a", accuracy=["high", "low"])
    results = load(tmp_path)
    assert results.counts() == {"done": 0, "unreadable": 1}
    assert "is not a run of GraphGym" in results.problems["detail"].iloc[0]
