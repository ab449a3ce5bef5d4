"""Names beside points that do not cover each other, the points, or the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

DISTANCES = (5, 11, 18, 26, 36, 48)  # points from the mark
NEAR = 9  # a name further from its mark, in points, needs a line to it
MARK = 3.5  # radius kept free around a point, in points
ANGLES = np.deg2rad([0, 180, 90, 270, 45, 315, 135, 225])


def place_labels(
    axes: Axes,
    anchors: Sequence[tuple[float, float]],
    texts: Sequence[str],
    obstacles: Sequence[tuple[float, float]],
    lines: Sequence[tuple[float, float]] = (),
    **style,
) -> list[Annotation]:
    """Annotate each anchor where its name overlaps least: first right of it, then around, then further away.

    ``obstacles`` are points (in data coordinates) that a name should not cover, ``lines`` samples of lines
    that it had better not cross. Limits of the axes must be final.
    """
    figure = axes.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    pixel = figure.dpi / 72  # pixels a point
    to_pixels = axes.transData.transform
    marks = [_around(*to_pixels(point), MARK * pixel) for point in obstacles]
    marks += [_around(*to_pixels(point), 0.7 * pixel) for point in lines]
    frame = axes.get_window_extent(renderer)
    inside = (frame.x0 + 3, frame.y0 + 3, frame.x1, frame.y1)  # clear of the spines
    taken = []
    if (legend := axes.get_legend()) is not None:
        taken.append(tuple(legend.get_window_extent(renderer).extents))
    annotations = []
    for anchor, text in zip(anchors, texts, strict=True):
        note = axes.annotate(text, anchor, (0, 0), textcoords="offset points", **style)
        size = note.get_window_extent(renderer).size
        places = [_place(to_pixels(anchor), size, d, angle, pixel) for d in DISTANCES for angle in ANGLES]
        costs = [
            4 * sum(_overlap(place.box, other) for other in taken)
            + 4 * (_area(place.box) - _overlap(place.box, inside))
            + 3 * sum(_overlap(place.box, mark) for mark in marks)
            + 3 * place.distance
            + 4 * sum(_overlap(piece, other) for piece in _leader(to_pixels(anchor), place, pixel) for other in taken)
            for place in places
        ]
        best = places[int(np.argmin(costs))]
        note.remove()
        annotations.append(_annotate(axes, anchor, text, best, style))
        taken += [best.box, *_leader(to_pixels(anchor), best, pixel)]
    return annotations


class Place(NamedTuple):
    """Where a name could stand: offset from its mark in points, alignment, and the box it fills in pixels."""

    dx: float
    dy: float
    horizontal: str
    vertical: str
    distance: float
    box: tuple[float, float, float, float]


def _place(mark: np.ndarray, size: np.ndarray, distance: float, angle: float, pixel: float) -> Place:
    dx, dy = distance * np.cos(angle), distance * np.sin(angle)
    horizontal = "left" if dx > 1 else "right" if dx < -1 else "center"
    vertical = "bottom" if dy > 1 else "top" if dy < -1 else "center"
    x, y = mark[0] + dx * pixel, mark[1] + dy * pixel
    left = x - size[0] * {"left": 0, "center": 0.5, "right": 1}[horizontal]
    bottom = y - size[1] * {"bottom": 0, "center": 0.5, "top": 1}[vertical]
    box = (left - 1, bottom - 1, left + size[0] + 1, bottom + size[1] + 1)
    return Place(dx, dy, horizontal, vertical, distance, box)


def _annotate(axes: Axes, anchor: tuple[float, float], text: str, place: Place, style: dict) -> Annotation:
    line = {"arrowstyle": "-", "color": style.get("color"), "lw": 0.4, "shrinkA": 0, "shrinkB": 2}
    note = axes.annotate(
        text,
        anchor,
        (place.dx, place.dy),
        textcoords="offset points",
        ha=place.horizontal,
        va=place.vertical,
        arrowprops=line if place.distance > NEAR else None,
        **style,
    )
    note.set_in_layout(False)  # or the axes would move after the names were placed
    return note


def _leader(mark: np.ndarray, place: Place, pixel: float) -> list[tuple[float, float, float, float]]:
    """The line from a name to its mark, in pieces; none where the name is near."""
    if place.distance <= NEAR:
        return []
    return [_around(*(mark + t * pixel * np.array([place.dx, place.dy])), pixel) for t in np.linspace(0.3, 0.9, 7)]


def _around(x: float, y: float, radius: float) -> tuple[float, float, float, float]:
    return x - radius, y - radius, x + radius, y + radius


def _area(box: tuple[float, float, float, float]) -> float:
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    return _area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))
