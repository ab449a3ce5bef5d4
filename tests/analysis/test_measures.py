"""Direction and scale of metrics: known ones, declared ones, and values that cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_results import FakeSweep, write_sweep

from lcat_analysis.compare import compare
from lcat_analysis.load import load
from lcat_analysis.metrics import find_measure
from lcat_analysis.select import select
from lcat_analysis.tables import performance_table
from lcat_core.errors import ResultsError, UserError
from lcat_core.metrics import Scale
from lcat_run.cli import main
from lcat_run.sweep.grid import parse_grid


def sweep_with(tmp_path: Path, metric: str, factor: float = 1.0, *, grid: str = "", **fields) -> Path:
    """A sweep of GAT and CAT in which CAT has the higher values, with other fields in every result."""
    sweep = FakeSweep(
        models=("gat", "cat"), datasets=("Cora",), seeds=5, axes={}, over=(), histories=False, metric=metric
    )
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        gain = 0.02 + 0.001 * result["seed"] if result["model"] == "cat" else 0.0
        for split in ("train", "val", "test"):
            result[split][metric] = (0.8 + gain) * factor
        path.write_text(json.dumps(result | fields))
    with (folder / "grid.yaml").open("a") as file:
        file.write(grid)
    return folder


def verdict(folder: Path, **options) -> str:
    return compare(select(load(folder), **options)).table["verdict"].iloc[0]


def test_a_lower_perplexity_is_better(tmp_path):
    assert verdict(sweep_with(tmp_path, "perplexity", 30.0)) == "worse"


def test_a_metric_that_nobody_describes_is_refused(tmp_path):
    folder = sweep_with(tmp_path, "mystery")
    with pytest.raises(ResultsError, match=r"'mystery' is not a known metric, .* --better higher or lower"):
        select(load(folder), "mystery")


def test_an_option_declares_the_direction(tmp_path):
    folder = sweep_with(tmp_path, "mystery")
    assert verdict(folder, metric="mystery", higher_is_better=False) == "worse"
    assert verdict(folder, metric="mystery", higher_is_better=True) == "better"


def test_a_grid_declares_direction_scale_and_label(tmp_path):
    grid = "metrics: {mystery: {higher_is_better: false, scale: fraction, label: Mystery}}\n"
    chosen = select(load(sweep_with(tmp_path, "mystery", grid=grid)))
    assert performance_table(chosen).title == "Test Mystery (%)"
    assert chosen.runs["value"].max() > 80
    assert compare(chosen).table["verdict"].iloc[0] == "worse"


def test_a_sweep_checks_and_keeps_what_its_grid_declares():
    declared = {"brier": {"higher_is_better": False, "scale": "number"}}
    grid = parse_grid({"models": ["gat"], "metrics": declared}, "g.yaml", {})
    assert grid.document["metrics"] == declared
    with pytest.raises(UserError, match=r"unknown scale of the metric 'brier': 'numbers'; did you mean 'number'"):
        parse_grid({"models": ["gat"], "metrics": {"brier": {"scale": "numbers"}}}, "g.yaml", {})


def test_a_run_describes_the_metric_of_a_plugin(tmp_path):
    row = {"brier": {"label": "Brier score", "higher_is_better": False, "percent": False}}
    chosen = select(load(sweep_with(tmp_path, "brier", metrics=row)))
    assert (chosen.measure.title, chosen.measure.higher_is_better) == ("Brier score", False)


def test_an_accuracy_in_per_cent_is_refused_until_its_scale_is_declared(tmp_path):
    folder = sweep_with(tmp_path, "accuracy", 100.0)
    with pytest.raises(
        ResultsError, match=r"the accuracy of .* is 8\d.*, but a fraction is between 0 and 1; .*--scale"
    ):
        select(load(folder))
    chosen = select(load(folder), scale="percent")
    assert performance_table(chosen).title == "Test accuracy (%)"
    assert 80 < chosen.runs["value"].max() < 90


@pytest.mark.parametrize("command", ["table", "compare", "report"])
def test_commands_take_direction_and_scale(tmp_path, capsys, command):
    folder = sweep_with(tmp_path, "mystery")
    assert main([command, str(folder), "--metric", "mystery"]) == 2
    assert "'mystery' is not a known metric" in capsys.readouterr().err
    assert main([command, str(folder), "--metric", "mystery", "--better", "lower", "--scale", "fraction"]) == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scale": "percents"}, "unknown scale of the metric 'accuracy': 'percents'; did you mean 'percent'"),
        ({"higher_is_better": "yes"}, "must be true or false, got 'yes'"),
        ({"direction": "up"}, "unknown field of the metric 'accuracy': 'direction'"),
    ],
)
def test_an_invalid_declaration_is_refused(fields, message):
    with pytest.raises(ResultsError, match=message):
        find_measure("accuracy", {"accuracy": fields})


def test_a_declaration_changes_only_what_it_names():
    measure = find_measure("val.accuracy", {"accuracy": {"scale": "percent"}})
    assert (measure.label, measure.higher_is_better, measure.scale) == ("accuracy", True, Scale.PERCENT)
