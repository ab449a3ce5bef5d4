"""Labels beside points that cover neither each other, nor the points, nor the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

DISTANCES = (5, 11, 18, 26, 36, 48)  # from the marker, in points
NEAR = 9  # a label farther from its marker, in points, needs a line to it
MARK = 3.5  # radius kept free around a marker, in points
ANGLES = np.deg2rad([0, 180, 90, 270, 45, 315, 135, 225])


#: Left, bottom, right and top, in pixels.
Box = tuple[float, float, float, float]


def place_labels(
    axes: Axes,
    anchors: Sequence[tuple[float, float]],
    texts: Sequence[str],
    obstacles: Sequence[tuple[float, float]],
    lines: Sequence[tuple[float, float]] = (),
    **style: Any,
) -> list[Annotation]:
    """Label each anchor where the text overlaps least: preferably to its right, then around it, then farther away.

    Args:
        anchors: Points in data coordinates.
        texts: One label per anchor.
        obstacles: Points that a label should not cover.
        lines: Samples of lines that a label should not cross.
        style: Options of the text.

    The limits of the axes must be final.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.canvas.draw()
    renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]  # new_figure gives it an Agg canvas
    pixel = figure.dpi / 72  # pixels per point
    to_pixels = axes.transData.transform
    marks = np.array(
        [_around(to_pixels(point), MARK * pixel) for point in obstacles]
        + [_around(to_pixels(point), 0.7 * pixel) for point in lines]
    ).reshape(-1, 4)
    frame = axes.get_window_extent(renderer)
    inside = (frame.x0 + 3, frame.y0 + 3, frame.x1, frame.y1)  # clear of the spines
    taken: list[Box] = []
    if (legend := axes.get_legend()) is not None:
        left, bottom, right, top = legend.get_window_extent(renderer).extents
        taken.append((left, bottom, right, top))
    annotations = []
    for anchor, text in zip(anchors, texts, strict=True):
        note = axes.annotate(text, anchor, (0, 0), textcoords="offset points", **style)
        size = np.asarray(note.get_window_extent(renderer).size)
        places = [_place(to_pixels(anchor), size, d, angle, pixel) for d in DISTANCES for angle in ANGLES]
        others = np.array(taken).reshape(-1, 4)
        costs = [
            4 * _overlap(place.box, others)
            + 4 * (_area(place.box) - _overlap(place.box, np.array([inside])))
            + 3 * _overlap(place.box, marks)
            + 3 * place.distance
            + 4 * sum(_overlap(piece, others) for piece in _leader(to_pixels(anchor), place, pixel))
            for place in places
        ]
        best = places[int(np.argmin(costs))]
        note.remove()
        annotations.append(_annotate(axes, anchor, text, best, style))
        taken += [best.box, *_leader(to_pixels(anchor), best, pixel)]
    return annotations


class Place(NamedTuple):
    """A candidate position of a label: offset from its marker in points, alignment, and the box it fills in pixels."""

    dx: float
    dy: float
    horizontal: str
    vertical: str
    distance: float
    box: Box


def _place(mark: np.ndarray, size: np.ndarray, distance: float, angle: float, pixel: float) -> Place:
    dx, dy = distance * np.cos(angle), distance * np.sin(angle)
    horizontal = "left" if dx > 1 else "right" if dx < -1 else "center"
    vertical = "bottom" if dy > 1 else "top" if dy < -1 else "center"
    x, y = mark[0] + dx * pixel, mark[1] + dy * pixel
    left = x - size[0] * {"left": 0, "center": 0.5, "right": 1}[horizontal]
    bottom = y - size[1] * {"bottom": 0, "center": 0.5, "top": 1}[vertical]
    box = (left - 1, bottom - 1, left + size[0] + 1, bottom + size[1] + 1)
    return Place(dx, dy, horizontal, vertical, distance, box)


def _annotate(axes: Axes, anchor: tuple[float, float], text: str, place: Place, style: dict[str, Any]) -> Annotation:
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
    note.set_in_layout(False)  # otherwise the axes would move after the labels were placed
    return note


def _leader(mark: np.ndarray, place: Place, pixel: float) -> list[Box]:
    """Return pieces of the line from a label to its marker; none if the label is near."""
    if place.distance <= NEAR:
        return []
    return [_around(mark + t * pixel * np.array([place.dx, place.dy]), pixel) for t in np.linspace(0.3, 0.9, 7)]


def _around(center: np.ndarray, radius: float) -> Box:
    x, y = center
    return x - radius, y - radius, x + radius, y + radius


def _area(box: Box) -> float:
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def _overlap(box: Box, others: np.ndarray) -> float:
    """Return the area that a box shares with others, ``[n, 4]``."""
    width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    return float((width.clip(min=0) * height.clip(min=0)).sum())
