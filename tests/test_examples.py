"""Every example runs without changes."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_results import FakeSweep, write_sweep

EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS_RESULTS = "results_to_figures.py"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != NEEDS_RESULTS)

pytestmark = pytest.mark.slow


def run(path, *arguments, cwd):
    command = [sys.executable, "-W", "error::UserWarning:graphgym_lcat", str(path), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert "(learned)" in capsys.readouterr().out


def test_own_dataset(tmp_path):
    project = shutil.copytree(EXAMPLES / "own_dataset", tmp_path / "own_dataset")
    lcat = [sys.executable, "-m", "lcat_run.cli"]
    subprocess.run([*lcat, "sweep", "grid.yaml"], cwd=project, check=True, timeout=300)
    table = subprocess.run([*lcat, "table", "own_dataset"], cwd=project, check=True, capture_output=True, text=True)
    assert "ThreeClasses" in table.stdout
    assert "L-CAT" in table.stdout


def test_graphgym_project(tmp_path):
    project = EXAMPLES / "graphgym_project"
    output = run(project / "main.py", "--cfg", project / "lcat.yaml", cwd=tmp_path)
    assert "LCATConv(34, 8, heads=4" in output
    assert len((tmp_path / "results/lcat/0/train/stats.json").read_text().splitlines()) == 100


def test_results_to_figures(tmp_path, monkeypatch, capsys):
    sweep = FakeSweep(models=("gat", "cat", "lcat"), datasets=("AmazonPhoto", "Cora", "CiteSeer"), seeds=3, epochs=5)
    figures = tmp_path / "figures"
    monkeypatch.setattr(sys, "argv", [NEEDS_RESULTS, str(write_sweep(tmp_path, sweep)), str(figures)])
    runpy.run_path(str(EXAMPLES / NEEDS_RESULTS))
    assert "| L-CAT |" in capsys.readouterr().out
    written = {path.name for path in figures.iterdir()}
    assert written == {"table.tex", "tests.csv", "trend.pdf", "curves.pdf", "lambdas.pdf"}
