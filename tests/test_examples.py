"""Every example runs as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))

pytestmark = pytest.mark.slow


def run(path, *arguments, cwd):
    command = [sys.executable, "-W", "error::UserWarning:graphgym_lcat", str(path), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script, tmp_path):
    assert "(learned)" in run(EXAMPLES / script, cwd=tmp_path)


def test_graphgym_project(tmp_path):
    project = EXAMPLES / "graphgym_project"
    output = run(project / "main.py", "--cfg", project / "lcat.yaml", cwd=tmp_path)
    assert "LCATConv(34, 8, heads=4" in output
    assert len((tmp_path / "results/lcat/0/train/stats.json").read_text().splitlines()) == 20
