"""Errors that users can act on, and the hint for a misspelt name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LcatError(Exception):
    """An error that its message explains completely; a command prints the message and exits with ``exit_status``.

    The message says what is wrong, what was expected, what came instead, and where; :func:`did_you_mean` adds the nearest
    valid name.

    Args:
        message: One sentence, or a few.
        key: The setting that is to blame, if there is one.
    """

    #: 2 for a mistake in the input, 1 for a failure while the command was working.
    exit_status = 2

    def __init__(self, message: str, key: str | None = None):
        super().__init__(message)
        self.key = key


class UserError(LcatError):
    """A mistake on a command line or in a grid."""


class SettingsError(LcatError, ValueError):
    """An invalid key or value in a configuration."""


class DatasetError(LcatError, ValueError):
    """A dataset or split that is missing, damaged, or does not match its parameters."""


class ResultsError(LcatError, ValueError):
    """Results that are missing, damaged, or do not allow what was asked of them."""


class RunBusy(LcatError, RuntimeError):
    """Another process is working on this run."""


class MissingPackage(LcatError, ImportError):
    """An optional package that is not installed."""


class TrainingFailed(LcatError, RuntimeError):
    """A training run that cannot continue, for example because its loss is NaN."""

    exit_status = 1


class SweepFailed(LcatError, RuntimeError):
    """A sweep that cannot continue, for a reason unrelated to any single run."""

    exit_status = 1


def nearest(name: object, options: Iterable[object]) -> str | None:
    """Return the option closest to ``name``, ignoring case, or None if none is close."""
    by_lower_case = {str(option).lower(): str(option) for option in options}
    matches = difflib.get_close_matches(str(name).lower(), list(by_lower_case), n=1)
    return by_lower_case[matches[0]] if matches else None


def did_you_mean(name: object, options: Iterable[object]) -> str:
    """Return ``"; did you mean 'x'?"`` for the option closest to ``name``, or an empty string."""
    match = nearest(name, options)
    return f"; did you mean {match!r}?" if match is not None else ""


def unknown_name(kind: str, name: object, known: Iterable[object], where: str = "") -> str:
    """Return the message for a name that does not exist: the nearest valid one, and all valid ones.

    Args:
        kind: What the name stands for, such as ``"dataset"``.
        name: The name that was given.
        known: The valid names, listed in this order.
        where: Where the name was given, such as ``" in grids/mine.yaml"``.
    """
    listed = [str(option) for option in known]
    hint = did_you_mean(name, listed) or "."
    return f"unknown {kind}{where}: {name!r}{hint} Known: {', '.join(listed) or 'none'}"
