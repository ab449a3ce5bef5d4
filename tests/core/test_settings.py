import pytest

from lcat_core.errors import SettingsError, UserError
from lcat_core.settings import coerce, coerce_all, coerce_if_possible, flatten, parse_overrides, type_name


def test_nested_keys_become_flat_and_flat_ones_stay():
    assert flatten({"optim": {"base_lr": 1, "x": {"y": 2}}, "a.b": 3}) == {
        "optim.base_lr": 1,
        "optim.x.y": 2,
        "a.b": 3,
    }


def test_tuples_become_lists():
    assert flatten({"a": (1, 2)}) == {"a": [1, 2]}


def test_a_key_that_is_flat_and_nested_is_an_error():
    with pytest.raises(SettingsError, match=r"'a\.b' appears twice in x\.yaml") as error:
        flatten({"a.b": 1, "a": {"b": 2}}, "x.yaml", SettingsError)
    assert error.value.key == "a.b"


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [
        (1, 0.5, 1.0),
        ("1e-3", 0.5, 0.001),
        (2, 1, 2),
        ("x", "y", "x"),
        (True, False, True),
        ([1, "2e-1"], [0.5], [1.0, 0.2]),
        ((1, 2), [], [1, 2]),
        ("anything", None, "anything"),
    ],
)
def test_a_value_gets_the_type_of_its_default(value, default, expected):
    result = coerce(value, default)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "default"),
    [(0.5, 1), ("x", 1.0), (True, 1), (1, True), (True, 1.0), ("nan", 1.0), (float("inf"), 1.0), (1, "x"), ("x", [])],
)
def test_a_value_of_another_type_is_an_error_but_may_be_kept_for_a_later_check(value, default):
    with pytest.raises(TypeError, match=f"expected {type_name(default)} such as"):
        coerce(value, default)
    assert coerce_if_possible(value, default) is value


def test_a_list_stands_for_alternatives_unless_the_default_is_one():
    assert coerce_if_possible(["1e-3", 1], 0.5) == [0.001, 1.0]
    assert coerce_if_possible([1], [0.5]) == [1.0]


def test_a_number_that_is_too_large_is_kept():
    assert coerce_if_possible(10**400, 0.5) == 10**400


def test_all_values_are_coerced_and_unknown_keys_kept():
    assert coerce_all({"a": "1e-3", "b": "x"}, {"a": 0.5}) == {"a": 0.001, "b": "x"}


def test_overrides_are_pairs():
    assert parse_overrides(["optim.base_lr", "0.005", "seeds", "[1, 2]"]) == {"optim.base_lr": 0.005, "seeds": [1, 2]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "the last key has no value: 'a'"),
        (["a", "1", "a", "2"], "'a' appears twice on the command line"),
        (["a", "["], r"the value '\[' on the command line is not valid YAML"),
    ],
)
def test_wrong_overrides_are_one_message(words, message):
    with pytest.raises(UserError, match=message):
        parse_overrides(words)
