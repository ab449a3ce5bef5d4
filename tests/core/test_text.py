import pytest

from lcat_core.text import align_columns, count


@pytest.mark.parametrize(("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs")])
def test_plural_forms(number, text):
    assert count(number, "run") == text


def test_columns_are_aligned():
    rows = [["name", "number"], ["a", "1"], ["longer", "100"]]
    assert align_columns(rows) == ["name    number", "a            1", "longer     100"]
    assert align_columns(rows, left=(0, 1)) == ["name    number", "a       1", "longer  100"]
