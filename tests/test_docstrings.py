"""Examples in docstrings (``>>>``) run and print what they show."""

import doctest
import importlib
import importlib.util
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: The packages that mypy checks are those with code.
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["packages"]


def modules_with_examples() -> list[str]:
    """Only these are imported: a benchmark may be a script, or need a package that is not installed."""
    found = []
    for package in PACKAGES:
        folder = Path(importlib.util.find_spec(package).origin).parent
        for path in sorted(folder.rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(folder).with_suffix("").parts
                found.append(".".join([package, *(part for part in parts if part != "__init__")]))
    return found


def run_examples(module) -> doctest.TestResults:
    return doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


def test_examples_in_docstrings_print_what_they_show():
    for name in modules_with_examples():
        result = run_examples(importlib.import_module(name))
        assert result.attempted, f"{name} has '>>> ' outside of docstrings, where nothing runs it"
        assert not result.failed, f"{name}: see the captured output"


@pytest.mark.parametrize(("shown", "failed"), [("3", 0), ("4", 1)])
def test_a_wrong_example_is_found(shown, failed, tmp_path):
    path = tmp_path / "example.py"
    path.write_text(
        f'def double(x):\n    """Double.\n\n    >>> double(1.5)\n    {shown}.0\n    """\n    return 2 * x\n'
    )
    spec = importlib.util.spec_from_file_location("example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert run_examples(module) == doctest.TestResults(failed=failed, attempted=1)


def test_every_package_is_searched():
    assert {"lcat_core", "graphgym_lcat", "lcat_run", "lcat_analysis", "lcat_benchmarks"} <= set(PACKAGES)
