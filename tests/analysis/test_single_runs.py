"""Folders of `lcat run`: not a grid but the configurations of the runs say what varies."""

import json

import pytest
import yaml
from fake_results import FakeSweep, invent_result

from lcat_analysis.load import load
from lcat_analysis.select import select
from lcat_run import cli


@pytest.fixture
def write_run(tmp_path):
    """Write a run of `lcat run` with these settings."""

    def write(name, seed=0, **settings):
        folder = tmp_path / "my" / "runs" / name
        folder.mkdir(parents=True)
        result = invent_result(FakeSweep(), "lcat", "Cora", {}, 0, seed)
        (folder / "result.json").write_text(json.dumps({**result, "run_id": name, "params": {}}), encoding="utf-8")
        config = {"seed": seed, "lcat": {"heads": 4, "save_model": False}, "optim": {"max_epoch": 50}}
        for key, value in settings.items():
            group, name = key.split("__")
            config[group][name] = value
        (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        return tmp_path / "my"

    return write


def test_configurations_that_differ_are_rows_of_their_own(write_run):
    write_run("a")
    folder = write_run("b", lcat__heads=2)
    selection = select(load(folder))
    assert selection.variants == ["lcat.heads"]
    assert [len(selection.values("lcat", condition)) for condition in selection.conditions()] == [1, 1]


def test_what_only_leaves_other_files_behind_is_the_same_run_and_counts_once(write_run):
    write_run("a")
    folder = write_run("b", lcat__save_model=True)
    results = load(folder)
    assert len(results.runs) == 1
    assert results.counts() == {"done": 1, "repeated": 1}
    assert results.problems.iloc[0]["detail"] == "same settings, split and seed as a, left out"


def test_seeds_of_one_configuration_are_one_cell(write_run, capsys):
    for seed in range(3):
        folder = write_run(f"s{seed}", seed=seed)
    assert cli.main(["table", str(folder)]) == 0
    assert "over n = 3 runs" in capsys.readouterr().out
