"""The values that a key of the configuration may have: a description for messages and documentation, and a test."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch

Names = Collection[str] | Callable[[], Collection[str]]


@dataclass(frozen=True)
class Range:
    """The values that a key may have.

    Attributes:
        description: In words; empty for "one of" ``names``.
        contains: Whether a value is allowed.
        names: The allowed names, or those to suggest for a misspelt one. Registries stay current: they are read when needed.
    """

    description: str
    contains: Callable[[Any], bool]
    names: Names = ()

    @property
    def choices(self) -> list[str]:
        return list(self.names() if callable(self.names) else self.names)

    @property
    def text(self) -> str:
        return self.description or "one of " + ", ".join(repr(choice) for choice in self.choices)


def one_of(names: Names) -> Range:
    return Range("", lambda value: value in (names() if callable(names) else names), names)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole_number(low: int) -> Range:
    return Range(f"a whole number of at least {low}", lambda value: is_whole_number(value) and value >= low)


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_device(value: Any) -> bool:
    """Whether torch knows the name; the machine that plans a sweep need not have the device."""
    try:
        return value == "auto" or bool(torch.device(value))
    except RuntimeError:
        return False


FLAG = Range("true or false", lambda value: isinstance(value, bool))
LAMBDA = Range(
    "a number in [0, 1], or null or 'learn' to learn it",
    lambda value: value is None or value == "learn" or (is_number(value) and 0 <= value <= 1),
)
UNIT = Range("a number in [0, 1]", lambda value: is_number(value) and 0 <= value <= 1)
BELOW_ONE = Range("a number in [0, 1)", lambda value: is_number(value) and 0 <= value < 1)
NUMBER = Range("a number", is_number)
NOT_NEGATIVE = Range("a number of at least 0", lambda value: is_number(value) and 0 <= value < math.inf)
POSITIVE = Range("a positive number", lambda value: is_number(value) and 0 < value < math.inf)
OPTIONAL_POSITIVE = Range("null or a positive number", lambda value: value is None or POSITIVE.contains(value))
OPTIONAL_SIZE = Range(
    "null or a whole number of at least 1", lambda value: value is None or (is_whole_number(value) and value >= 1)
)
SEED = Range("a whole number from 0 to 2**32 - 1", lambda value: is_whole_number(value) and 0 <= value < 2**32)
TEXT = Range("text", lambda value: isinstance(value, str))
NAMES = Range("a list of names", lambda value: _is_list_of_text(value) and len(value) > 0)
MODULES = Range("a list of modules", _is_list_of_text)
DEVICE = Range("'auto' or a device of torch such as 'cpu' or 'cuda'", _is_device, ("auto", "cpu", "cuda"))
NEIGHBOR_SIZES = Range(
    "a list of whole numbers, -1 for all neighbours",
    lambda value: isinstance(value, list) and all(is_whole_number(size) and size >= -1 for size in value),
)
