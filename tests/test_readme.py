"""What the README says is true."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lcat_run.cli import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_table_of_models_is_what_the_command_prints():
    table = re.search(r"<!-- made by: lcat layers --format markdown -->\n(.*?)\n<!-- end -->", README, re.S)[1]
    command = [sys.executable, "-m", "lcat_run.cli", "layers", "--format", "markdown"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == table


def test_every_command_it_names_exists():
    named = set(re.findall(r"^ {4}lcat (\w+)", README, re.M)) | set(re.findall(r"`lcat (\w+)", README))
    assert named and named <= set(COMMANDS)


def test_python_blocks_compile():
    for block in re.findall(r"```python\n(.*?)```", README, re.S):
        compile(block, "README.md", "exec")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_point_to_files_that_exist(document):
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("script", ["run/demo.sh", "run/test.sh"])
def test_scripts_are_named_and_valid(script):
    assert f"bash {script}" in README
    subprocess.run(["bash", "-n", ROOT / script], check=True)
