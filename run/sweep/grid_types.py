"""A grid as data: what its file says, with presets filled in and all keys flat."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lcat_core.settings import Settings


@dataclass(frozen=True)
class Axis:
    """One dimension of a grid: its name, and what each of its values sets."""

    name: str
    points: tuple[Settings, ...]

    @property
    def keys(self) -> set[str]:
        return {key for point in self.points for key in point}

    @property
    def values(self) -> list[Any]:
        """The values as a grid file writes them; mappings if the axis links several keys."""
        is_plain = self.keys == {self.name}
        return [point[self.name] if is_plain else dict(point) for point in self.points]


@dataclass(frozen=True)
class Rule:
    """An entry of ``override``: what ``set`` changes in the runs that match ``when``."""

    when: Settings
    set: Settings


@dataclass(frozen=True)
class Block:
    """A product of models, axes and seeds."""

    models: dict[str, Settings]
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    set: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Grid:
    """A grid.

    Attributes:
        blocks: The grid's own product, then one per entry of ``include``.
        source: The path of its file.
        where: Where its settings come from, for messages.
        document: The grid to record in the sweep's folder, with the settings of the command line applied.
    """

    name: str
    base: str | None
    blocks: tuple[Block, ...]
    override: tuple[Rule, ...]
    exclude: tuple[Settings, ...]
    source: str
    where: str
    document: dict[str, Any]

    @property
    def models(self) -> dict[str, Settings]:
        return self.blocks[0].models
