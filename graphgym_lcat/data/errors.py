"""The one exception of this package."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DatasetError(ValueError):
    """A dataset, a split or its parameters are not as they must be; the message says what to do."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> DatasetError:
    """The error for a name that does not exist, with the nearest one that does."""
    known = sorted(known)
    by_lower_case = {option.lower(): option for option in known}
    close = difflib.get_close_matches(str(name).lower(), by_lower_case, n=1)
    hint = f"; did you mean {by_lower_case[close[0]]!r}?" if close else "."
    return DatasetError(f"unknown {kind} {name!r}{hint} Known: {', '.join(known) or 'none'}")
