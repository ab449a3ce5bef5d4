"""The plugin in our own main, in a stock GraphGym main, and in a main that calls ``set_cfg`` after the import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

MAINS = Path(__file__).parent / "mains"
ROOT = Path(__file__).parents[2]
OUR_MAIN = ROOT / "run" / "main.py"
STOCK_MAIN = ROOT / "examples" / "graphgym_project" / "main.py"

pytestmark = pytest.mark.slow


@pytest.fixture
def config(tmp_path, small):
    """The same YAML for all three; ``model.type: gnn`` is GraphGym's own network."""
    tree = {"out_dir": str(tmp_path / "results"), "tensorboard_agg": False}
    for key, value in {**small, "model.type": "gnn", "optim.max_epoch": 3}.items():
        group, name = key.split(".")
        tree.setdefault(group, {})[name] = value
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


def run(*command):
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_our_main(config, tmp_path):
    output = run(OUR_MAIN, "--cfg", config, "--repeat", 2, "lcat.score", "gatv2")
    assert "lcatv2 on BlockModel, seed 0: test accuracy" in output
    names = sorted(path.name for path in (tmp_path / "results/small/runs").iterdir())
    assert [name.split("-")[2] for name in names] == ["s0", "s1"]


def test_stock_main_with_one_line_added(config, tmp_path):
    output = run(STOCK_MAIN, "--cfg", config, "lcat.lambda1", 1, "lcat.lambda2", 0.5)
    assert output.count("LCATConv(8, 4, heads=2, score='gat', lambda1=1, lambda2=0.5)") == 2
    lines = (tmp_path / "results/small/0/val/stats.json").read_text().splitlines()
    assert len(lines) >= 3
    assert "accuracy" in json.loads(lines[-1])


def test_main_that_sets_the_configuration_after_the_import(config, tmp_path):
    run(MAINS / "set_cfg_main.py", "--cfg", config)
    result = json.loads((tmp_path / "results/result.json").read_text())
    assert 0 <= result["test"]["accuracy"] <= 1
    assert len(result["lambdas"]) == 2
