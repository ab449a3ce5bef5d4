"""`lcat layers`: the models of the paper, how to get each, and how attention is computed here."""

from __future__ import annotations

import argparse

from lcat_run.models import BASELINES, MODELS

HELP = "list the models, their GraphGym names and λ, and which kernels are in use"
EXAMPLES = """\
  lcat layers
  lcat layers --format markdown"""

_COLUMNS = ("model", "gnn.layer_type", "lcat.score", "lcat.lambda1", "lcat.lambda2", "baseline")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "markdown"), default="text")


def execute(args: argparse.Namespace) -> int:
    rows = [_row(name) for name in MODELS]
    print(_markdown(rows) if args.format == "markdown" else _text(rows))
    if args.format == "text":
        from graphgym_lcat.kernels.dispatch import describe_backend

        print(f"\nattention on the CPU: {describe_backend()}")
    return 0


def _row(name: str) -> tuple[str, ...]:
    settings = MODELS[name]
    layer = str(settings["gnn.layer_type"])
    score = (
        "" if layer == "linear" else "any" if settings.get("lcat.lambda1") == 0 else settings.get("lcat.score", "gat")
    )
    if layer == "linear":
        lambdas = ["", ""]
    elif layer.startswith("cat"):
        lambdas = ["1", "1"]
    elif settings.get("lcat.lambda1") == 0:
        lambdas = ["0", "any"]
    else:
        lambdas = [str(settings.get(key, "learned")) for key in ("lcat.lambda1", "lcat.lambda2")]
    return (name, layer, str(score), *lambdas, BASELINES.get(name, ""))


def _text(rows: list[tuple[str, ...]]) -> str:
    table = [_COLUMNS, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(_COLUMNS))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table)


def _markdown(rows: list[tuple[str, ...]]) -> str:
    table = [_COLUMNS, ("---",) * len(_COLUMNS), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in table)
