"""Sweeps that are read together: what their runs were configured with decides what may be averaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from fake_results import FakeSweep, write_sweep

from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_analysis.tables import performance_table

SMALL = {"models": ("gat", "cat"), "datasets": ("Cora",), "seeds": 2, "over": (), "histories": False}


def write(
    root: Path, name: str, settings: dict | None, *, config: dict | None = None, first_seed: int = 0, **options
) -> Path:
    """A sweep whose runs have these settings beside what the grid varies."""
    folder = write_sweep(root, FakeSweep(name=name, **{"axes": {}, **SMALL, **options}))
    lines = []
    for path in sorted(folder.glob("runs/*/result.json")):
        result = json.loads(path.read_text())
        result |= {"run_id": f"{name}-{result['run_id']}", "seed": result["seed"] + first_seed}
        result["settings"] = {**(settings or {}), **result["params"], "seed": result["seed"], "out_dir": name}
        path.write_text(json.dumps(result))
        lines.append({k: result[k] for k in ("run_id", "model", "seed", "split_seed", "params")} | {"dataset": "Cora"})
        if config is not None:
            (path.parent / "config.yaml").write_text(yaml.safe_dump(config))
        path.parent.rename(path.parent.with_name(result["run_id"]))
    (folder / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_other_numbers_of_epochs_are_rows_of_their_own(tmp_path):
    write(tmp_path, "short", {"optim.max_epoch": 100})
    write(tmp_path, "long", {"optim.max_epoch": 500})
    chosen = select(load(tmp_path))
    assert chosen.variants == ["optim.max_epoch"]
    assert chosen.conditions() == [("Cora", 100), ("Cora", 500)]
    assert performance_table(chosen).label_names == ["Dataset", "optim.max_epoch"]


def test_other_splits_are_rows_of_their_own(tmp_path):
    write(tmp_path, "a", {"dataset.split": [0.7, 0.15, 0.15]})
    write(tmp_path, "b", {"dataset.split": [0.1, 0.1, 0.8]})
    assert select(load(tmp_path)).variants == ["dataset.split"]


def test_a_default_is_looked_up_in_the_configuration(tmp_path):
    write(tmp_path, "short", {"optim.max_epoch": 100})
    write(tmp_path, "usual", {}, config={"optim": {"max_epoch": 200}, "seed": 0})
    assert select(load(tmp_path)).conditions() == [("Cora", 100), ("Cora", 200)]


def test_a_default_that_is_recorded_nowhere_is_a_dash(tmp_path):
    write(tmp_path, "short", {"optim.max_epoch": 100})
    write(tmp_path, "usual", {})
    assert {condition[1] for condition in select(load(tmp_path)).conditions()} == {100, "–"}


def test_further_seeds_of_the_same_experiment_are_averaged(tmp_path):
    write(tmp_path, "a", {"optim.max_epoch": 100})
    write(tmp_path, "b", {"optim.max_epoch": 100}, first_seed=2)
    chosen = select(load(tmp_path))
    assert chosen.variants == []
    assert len(chosen.values("cat", ("Cora",))) == 4


def test_an_axis_of_one_sweep_is_compared_with_the_setting_of_another(tmp_path):
    write(tmp_path, "axis", {}, axes={"optim.base_lr": [0.01, 0.005]})
    write(tmp_path, "fixed", {"optim.base_lr": 0.005}, first_seed=2)
    chosen = select(load(tmp_path))
    assert chosen.conditions() == [("Cora", 0.01), ("Cora", 0.005)]
    assert len(chosen.values("cat", ("Cora", 0.005))) == 4


def test_a_setting_that_follows_an_axis_is_no_row_of_its_own(tmp_path):
    """A grid's ``override`` may set more epochs for a small learning rate; choosing the rate then chooses both."""
    folder = write(tmp_path, "rates", {}, axes={"optim.base_lr": [0.01, 0.005]}, over=("optim.base_lr",))
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        result["settings"]["optim.max_epoch"] = 100 if result["params"]["optim.base_lr"] == 0.01 else 200
        path.write_text(json.dumps(result))
    assert select(load(folder)).variants == []


@pytest.mark.parametrize("key", ["lcat.plugins", "num_threads", "out_dir", "lcat.save_model"])
def test_settings_that_change_no_result_are_ignored(tmp_path, key):
    write(tmp_path, "a", {key: 1})
    write(tmp_path, "b", {key: 2}, first_seed=2)
    assert select(load(tmp_path)).variants == []
