from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "synthetic.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_page_has_code_to_try():
    assert len(SNIPPETS) == 2


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_the_code_of_the_page_runs(snippet):
    names: dict = {}
    exec(compile(snippet, str(PAGE), "exec"), names)
    assert "graph" in names or names["point"]["accuracy"] > 0.9
