from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fake_results import FakeSweep, write_sweep

from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_analysis.tables import performance_table
from lcat_core.errors import ResultsError

TWO_RATES = FakeSweep(models=("gat",), datasets=("Cora",), seeds=3, histories=False)


def rewrite(folder: Path, change) -> None:
    """Apply ``change(result)`` to every result of a sweep."""
    for path in sorted(folder.glob("runs/*/result.json")):
        result = json.loads(path.read_text())
        change(result)
        path.write_text(json.dumps(result))


def test_the_configuration_with_the_best_mean_validation_metric_is_chosen(tmp_path):
    folder = write_sweep(tmp_path, TWO_RATES)
    rewrite(folder, lambda r: r["val"].update(accuracy=0.9 if r["params"]["optim.base_lr"] == 0.005 else 0.8))
    chosen = select(load(folder))
    assert set(chosen.runs["optim.base_lr"]) == {0.005}
    assert len(chosen.runs) == 3


def test_the_test_metric_selects_nothing(tmp_path):
    folder = write_sweep(tmp_path, FakeSweep(models=("gat", "cat"), datasets=("Cora", "GitHub"), histories=False))
    before = select(load(folder))
    generator = np.random.default_rng(0)
    rewrite(folder, lambda r: r["test"].update(accuracy=generator.random(), loss=generator.random()))
    after = select(load(folder))
    assert list(after.runs["run_id"]) == list(before.runs["run_id"])
    assert not np.allclose(after.runs["value"], before.runs["value"])


def test_a_loss_is_minimised(tmp_path):
    folder = write_sweep(tmp_path, TWO_RATES)
    rewrite(folder, lambda r: r["val"].update(loss=0.9 if r["params"]["optim.base_lr"] == 0.005 else 0.8))
    grid = folder / "grid.yaml"
    grid.write_text(grid.read_text().replace("val.accuracy", "val.loss"))
    assert set(select(load(folder), "loss").runs["optim.base_lr"]) == {0.01}


def test_of_equal_configurations_the_one_of_the_smallest_value_wins(tmp_path):
    folder = write_sweep(tmp_path, TWO_RATES)
    rewrite(folder, lambda r: r["val"].update(accuracy=0.5))
    assert set(select(load(folder)).runs["optim.base_lr"]) == {0.005}


def test_a_configuration_with_fewer_finished_runs_cannot_win(tmp_path):
    folder = write_sweep(tmp_path, TWO_RATES)
    rewrite(folder, lambda r: r["val"].update(accuracy=0.99 if r["params"]["optim.base_lr"] == 0.005 else 0.5))
    lucky = load(folder).runs.query("`optim.base_lr` == 0.005 and seed > 0")
    for path in lucky["path"]:
        Path(path, "result.json").unlink()
    chosen = select(load(folder))
    assert set(chosen.runs["optim.base_lr"]) == {0.01}
    assert chosen.choices.set_index("optim.base_lr")["complete"].to_dict() == {0.005: False, 0.01: True}


def test_a_configuration_with_a_diverged_run_loses_to_one_without(tmp_path):
    folder = write_sweep(tmp_path, TWO_RATES)

    def diverge(result):
        high = result["params"]["optim.base_lr"] == 0.005
        result["val"]["accuracy"] = (None if result["seed"] == 0 else 0.99) if high else 0.5

    rewrite(folder, diverge)
    assert set(select(load(folder)).runs["optim.base_lr"]) == {0.01}


def test_axes_that_are_not_selected_over_are_variants_in_the_grids_order(tmp_path):
    axes = {"lcat.heads": [8, 1], "lcat.init": ["uniform", "normal"], "optim.base_lr": [0.01, 0.005]}
    folder = write_sweep(tmp_path, FakeSweep(models=("gat",), datasets=("Cora",), seeds=2, axes=axes, histories=False))
    chosen = select(load(folder))
    assert chosen.variants == ["lcat.heads", "lcat.init"]
    assert chosen.conditions() == [
        ("Cora", 8, "uniform"),
        ("Cora", 8, "normal"),
        ("Cora", 1, "uniform"),
        ("Cora", 1, "normal"),
    ]


def test_split_seeds_are_repetitions_not_variants(tmp_path):
    sweep = FakeSweep(models=("gat",), datasets=("Cora",), seeds=2, axes={"dataset.split_seed": [0, 1]}, over=())
    chosen = select(load(write_sweep(tmp_path, sweep)))
    assert chosen.variants == []


def test_an_unknown_metric_is_refused_with_the_nearest_name(results):
    with pytest.raises(ResultsError, match=r"unknown metric: 'acuracy'; did you mean 'accuracy'"):
        select(results, "acuracy")


def test_selecting_over_a_key_that_no_run_sets_is_refused(results):
    with pytest.raises(ResultsError, match=r"cannot select over 'optim.lr'"):
        select(results, over=["optim.lr"])


def test_datasets_are_sorted_by_falling_degree(selection):
    assert selection.datasets == ["AmazonPhoto", "GitHub", "Cora", "CiteSeer"]


def test_results_without_validation_need_none_when_nothing_is_selected_over(tmp_path):
    folder = write_sweep(tmp_path, FakeSweep(models=("gat",), datasets=("Cora",), axes={}, over=(), histories=False))
    rewrite(folder, lambda r: r.pop("val"))
    assert len(select(load(folder)).runs) == 5


def test_a_dataset_without_the_metric_is_valued_by_its_own(tmp_path):
    folder = write_sweep(tmp_path, FakeSweep(models=("gat",), datasets=("Cora", "GitHub"), seeds=2, histories=False))

    def rename(result):
        if result["dataset"]["name"] == "GitHub":
            for split in ("train", "val", "test"):
                result[split]["rocauc"] = result[split].pop("accuracy") / 2

    rewrite(folder, rename)
    chosen = select(load(folder))
    assert (chosen.metric, chosen.measure_of("Cora").name, chosen.measure_of("GitHub").name) == (
        "accuracy",
        "accuracy",
        "rocauc",
    )
    values = chosen.runs.groupby("dataset")["value"].mean()
    assert 35 < values["GitHub"] < 50 < values["Cora"]
    assert "On GitHub: ROC-AUC (%)." in performance_table(chosen).notes
    assert select(load(folder), "accuracy").values("gat", ("GitHub",)).isna().all()
