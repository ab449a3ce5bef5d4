"""The documentation: links lead somewhere, generated pages are up to date, quoted messages are the real ones."""

import importlib
import re
import runpy
import shlex
from pathlib import Path

import pytest

from graphgym_lcat.data.datasets import _cannot_download
from graphgym_lcat.data.registry import DATASETS
from graphgym_lcat.kernels import library
from lcat_run import cli
from lcat_run.optional_packages import missing_package

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDES = sorted(DOCS.glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *GUIDES, ROOT / "benchmarks/README.md"]
TROUBLESHOOTING = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^```\n\$ lcat (.*)\n((?:.*\n)+?)```$", TROUBLESHOOTING, re.M)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub forms them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def matches(quote: str, text: str) -> bool:
    """Whether ``quote``, in which … stands for anything, is in ``text``."""
    pattern = ".*?".join(re.escape(part) for part in quote.strip().split("…"))
    return re.search(pattern, text, re.S) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_page_is_in_the_index():
    linked = set(re.findall(r"\]\(([\w.]+\.md)\)", (DOCS / "README.md").read_text(encoding="utf-8")))
    assert {page.name for page in GUIDES} - {"README.md"} == linked


def test_every_file_that_the_architecture_page_names_exists():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    folders = "core|graphgym_lcat|run|analysis|benchmarks|tests|docs"
    named = set(re.findall(rf"`((?:{folders})/[\w./]+)`", page))
    assert len(named) > 40
    assert not sorted(name for name in named if not (ROOT / name).exists())


def test_pages_made_by_code_are_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    make = importlib.import_module("make")
    outdated = [path.name for path, text in make.pages().items() if path.read_text(encoding="utf-8") != text]
    assert not outdated, f"run: {make.COMMAND}"


@pytest.mark.parametrize(("command", "expected"), SESSIONS, ids=[command for command, _ in SESSIONS])
def test_messages_of_commands_are_quoted_as_they_are(command, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(shlex.split(command)) != 0
    assert matches(expected, capsys.readouterr().err)


def test_other_messages_are_quoted_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "INTERFACE", -1)
    monkeypatch.setattr(library, "load", library.load.__wrapped__)
    gone = DATASETS["GitHub"]
    messages = [
        _cannot_download(gone, gone.raw_dir(tmp_path / "datasets"), list(gone.raw_files), OSError()),
        str(missing_package("statsmodels")),
        library.why_unused(),
    ]
    quotes = re.findall(r"^```\n(?!\$)(?:lcat \w+: |RuntimeWarning: )?(.*)\n```$", TROUBLESHOOTING, re.M)
    for message in messages:
        assert any(matches(quote, message) for quote in quotes), message


def test_no_corner_of_the_square_is_right_for_both_graphs():
    square = runpy.run_path(str(DOCS / "lambda_square.py"))
    close, far = (square["accuracy_over_square"](**regime, points=2) for regime in square["REGIMES"].values())
    (gcn, gat), (_, cat) = close
    assert cat > 0.95 > 0.7 > max(gcn, gat)
    (gcn, gat), (_, cat) = far
    assert gat > 0.95 > 0.8 > max(gcn, cat)
