"""Names beside points that do not cover each other, the points, or the frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

DISTANCES = (5, 11, 18, 26, 36, 48)  # points from the mark
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
    from matplotlib.text import Text

    figure = axes.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    to_pixels = axes.transData.transform
    marks = [_around(*to_pixels(point), MARK * figure.dpi / 72) for point in obstacles]
    marks += [_around(*to_pixels(point), 0.7 * figure.dpi / 72) for point in lines]
    frame = axes.get_window_extent(renderer)
    taken = []
    if (legend := axes.get_legend()) is not None:
        taken.append(tuple(legend.get_window_extent(renderer).extents))
    annotations = []
    for anchor, text in zip(anchors, texts, strict=True):
        best = None
        for distance in DISTANCES:
            for angle in ANGLES:
                note = _annotate(axes, anchor, text, distance, angle, style)
                note.update_positions(renderer)
                box = Text.get_window_extent(note, renderer)  # the text alone, without the line to its mark
                extent = (box.x0 - 1, box.y0 - 1, box.x1 + 1, box.y1 + 1)
                outside = _area(extent) - _overlap(extent, (frame.x0 + 3, frame.y0 + 3, frame.x1, frame.y1))
                cost = sum(_overlap(extent, other) for other in taken) * 4 + outside * 4
                cost += sum(_overlap(extent, mark) for mark in marks) * 3 + distance * 3
                if best is None or cost < best[0]:
                    if best is not None:
                        best[1].remove()
                    best = (cost, note, extent)
                else:
                    note.remove()
        annotations.append(best[1])
        taken.append(best[2])
    return annotations


def _annotate(
    axes: Axes, anchor: tuple[float, float], text: str, distance: float, angle: float, style: dict
) -> Annotation:
    dx, dy = distance * np.cos(angle), distance * np.sin(angle)
    horizontal = "left" if dx > 1 else "right" if dx < -1 else "center"
    vertical = "bottom" if dy > 1 else "top" if dy < -1 else "center"
    # A name far from its mark needs a line to it.
    line = (
        {"arrowstyle": "-", "color": style.get("color"), "lw": 0.4, "shrinkA": 0, "shrinkB": 2}
        if distance > 9
        else None
    )
    note = axes.annotate(
        text,
        anchor,
        (dx, dy),
        textcoords="offset points",
        ha=horizontal,
        va=vertical,
        arrowprops=line,
        **style,
    )
    note.set_in_layout(False)  # or the axes would move after the names were placed
    return note


def _around(x: float, y: float, radius: float) -> tuple[float, float, float, float]:
    return x - radius, y - radius, x + radius, y + radius


def _area(box: tuple[float, float, float, float]) -> float:
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    return _area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))
