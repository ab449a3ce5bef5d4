"""`lcat best`: the winner of a search, and its configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from fake_results import FakeSweep, write_sweep

from lcat_run.cli import main


@pytest.fixture
def search(tmp_path: Path) -> Path:
    sweep = FakeSweep(
        name="search",
        models=("gat", "lcat"),
        datasets=("Cora",),
        seeds=2,
        axes={"optim.base_lr": [0.1, 0.01]},
        over=("optim.base_lr",),
        histories=False,
    )
    folder = write_sweep(tmp_path, sweep)
    for path in folder.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        is_best = result["model"] == "gat" and result["params"]["optim.base_lr"] == 0.1
        result["val"]["accuracy"] = 0.9 if is_best else 0.8  # whatever the test set says
        result["settings"] = {**result["params"], "seed": result["seed"], "out_dir": "x", "gnn.dim_inner": 8}
        path.write_text(json.dumps(result))
    return folder


def test_the_winner_by_validation_is_printed_and_written_for_lcat_run(search, capsys):
    assert main(["best", str(search)]) == 0
    printed = capsys.readouterr().out
    assert "Cora: GAT, best of 4 by mean val.accuracy 90.00 over 2 runs; test accuracy " in printed
    assert "optim.base_lr 0.1" in printed
    written = yaml.safe_load((search / "best.yaml").read_text())
    assert written["optim"]["base_lr"] == 0.1 and written["gnn"]["dim_inner"] == 8
    assert "seed" not in written and "out_dir" not in written


def test_one_model_can_be_asked_for(search, tmp_path, capsys):
    assert main(["best", str(search), "--model", "lcat", "-o", str(tmp_path / "mine.yaml")]) == 0
    assert "Cora: L-CAT, best of 2 by" in capsys.readouterr().out
    assert "L-CAT on Cora" in (tmp_path / "mine.yaml").read_text()
    assert main(["best", str(search), "--model", "lkat"]) == 2
    assert "did you mean 'lcat'" in capsys.readouterr().err


def test_table_csv_and_status_name_the_winner(search, capsys):
    assert main(["table", str(search)]) == 0
    assert "Chosen: GAT on Cora: optim.base_lr 0.1; L-CAT on Cora: optim.base_lr" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["table", str(search), "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(",optim.base_lr")
    assert main(["status", str(search)]) == 0
    assert "Cora: GAT, best of 4 by" in capsys.readouterr().out


def test_unfinished_runs_of_other_models_are_not_counted(search, capsys):
    for path in search.glob("runs/gat-*/result.json"):
        path.unlink()
    for path in search.glob("runs/lcat-*-s1-*/result.json"):
        path.unlink()
    assert main(["best", str(search), "--model", "lcat"]) == 0
    said = capsys.readouterr()
    assert "2 of 4 runs are sound" in said.err
    assert "over 1 run;" in said.out
