"""The common style of all figures: colours, sizes, saving. matplotlib's global settings stay as they are.

Widths are those of a two-column paper (3.3 and 6.9 inches) with 8-point text, so that a figure needs no scaling. The colours are
Okabe and Ito's, which people with the common kinds of colour blindness can distinguish; models also differ by marker.
"""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcat_core.errors import ResultsError, did_you_mean
from lcat_core.files import write_atomically
from lcat_core.models import MODELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.9  # inches
LONGEST_NAME = 28
FORMATS = ("png", "svg", "pdf")
INK, FAINT = "#1b1f24", "#8b949e"
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7f7f7f",
)  # fmt: skip
CYCLE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY)
MARKERS = "ov^sDPX"
# In the report these become CSS variables, so that dark mode can use lighter ones.
CSS_NAMES = {
    INK: "ink", FAINT: "faint", BLUE: "blue", ORANGE: "orange", GREEN: "green", RED: "red", PURPLE: "purple",
    SKY: "sky", GREY: "grey",
}  # fmt: skip

STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "pdf.fonttype": 42,  # TrueType: text stays text, and journals accept it
    "svg.hashsalt": "lcat",  # the same figure gives the same file
    "savefig.dpi": 300,
    "figure.constrained_layout.use": True,
}
#: Colour and marker by the kind of a model (see ``lcat_core.models``).
KIND_LOOKS = {
    "dense": (INK, "x"),
    "base": (GREEN, "^"),
    "gat": (ORANGE, "s"),
    "cat": (BLUE, "o"),
    "lcat": (RED, "D"),
}


@contextmanager
def styled(**changes: Any) -> Iterator[None]:
    """Use the style of the package within a ``with`` block."""
    import matplotlib

    with matplotlib.rc_context({**STYLE, **changes}):
        yield


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Create a figure without pyplot; return it and its axes, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)  # can measure text, which the placement of labels needs
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def new_panels(
    count: int, per_row: int, row_height: float, extra_height: float = 0.0, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Create a figure with ``count`` panels in rows of ``per_row``; a single panel is a little wider than a column."""
    columns = min(count, per_row)
    rows = -(-count // columns)
    width = PAGE if columns > 1 else COLUMN * 1.3
    figure, axes = new_figure(width, row_height * rows + extra_height, rows, columns, **options)
    for ax in axes[count:]:
        ax.remove()
    return figure, axes[:count]


def legend_above(figure: Figure, axes: Axes, **options: Any) -> None:
    """Draw the legend of one panel above all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 8), **options)


def look(model: str, position: int = 0) -> dict[str, Any]:
    """Return colour, marker and line style of a model; those with the GATv2 score are dashed and hollow.

    A model without a look of its own takes the next colour, by its position among the models of the figure.
    """
    row = MODELS.get(model)
    other = CYCLE[position % len(CYCLE)], MARKERS[position % len(MARKERS)]
    colour, marker = KIND_LOOKS.get(row.kind, other) if row else other
    is_second = row is not None and row.score == "gatv2"
    hollow = {"markerfacecolor": "white"} if is_second else {}
    return {"color": colour, "marker": marker, "linestyle": "--" if is_second else "-", **hollow}


def plain(text: object) -> str:
    """Prepare a name from a file: not parsed as mathematics, and cut if it would leave no room for the figure."""
    text = str(text).replace("\n", " ")
    text = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
    return text.replace("$", r"\$")


def save(figure: Figure, target: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write ``figure`` to ``target``: a directory (``<name>.<format>`` each), or a file whose suffix is the format.

    If ``formats`` has a single entry, a file gets that format whatever its suffix.
    """
    is_file = target.suffix and not target.is_dir()
    paths = [target] if is_file else [target / f"{name}.{kind}" for kind in formats]
    for path in paths:
        kind = formats[0] if len(formats) == 1 else path.suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise ResultsError(f"cannot write {path.name}: expected {', '.join(FORMATS)}{did_you_mean(kind, FORMATS)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with styled(), _quiet_about_glyphs():
            write_atomically(path, partial(figure.savefig, format=kind, metadata=_undated(kind)))
    return paths


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """Return ``figure`` as an ``<svg>`` for an HTML page, with text in the page's font and colours as CSS variables.

    ``name`` (letters and digits) makes the ids unique in the page; screen readers read ``label``.
    """
    buffer = io.StringIO()
    with styled(**{"svg.fonttype": "none"}), _quiet_about_glyphs():
        figure.savefig(buffer, format="svg", metadata=_undated("svg"), transparent=True)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'((?:href="|url\()#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"font: ([\d.]+)px '[^;\"]*", r"font-size: \1px; font-family: inherit", svg)
    for colour, variable in CSS_NAMES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = svg.replace("fill: #ffffff", "fill: var(--paper)").replace("fill: white", "fill: var(--paper)")
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg)
    assert size is not None  # matplotlib writes both
    width, height = size.groups()
    # At two pixels per point, 8-point text is as large as the page's small print; a narrow screen shrinks the figure.
    style = f"width: {2 * float(width):.0f}px; max-width: 100%; height: auto"
    head = f'role="img" aria-label="{html.escape(label)}" style="{style}"'
    return svg.replace(f'width="{width}pt" height="{height}pt"', head, 1)


@contextmanager
def _quiet_about_glyphs() -> Iterator[None]:
    """Silence warnings about characters that the font lacks; they are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _undated(kind: str) -> dict[str, None]:
    return {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
