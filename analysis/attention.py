"""The attention of a trained run: how far its coefficients are from an average, and on which nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lcat_analysis import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BINS = 60
_DEGREE_BINS = 14
_SHOWN_HEADS = 8


@dataclass(frozen=True)
class Attention:
    """Coefficients of one layer.

    Attributes:
        receivers: The receiver of every edge, ``[edges]``.
        alpha: Coefficients, ``[edges, heads]``; those of one receiver sum to 1.
        lambdas: λ1 and λ2 as text.
    """

    receivers: np.ndarray
    alpha: np.ndarray
    lambdas: str = ""

    @property
    def degrees(self) -> np.ndarray:
        """The number of coefficients of every node."""
        return np.bincount(self.receivers)

    def relative(self) -> np.ndarray:
        """Return coefficients relative to an average over the neighbours, which is 1, ``[edges, heads]``."""
        return self.alpha * self.degrees[self.receivers][:, None]

    def entropy(self) -> np.ndarray:
        """Return the entropy of every node's coefficients, ``[nodes, heads]``; 1 is an average, 0 a single neighbour.

        Nodes with fewer than two coefficients have none: NaN.
        """
        terms = np.where(self.alpha > 0, -self.alpha * np.log(np.maximum(self.alpha, 1e-300)), 0.0)
        sums = np.stack([np.bincount(self.receivers, weights=column) for column in terms.T], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.degrees[:, None] > 1, sums / np.log(self.degrees)[:, None], np.nan)


def attention_figure(layers: Sequence[Attention]) -> Figure:
    """Draw one column per layer: a histogram of the coefficients, and their entropy against the degree, one line per head."""
    columns = len(layers)
    width = max(figures.COLUMN, min(figures.PAGE, 1.8 * columns + 0.6))
    figure, axes = figures.new_figure(width, 3.9, 2, columns, sharey="row")
    with figures.styled():
        for number, layer in enumerate(layers):
            top, bottom = axes[number], axes[columns + number]
            _draw_histogram(top, layer)
            _draw_entropy(bottom, layer)
            top.set_title(f"layer {number + 1}" + (f"\n{layer.lambdas}" if layer.lambdas else ""))
        axes[0].set_ylabel("share of edges")
        axes[columns].set_ylabel("entropy (1: average)")
        if layers[0].alpha.shape[1] > 1:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 4 if columns > 1 else 2))
    return figure


def _draw_histogram(ax: Axes, layer: Attention) -> None:
    values = layer.relative()
    several = values[layer.degrees[layer.receivers] > 1]  # a single neighbour always has the coefficient 1
    top = max(2.0, float(np.quantile(several, 0.995))) if several.size else 2.0
    edges = np.linspace(0, top, _BINS)
    for head, column in enumerate(several.T[:_SHOWN_HEADS]):
        share = np.histogram(np.minimum(column, top), edges)[0] / max(1, len(column))
        colour = figures.CYCLE[head % len(figures.CYCLE)]
        ax.stairs(share, edges, label=f"head {head + 1}", color=colour, linewidth=0.9)
    ax.axvline(1, color=figures.INK, linewidth=0.6, linestyle=":")
    ax.set_xlabel("coefficient × degree")
    ax.set_yscale("log")


def _draw_entropy(ax: Axes, layer: Attention) -> None:
    entropy, degrees = layer.entropy(), layer.degrees
    usable = degrees > 1
    if usable.any():
        bounds = np.unique(np.geomspace(2, degrees.max() + 1, _DEGREE_BINS).round().astype(int))
        bin_of = np.digitize(degrees, bounds)
        for head in range(min(entropy.shape[1], _SHOWN_HEADS)):
            means = [
                (degrees[usable & (bin_of == b)].mean(), entropy[usable & (bin_of == b), head].mean())
                for b in np.unique(bin_of[usable])
            ]
            x, y = zip(*means, strict=True)
            ax.plot(x, y, marker=".", color=figures.CYCLE[head % len(figures.CYCLE)], linewidth=0.9)
    ax.axhline(1, color=figures.INK, linewidth=0.6, linestyle=":")
    ax.set_xscale("log")
    ax.set_ylim(-0.03, 1.06)
    ax.set_xlabel("degree with self-loop")
