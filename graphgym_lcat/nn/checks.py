"""Checks of arguments. Errors say what was expected, what came, and the nearest valid name."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real

from torch import Tensor

from lcat_core.errors import did_you_mean


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raises unless ``value`` is one of ``choices``."""
    if value in choices:
        return
    listed = ", ".join(repr(choice) for choice in choices)
    raise ValueError(f"`{name}` must be one of {listed}, got {value!r}{did_you_mean(value, choices)}")


def check_unit_interval(name: str, value: object) -> float:
    """``value`` as a float, if it is a number in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be 'learn' or a number in [0, 1], got {value!r}")
    number = float(value)
    if not 0 <= number <= 1:
        raise ValueError(f"`{name}` must be 'learn' or a number in [0, 1], got {value}")
    return number


def check_positive(name: str, value: object) -> int:
    """``value`` as an int, if it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}")
    return int(value)


def check_features(name: str, x: object, channels: int) -> None:
    """Raises unless ``x`` holds the features of one set of nodes, with ``channels`` channels (−1: any number)."""
    if not isinstance(x, Tensor):
        raise TypeError(f"`{name}` must be a tensor [nodes, channels], got {type(x).__name__}")
    if x.dim() != 2:
        raise ValueError(f"`{name}` must have shape [nodes, channels], got {list(x.shape)}")
    if channels != -1 and x.size(1) != channels:
        raise ValueError(f"`{name}` must have {channels} channels, got {x.size(1)}")
