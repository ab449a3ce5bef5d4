"""Types of command line arguments, and a parser that lets a command prepare its arguments first."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return number


class CommandParser(argparse.ArgumentParser):
    """The parser of one command.

    Attributes:
        prepare: Called with the words of the command line before they are parsed; returns the words to parse. It may add
            options that depend on the words.
        intermixed: Positional arguments may come before, after and between options; argparse alone takes only the first
            group of them.
    """

    prepare: Callable[[list[str]], list[str]] | None = None
    intermixed = False
    _is_parsing = False

    def parse_known_args(  # type: ignore[override]  # argparse declares three overloads; all come here
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        if self._is_parsing or args is None:  # called by parse_known_intermixed_args, or at the top
            return super().parse_known_args(args, namespace)
        words = list(args) if self.prepare is None else self.prepare(list(args))
        if not self.intermixed:
            return super().parse_known_args(words, namespace)
        self._is_parsing = True
        try:
            return self.parse_known_intermixed_args(words, namespace)
        finally:
            self._is_parsing = False
