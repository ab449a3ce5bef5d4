"""Critical-difference diagram: mean ranks on a line, with a bar over models that cannot be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lcat_analysis import figures
from lcat_analysis.ranking import Ranking
from lcat_core.models import display_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR = 0.45  # between two bars, in lines of text
_LINE = 0.2  # inches per line of text


def rank_figure(ranking: Ranking) -> Figure:
    """Draw the diagram; the best model is on the left.

    Bars connect neighbours of which no two differ by the post-hoc test. Half of the names are on each side, as in Demšar (2006).
    """
    models, ranks = list(ranking.mean_ranks.index), ranking.mean_ranks.to_list()
    left = (len(models) + 1) // 2
    depth = _BAR * len(ranking.groups) + 0.4
    with figures.styled():
        height = _LINE * (left + depth + 2.6)
        figure, (ax,) = figures.new_figure(figures.PAGE * 0.72, height)
        low, high = 1, len(models)
        ax.set_xlim(low - 0.45 * (high - low), high + 0.45 * (high - low))
        ax.set_ylim(left + depth + 0.4, -1.3)
        ax.axis("off")
        _draw_scale(ax, low, high)
        for i, group in enumerate(ranking.groups):
            members = [ranking.mean_ranks[model] for model in group]
            y = 0.5 + _BAR * i
            ax.plot(
                [min(members) - 0.04, max(members) + 0.04], [y, y], color=figures.INK, lw=2.4, solid_capstyle="butt"
            )
        for i, (model, rank) in enumerate(zip(models, ranks, strict=True)):
            on_left = i < left
            line = i if on_left else len(models) - 1 - i
            _draw_name(ax, model, rank, depth + line + 0.3, low if on_left else high, "right" if on_left else "left")
    return figure


def _draw_scale(ax: Axes, low: int, high: int) -> None:
    ax.plot([low, high], [0, 0], color=figures.INK, lw=0.8)
    step = max(1, (high - low + 1) // 10)
    for tick in range(low, high + 1, step):
        ax.plot([tick, tick], [0, -0.22], color=figures.INK, lw=0.8)
        ax.text(tick, -0.35, str(tick), ha="center", va="bottom", fontsize=7)
    ax.text((low + high) / 2, -1.25, "mean rank (1 is best)", ha="center", va="bottom", fontsize=7, color=figures.INK)


def _draw_name(ax: Axes, model: str, rank: float, y: float, edge: int, side: str) -> None:
    ax.plot([rank, rank, edge], [0, y, y], color=figures.FAINT, lw=0.7, zorder=0)
    ax.plot(rank, 0, **figures.look(model) | {"linestyle": "none", "markersize": 3.5})
    text = f"{figures.plain(display_name(model))}  {rank:.2f}"
    if side == "left":
        text = f"{rank:.2f}  {figures.plain(display_name(model))}"
    ax.text(edge + (-0.06 if side == "right" else 0.06), y, text, ha=side, va="center", fontsize=7.5)
