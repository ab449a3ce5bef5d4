"""``lcat init``: a small folder to start a study from."""

from __future__ import annotations

import argparse
import re
from importlib import resources
from pathlib import Path

from lcat_core.errors import UserError
from lcat_core.files import write_text

HELP = "write a folder to start from: a dataset, a score, a layer, and a grid that compares them"
EXAMPLES = """\
  lcat init my_study
  cd my_study && lcat sweep grid.yaml && lcat table my_study"""

_SUFFIX = ".template"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, help="the folder to create; its name is that of the sweep"
    )


def execute(args: argparse.Namespace) -> None:
    folder: Path = args.folder
    name = folder.resolve().name
    if not re.fullmatch(r"\w[\w.+-]*", name):
        raise UserError(f"the name of the folder must be letters, digits, '_', '.', '+' or '-', got {name!r}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already; choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    templates = resources.files("lcat_run").joinpath("study_template")
    for template in sorted(templates.iterdir(), key=lambda path: path.name):
        text = template.read_text(encoding="utf-8").replace("{name}", name)
        write_text(folder / template.name.removesuffix(_SUFFIX), text)
        print(f"wrote {folder / template.name.removesuffix(_SUFFIX)}")
    print(f"next: cd {folder} && lcat sweep grid.yaml && lcat table {name}")
