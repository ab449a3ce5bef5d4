"""The examples of "A dataset" and "A metric" in the documentation work as they are written."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def section(title):
    """The text of one section of the page on extending."""
    text = (DOCS / "extending.md").read_text(encoding="utf-8")
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)


def write_example(folder, title, module):
    text = section(title)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    (folder / f"{module}.py").write_text("\n\n".join(blocks), encoding="utf-8")
    (folder / "example.yaml").write_text(re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)[0], encoding="utf-8")


def lcat_run(folder, *settings):
    # In a process of its own: what a plugin registers stays.
    command = [sys.executable, "-m", "lcat_run.cli", "run", "--cfg", "example.yaml", *settings]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def result_of(folder):
    (path,) = folder.glob("results/example/runs/*/result.json")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_dataset_of_the_documentation(tmp_path):
    write_example(tmp_path, "A dataset", "my_dataset")
    done = lcat_run(tmp_path, "ring.nodes", "45")
    assert done.returncode == 0, done.stderr
    assert result_of(tmp_path)["dataset"] == {"name": "Ring", "nodes": 45, "edges": 90, "avg_degree": 2.0}
    misspelt = lcat_run(tmp_path, "dataset.name", "Rign")
    assert misspelt.returncode == 2
    assert "did you mean 'Ring'?" in misspelt.stderr


@pytest.mark.slow
def test_the_metric_of_the_documentation(tmp_path):
    write_example(tmp_path, "A metric", "my_metric")
    done = lcat_run(tmp_path)
    assert done.returncode == 0, done.stderr
    result = result_of(tmp_path)
    assert 0 < result["test"]["brier"] < 2
    assert result["metrics"] == {"brier": {"label": "Brier score", "higher_is_better": False, "percent": False}}
    assert f"brier {result['test']['brier']:.4g}" in done.stdout
