"""The exceptions of this package, and the hint that goes with a misspelt name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AnalysisError(ValueError):
    """What the analysis needs and did not find: one message with what was expected, what came, and where."""


class NotRecorded(AnalysisError):
    """The results do not hold what a figure shows. A report goes without it, whereas a file that cannot be read is named."""


def nearest(name: object, options: Iterable[object]) -> str:
    """``"; did you mean 'x'?"`` for the option closest to ``name``, or an empty string."""
    matches = difflib.get_close_matches(str(name), [str(option) for option in options], n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""
