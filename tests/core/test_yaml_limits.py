"""Documents that would hang or exhaust memory, and values that no setting can have, get one clear message."""

import pytest

from lcat_core.errors import UserError
from lcat_core.strict_yaml import parse_scalar, read_generated_yaml, read_yaml

ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
MERGES = "m0: &m0 {k: 1}\n" + "".join(f"m{n}: &m{n}\n  <<: [{', '.join([f'*m{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(ALIASES, "aliases expand it to more than", id="aliases"),
        pytest.param(MERGES, "aliases expand it to more than", id="merges"),
        pytest.param("a: &a [*a]", "aliases expand it", id="contains itself"),
        pytest.param("a: " + "[" * 5000 + "]" * 5000, "nested more than 50 levels deep", id="deep"),
        pytest.param("a: 2001-99-99", "invalid value '2001-99-99'", id="date"),
        pytest.param("a: !!timestamp x", "invalid value 'x'", id="timestamp"),
        pytest.param("a: !!int ''", "invalid value", id="empty int"),
        pytest.param("a: !!int x", "is not valid YAML", id="int tag"),
        pytest.param("a: " + "9" * 5000, "is not valid YAML", id="5000 digits"),
        pytest.param("a: " + "9" * 400, "expected text, a number", id="400 digits"),
        pytest.param("a: .inf", "expected text, a number", id="infinity"),
        pytest.param("a: 2001-01-01", "expected text, a number", id="valid date"),
        pytest.param('a: "\\ud800"', "expected text, a number", id="half a character"),
        pytest.param('"\\ud800": a', "expected text as a key", id="half a character as a key"),
        pytest.param("a: 1\na: 2", "the key 'a' appears twice", id="duplicate"),
        pytest.param("? [1, 2]\n: 3", "is not valid YAML|expected", id="list as key"),
        pytest.param("a: !!python/object/apply:os.system [ls]", "could not determine a constructor", id="object"),
    ],
)
def test_hostile_documents_are_refused_in_one_short_line(tmp_path, text, message):
    path = tmp_path / "grid.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        read_yaml(path)
    assert len(str(caught.value)) < 1000 and "\n" not in str(caught.value)


def test_a_huge_file_is_refused_without_reading_it(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("a: " + "x" * (5 * 2**20))
    with pytest.raises(UserError, match="larger than"):
        read_yaml(path)


def test_ordinary_aliases_are_fine(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("a: &a {x: 1}\nb: {<<: *a, y: 2}\n")
    assert read_yaml(path) == {"a": {"x": 1}, "b": {"x": 1, "y": 2}}


@pytest.mark.parametrize("length", [10_000, 10_000_000])
def test_a_long_value_on_the_command_line_is_shortened_in_the_message(length):
    with pytest.raises(UserError) as caught:
        parse_scalar("[" + "x" * length)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("text", ["a\nb", "'a\n\nb'", "a\r\nb"])
def test_a_line_break_is_not_read_as_a_space(text):
    with pytest.raises(UserError, match="has a line break"):
        parse_scalar(text)


@pytest.mark.parametrize(("text", "value"), [('"a\\nb"', "a\nb"), ("[1,\n 2]", [1, 2])])
def test_line_breaks_that_are_meant_are_kept(text, value):
    assert parse_scalar(text) == value


@pytest.mark.parametrize("text", [ALIASES, "a: 2001-99-99", "a: " + "[" * 5000])
def test_generated_files_have_the_same_limits(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match="not valid YAML"):
        read_generated_yaml(path)
