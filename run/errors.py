"""The one exception that stands for a mistake of the user's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """What was expected, what came and where, in one message; the command ends with exit status 2."""


def nearest(name: object, options: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the option closest to ``name``, or an empty string."""
    matches = difflib.get_close_matches(str(name), list(options), n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""
