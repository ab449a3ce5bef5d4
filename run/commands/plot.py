"""``lcat plot``: one of the figures that the results allow."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lcat_core.errors import UserError, did_you_mean
from lcat_run.results_arguments import FIGURE_FORMATS, add_output, add_results, load_and_select, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lcat_analysis.select import Selection

KINDS = {
    "lambdas": "λ1 and λ2 over training, one panel per layer (needs --dataset if there are several)",
    "distribution": "the final λ1 and λ2",
    "curves": "the metric over training",
    "noise": "the metric against the level of noise",
    "csbm": "the synthetic experiments, with the two thresholds",
    "paper": "a heat map of our numbers minus the published ones",
    "attention": "coefficients and their entropy by degree, of one run with `lcat.save_model: true`: RESULTS is its folder",
}
HELP = "draw a figure: " + ", ".join(KINDS)
EXAMPLES = """\
  lcat plot real lambdas --dataset Cora
  lcat plot real curves -o figures/curves.pdf
  lcat plot results/real/runs/lcat-Cora-s0-… attention
  lcat plot real curves --models gat lcat --no-bands
  lcat plot csbm csbm -o figures --format svg"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    listed = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
    parser.add_argument("kind", metavar="KIND", choices=list(KINDS), help=listed)
    add_output(parser, FIGURE_FORMATS, "all three, in . or the directory of -o")
    parser.add_argument("--dataset", action="append", help="only this dataset (may be repeated)")
    parser.add_argument("--split", choices=("train", "val", "test"), default="test", help="for curves (default: test)")
    parser.add_argument("--models", metavar="MODEL", nargs="+", help="for curves: only these models")
    parser.add_argument("--no-bands", action="store_true", help="for curves: means without standard deviations")


def execute(args: argparse.Namespace) -> None:
    if args.kind == "attention":
        for path in save_figure(_draw_attention(args), args, args.kind, folder=Path()):
            print(f"wrote {path}")
        return
    _, selection = load_and_select(args)
    _check_datasets(args.dataset or [], selection)
    for path in save_figure(_draw(args, selection), args, args.kind, folder=Path()):
        print(f"wrote {path}")


def _draw(args: argparse.Namespace, selection: Selection) -> Figure:
    from lcat_analysis import csbm, curves, lambdas, noise, paper

    if args.kind == "lambdas":
        datasets = args.dataset or list(lambdas.learned_runs(selection)["dataset"].unique())
        if not datasets:
            raise UserError("no chosen run learned λ")
        if len(datasets) > 1:
            raise UserError(f"expected --dataset with one of {', '.join(map(str, datasets))}")
        return lambdas.evolution_figure(selection, datasets[0])
    if args.kind == "curves":
        return curves.curves_figure(selection, args.dataset, args.split, args.models, bands=not args.no_bands)
    if args.kind == "csbm":
        return csbm.csbm_figure(csbm.csbm_table(selection), csbm.csbm_data(selection))
    if args.kind == "paper":
        return paper.paper_figure(paper.beside_paper(selection), selection)
    return {"distribution": lambdas.distribution_figure, "noise": noise.noise_figure}[args.kind](selection)


def _draw_attention(args: argparse.Namespace) -> Figure:
    """Load the trained network of one run, and draw the attention of its layers."""
    import graphgym_lcat  # noqa: F401  (registers everything with GraphGym)
    from graphgym_lcat.gym.trained import load_run
    from lcat_analysis.attention import Attention, attention_figure

    layers = [
        Attention(
            layer.edge_index[1].cpu().numpy(),
            layer.alpha.cpu().numpy(),
            f"λ1 {_short(layer.lambda1)}  λ2 {_short(layer.lambda2)}",
        )
        for layer in load_run(args.results).attention()
    ]
    return attention_figure(layers)


def _short(value: float | tuple[float, ...]) -> str:
    values = value if isinstance(value, tuple) else (value,)
    return "/".join(f"{number:.2f}" for number in values)


def _check_datasets(names: list[str], selection: Selection) -> None:
    for name in names:
        if name not in selection.datasets:
            known = ", ".join(selection.datasets)
            raise UserError(f"no run on {name!r}: the datasets are {known}{did_you_mean(name, selection.datasets)}")
