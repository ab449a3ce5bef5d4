"""What a section of the report consists of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lcat_analysis import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class Block:
    """A figure, a table or a text; collapsed behind ``summary`` if that is set."""

    svg: str = ""
    caption: str = ""
    table: str = ""
    notes: list[str] = field(default_factory=list)
    text: str = ""
    summary: str = ""
    open: bool = False


@dataclass
class Section:
    """One section of the page; ``cards`` count the verdicts of each pair."""

    id: str
    title: str
    lead: str = ""
    cards: list[tuple[str, list[tuple[str, int]]]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def figure_block(figure: Figure, name: str, caption: str) -> Block:
    """Return a figure as a block; ``name`` makes its ids unique in the page."""
    return Block(svg=figures.inline_svg(figure, name, caption), caption=caption)
