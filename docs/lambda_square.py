"""Draw docs/images/lambda_square.png: the square of λ1 and λ2, and the accuracy at each of its points on two kinds of graph.

python docs/lambda_square.py

The graphs are small samples of the paper's contextual stochastic block model, and the layer is its one-layer model (see
synthetic.md). At every point of the square, the layer's free parameter C is the best of twelve candidates.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from graphgym_lcat.data.csbm import CSBM, sample_adjacency, sample_communities, sample_projection
from graphgym_lcat.synthetic.experiment import run_point
from graphgym_lcat.synthetic.models import Ansatz, attend, convolve, neighbour_sums
from lcat_analysis import figures

IMAGES = Path(__file__).parent / "images"
NODES, SEED, SLOPE = 500, 0, 0.01
POINTS = 13  # per side of the square
CANDIDATES = np.linspace(0.1, 1.2, 12)  # for C, in units of the distance between the means
STEPS = (1, 2, 4, 7, 12, 20, 35, 60, 100)  # training steps after which λ is drawn
REGIMES = {
    "graph 1: CAT works, GAT fails": {"q": 0.1, "mu_norm": 0.1},
    "graph 2: GAT works, CAT fails": {"q": 0.4, "mu_norm": 4.29},
}


def accuracy_over_square(q: float, mu_norm: float, points: int = POINTS) -> np.ndarray:
    """Return the accuracy at λ1 (columns) and λ2 (rows), both from 0 to 1."""
    graph = CSBM(NODES, q=q, mu_norm=mu_norm)
    adjacency = sample_adjacency(NODES, graph.p, q, SEED)
    z = sample_projection(graph, SEED).float()
    is_outer = sample_communities(NODES, SEED) != 0
    sums, degrees = neighbour_sums(torch.stack([z, torch.ones_like(z)], dim=1), adjacency).T
    ansatz = Ansatz(SLOPE, scale=7 / mu_norm)

    def accuracy(lambda1: float, lambda2: float) -> float:
        score_input = convolve(z, sums, degrees, lambda2)
        accuracies = []
        for m in CANDIDATES * mu_norm:
            mean = attend(score_input, z[:, None], adjacency, m, ansatz, lambda1)[:, 0]
            accuracies.append(((mean >= m / 2) == is_outer).double().mean().item())
        return max(accuracies)

    side = np.linspace(0, 1, points)
    return np.array([[accuracy(lambda1, lambda2) for lambda1 in side] for lambda2 in side])


def learned_path(q: float, mu_norm: float) -> np.ndarray:
    """Return (λ1, λ2) of L-CAT from the start to the end of its training."""
    settings = {"n": NODES, "q": q, "mu_norm": mu_norm, "seed": SEED, "slope": SLOPE, "logit_gain": 8.0}
    ends = [run_point("lcat", learned=True, steps=steps, **settings) for steps in STEPS]
    return np.array([(0.5, 0.5), *((end["lambda1"], end["lambda2"]) for end in ends)])


def draw_names(ax: Axes) -> None:
    ax.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0], color=figures.FAINT, lw=0.8)
    ax.plot([0, 0], [0, 1], color=figures.GREEN, lw=3, solid_capstyle="butt")
    ax.plot([1], [0], color=figures.ORANGE, marker="s", ms=7, clip_on=False)
    ax.plot([1], [1], color=figures.BLUE, marker="o", ms=7, clip_on=False)
    ax.plot([0.5], [0.5], color=figures.RED, marker="D", ms=6)
    names = {"GCN": (0.05, 0.72, "left"), "GAT": (0.94, 0.06, "right"), "CAT": (0.94, 0.88, "right")}
    for name, (x, y, side) in names.items():
        ax.text(x, y, name, ha=side, weight="bold")
    ax.text(0.5, 0.57, "L-CAT starts here", ha="center")
    ax.text(0.5, 0.02, "attend more →", ha="center", fontsize=7, color=figures.GREY)
    ax.text(0.97, 0.48, "convolve first →", rotation=90, va="center", ha="right", fontsize=7, color=figures.GREY)
    ax.set_title("one layer, two learned scalars")


def draw_regime(ax: Axes, settings: dict[str, float]) -> AxesImage:
    image = ax.imshow(
        100 * accuracy_over_square(**settings),
        origin="lower",
        extent=(0, 1, 0, 1),
        vmin=40,
        vmax=100,
        cmap="cividis",
        interpolation="bilinear",
    )
    path = learned_path(**settings)
    ax.plot(*path.T, color=figures.RED, lw=1.2, marker=".", ms=3, clip_on=False)
    ax.plot(*path[-1], color=figures.RED, marker="D", ms=6, markeredgecolor="white", clip_on=False)
    for name, x, y in (("GCN", 0.02, 0.72), ("GAT", 0.73, 0.03), ("CAT", 0.73, 0.9)):
        ax.text(
            x,
            y,
            name,
            fontsize=7,
            color="white",
            bbox={"boxstyle": "round,pad=0.15", "fc": figures.INK, "alpha": 0.6, "lw": 0},
        )
    return image


def main() -> None:
    torch.set_num_threads(1)
    with figures.styled():
        figure, axes = figures.new_figure(figures.PAGE, 2.45, 1, 3, sharey=True)
        draw_names(axes[0])
        for ax, (title, settings) in zip(axes[1:], REGIMES.items(), strict=True):
            image = draw_regime(ax, settings)
            ax.set_title(title)
        for ax in axes:
            ax.set(xlabel="λ1", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], aspect="equal")
            ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes[0].set_ylabel("λ2")
        figure.colorbar(image, ax=axes, label="accuracy (%)", shrink=0.95)
    for path in figures.save(figure, IMAGES / "lambda_square.png", "lambda_square"):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
