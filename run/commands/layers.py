"""``lcat layers``: the models of the paper, the settings of each, and how attention is computed here."""

from __future__ import annotations

import argparse

from lcat_core.models import MODELS, Model
from lcat_core.text import align_columns

HELP = "list the models, their GraphGym names and λ, and which kernels are in use"
EXAMPLES = """\
  lcat layers
  lcat layers --format markdown"""

_COLUMNS = ("model", "gnn.layer_type", "lcat.score", "lcat.lambda1", "lcat.lambda2", "baseline")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "markdown"), default="text", help="default: text")


def execute(args: argparse.Namespace) -> None:
    rows = [_COLUMNS, *map(_row, MODELS.values())]
    if args.format == "markdown":
        rows.insert(1, ("---",) * len(_COLUMNS))
        print("\n".join("| " + " | ".join(row) + " |" for row in rows))
        return
    from graphgym_lcat.kernels.dispatch import describe_backend

    print("\n".join(align_columns(rows, left=range(len(_COLUMNS)))))
    print(f"\nattention on the CPU: {describe_backend()}")


def _row(model: Model) -> tuple[str, ...]:
    if model.lambdas is None:
        score, lambdas = "", ("", "")
    elif model.kind == "base":  # without attention, the score and λ2 have no effect
        score, lambdas = "any", ("0", "any")
    else:
        score, lambdas = str(model.score), (str(model.lambdas[0]), str(model.lambdas[1]))
    return (model.name, model.layer_type, score, *lambdas, model.baseline or "")
