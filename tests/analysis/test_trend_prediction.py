"""The prediction of docs/trend.md is what its script computes from the published numbers."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_table_that_the_script_prints(capsys):
    runpy.run_path(str(ROOT / "docs" / "trend_prediction.py"), run_name="__main__")
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = (ROOT / "docs" / "trend.md").read_text(encoding="utf-8").splitlines()
    assert table == [line for line in page if line.startswith("|")]
