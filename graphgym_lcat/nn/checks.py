"""Errors for arguments: what was expected, what came, and the nearest right name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from numbers import Integral, Real

from torch import Tensor


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raises if ``value`` is none of ``choices``."""
    if value in choices:
        return
    listed = ", ".join(repr(choice) for choice in choices)
    close = difflib.get_close_matches(str(value), choices, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"`{name}` must be one of {listed}, got {value!r}{hint}")


def check_unit_interval(name: str, value: object) -> float:
    """``value`` as a float, if it is a number in [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be 'learn' or a number in [0, 1], got {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"`{name}` must be 'learn' or a number in [0, 1], got {value}")
    return float(value)


def check_positive(name: str, value: object) -> int:
    """``value``, if it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}")
    return int(value)


def check_features(name: str, x: object, channels: int) -> None:
    """Raises unless ``x`` are features of one set of nodes, of so many channels (−1: any number)."""
    if not isinstance(x, Tensor):
        raise TypeError(f"`{name}` must be a tensor [nodes, channels], got {type(x).__name__}")
    if x.dim() != 2:
        raise ValueError(f"`{name}` must have shape [nodes, channels], got {list(x.shape)}")
    if channels != -1 and x.size(1) != channels:
        raise ValueError(f"`{name}` must have {channels} channels, got {x.size(1)}")
