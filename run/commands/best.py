"""``lcat best``: the configuration that validation chooses, as a file for ``lcat run``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from lcat_core.errors import UserError, unknown_name
from lcat_core.files import write_text
from lcat_run.results_arguments import add_results, load_results, results_folder, select_runs

if TYPE_CHECKING:
    from lcat_analysis.load import Results

HELP = "print the best configuration of a sweep or search, and write it as a configuration for `lcat run`"
EXAMPLES = """\
  lcat best search                          # writes results/search/best.yaml
  lcat best search --model lcat -o my.yaml
  lcat run --cfg my.yaml --repeat 10        # train it with ten seeds"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_results(parser)
    parser.add_argument("--model", help="only this model (default: the best of all)")
    parser.add_argument("--dataset", help="only this dataset (default: one configuration per dataset)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        type=Path,
        help="a file that ends in .yaml, or a directory (default: RESULTS)",
    )


def execute(args: argparse.Namespace) -> None:
    from lcat_analysis.best import winners

    results = load_results(args)
    _keep(results, "model", args.model)
    _keep(results, "dataset", args.dataset)
    found = winners(select_runs(args, results))
    source = results_folder(args)
    target = args.output or (source if source.is_dir() else Path())
    is_file = target.suffix in (".yaml", ".yml") and not target.is_dir()
    if is_file and len(found) > 1:
        names = ", ".join(winner.dataset for winner in found)
        raise UserError(
            f"one file cannot hold the best configurations of {len(found)} datasets ({names}); use --dataset"
        )
    for winner in found:
        name = "best.yaml" if len(found) == 1 else f"best-{re.sub(r'[^A-Za-z0-9._+-]+', '_', winner.dataset)}.yaml"
        path = target if is_file else target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, winner.configuration(results.name))
        print(f"{winner.describe()}\nwrote {path}; train it with: lcat run --cfg {path}")


def _keep(results: Results, column: str, value: str | None) -> None:
    """Leave out the runs of other models or datasets, unfinished ones too."""
    if value is None:
        return
    known = list(results.runs[column].unique())
    if value not in known:
        raise UserError(unknown_name(column, value, known))
    kept = results.runs[column] == value
    others = {record.run_id for sweep in results.sweeps for record in sweep.records if getattr(record, column) != value}
    others = (others | set(results.runs.loc[~kept, "run_id"])) - set(results.runs.loc[kept, "run_id"])
    results.problems = results.problems[~results.problems["run_id"].isin(others)].reset_index(drop=True)
    results.runs = results.runs[kept].reset_index(drop=True)
