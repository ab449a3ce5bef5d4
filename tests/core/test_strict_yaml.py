from datetime import date

import pytest

from lcat_core.errors import SettingsError, UserError
from lcat_core.strict_yaml import check_plain, parse_scalar, read_generated_yaml, read_yaml


def read(tmp_path, text, **options):
    path = tmp_path / "a.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path, **options)


def test_a_document_is_read(tmp_path):
    assert read(tmp_path, "a: {b: [1, 0.5, x, null, true]}") == {"a": {"b": [1, 0.5, "x", None, True]}}


def test_a_duplicate_key_is_an_error_with_its_line(tmp_path):
    with pytest.raises(UserError, match=r"the key 'b' appears twice .*line 3"):
        read(tmp_path, "a:\n  b: 1\n  b: 2\n")


def test_a_merged_key_may_be_replaced(tmp_path):
    assert read(tmp_path, "a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}")["b"] == {"x": 3, "y": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "a.yaml is not valid YAML: "),
        (b"a: \xff", "a.yaml is not valid YAML: "),
        ("a: 2024-01-31", "in .*a.yaml, a, got datetime.date"),
        ("a: .nan", "expected text, a number, true, false or null"),
        ("a: &a [*a]", "aliases expand it to more than"),
        ("a: !!python/object/apply:os.system [ls]", "is not valid YAML"),
    ],
)
def test_what_a_setting_cannot_be_is_one_message(tmp_path, text, message):
    with pytest.raises(UserError, match=message) as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value)


def test_the_caller_chooses_the_kind_of_error(tmp_path):
    with pytest.raises(SettingsError):
        read(tmp_path, "a: [", error_type=SettingsError)


def test_a_missing_file_is_one_message(tmp_path):
    with pytest.raises(UserError, match=r"none\.yaml cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "value"), [("0.01", 0.01), ("null", None), ("[1, 2]", [1, 2]), ("x", "x"), ("true", True)]
)
def test_a_value_of_the_command_line_is_yaml(text, value):
    assert parse_scalar(text) == value


@pytest.mark.parametrize("text", ["[", "{a: 1, a: 2}", "2024-01-31", ".inf"])
def test_a_bad_value_of_the_command_line_is_an_error(text):
    with pytest.raises(UserError, match="the command line"):
        parse_scalar(text)


def test_nested_values_are_checked_with_their_place():
    with pytest.raises(UserError, match=r"in g\.yaml, axes, x, got datetime"):
        check_plain({"axes": {"x": [date(2024, 1, 31)]}}, "g.yaml")


def test_a_generated_file_is_read_and_a_damaged_one_is_a_value_error(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("a: {b: 1}")
    assert read_generated_yaml(path) == {"a": {"b": 1}}
    path.write_text("a: [")
    with pytest.raises(ValueError, match="not valid YAML"):
        read_generated_yaml(path)


def test_a_mistake_is_shown_with_its_line(tmp_path):
    (tmp_path / "bad.yaml").write_text("a: 1\noptim:\n  base_lr: [0.1\ngnn: 2\n")
    with pytest.raises(UserError, match=r"line 4, 'gnn: 2': expected ',' or '\]', but got ':' .*begun in line 3"):
        read_yaml(tmp_path / "bad.yaml")
