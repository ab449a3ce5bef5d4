"""One look for every figure: colours, sizes, saving. Nothing here touches matplotlib's global state for long.

Sizes are those of a two-column paper (3.3 and 6.9 inches wide) with 8-point text, so that a figure goes in
unscaled. Colours are Okabe and Ito's, which people with any common colour blindness can tell apart; models
differ by marker too.
"""

from __future__ import annotations

import html
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lcat_core.errors import ResultsError, did_you_mean
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
# In the report these become CSS variables, so that dark mode can lighten them.
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
def styled(**changes: object) -> Iterator[None]:
    """The package's style, for the time of a ``with`` block."""
    import matplotlib

    with matplotlib.rc_context({**STYLE, **changes}):
        yield


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: object
) -> tuple[Figure, list[Axes]]:
    """A figure without pyplot, and its axes row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)  # can measure text, which placing labels needs
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def look(model: str, position: int = 0) -> dict[str, object]:
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
    """A name from a file: not read as mathematics, and cut where it would leave no room for the figure."""
    text = str(text).replace("\n", " ")
    text = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
    return text.replace("$", r"\$")


def save(figure: Figure, target: Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write ``figure`` to ``target``: a directory (``<name>.<format>`` each), or a file by its suffix.

    A single format decides about a file too, whatever its suffix.
    """
    is_file = target.suffix and not target.is_dir()
    paths = [target] if is_file else [target / f"{name}.{kind}" for kind in formats]
    for path in paths:
        kind = formats[0] if len(formats) == 1 else path.suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise ResultsError(f"cannot write {path.name}: expected {', '.join(FORMATS)}{did_you_mean(kind, FORMATS)}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with styled(), _quiet_about_glyphs():
            figure.savefig(path, format=kind, metadata=_undated(kind))
    return paths


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """``figure`` as an ``<svg>`` for an HTML page: text in the page's font, colours as CSS variables, ids
    of its own.

    ``name`` (letters and digits) makes the ids unique in the page; ``label`` is read out by screen readers.
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
    width, height = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg).groups()
    # Two pixels a point make 8-point text as large as the page's small print; a narrow screen shrinks it.
    style = f"width: {2 * float(width):.0f}px; max-width: 100%; height: auto"
    head = f'role="img" aria-label="{html.escape(label)}" style="{style}"'
    return svg.replace(f'width="{width}pt" height="{height}pt"', head, 1)


@contextmanager
def _quiet_about_glyphs() -> Iterator[None]:
    """A name in a script that the font lacks is drawn as boxes; a terminal full of warnings helps nobody."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _undated(kind: str) -> dict[str, None]:
    return {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]


def grid_size(panels: int, per_row: int) -> tuple[int, int]:
    """Rows and columns for so many panels."""
    columns = min(panels, per_row)
    return -(-panels // columns), columns
