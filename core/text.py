"""Text for people: numbers of things, and columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def count(number: int, noun: str) -> str:
    """``count(1, "run")`` → ``"1 run"``, ``count(2, "run")`` → ``"2 runs"``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def align_columns(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return one line per row; the columns in ``left`` are aligned on the left, the others on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
