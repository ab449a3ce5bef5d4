"""What the commands that read results share: options, finding and loading the results, and where to write."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcat_core.errors import UserError
from lcat_core.files import write_text
from lcat_run.arguments import positive
from lcat_run.results_folder import add_results_option, find_results, holds_results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lcat_analysis.cells import Table
    from lcat_analysis.compare import Comparisons
    from lcat_analysis.load import Results
    from lcat_analysis.select import Selection

TABLE_FORMATS = ("terminal", "markdown", "latex", "csv", "html")
FIGURE_FORMATS = ("png", "svg", "pdf")


def add_results(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add RESULTS, and how to choose among the runs."""
    parser.add_argument(
        "results",
        metavar="RESULTS",
        nargs="?" if optional else None,
        help="a directory with results, an archive of `lcat export`, the name of a sweep in the results directory, or a CSV "
        "file with the columns dataset, model, seed and value",
    )
    add_results_option(parser)
    parser.add_argument(
        "--join",
        action="store_true",
        help="read all sweeps in RESULTS as one; runs with other settings get rows of their own",
    )
    parser.add_argument("--metric", help="the test metric (default: the one that the grid selects by)")
    parser.add_argument(
        "--better",
        choices=("higher", "lower"),
        help="which values of the metric are better (default: known, or in the grid)",
    )
    parser.add_argument(
        "--scale",
        choices=("fraction", "percent", "number"),
        help="what the metric's values are: 0 to 1, 0 to 100, or anything else (default: known, or in the grid)",
    )
    parser.add_argument(
        "--over",
        metavar="KEY",
        action="append",
        help="cross-validate this key (default: the grid's select.over)",
    )


def add_output(parser: argparse.ArgumentParser, formats: tuple[str, ...], default: str) -> None:
    parser.add_argument("-o", "--output", metavar="PATH", type=Path, help="a directory, or a file if it has a suffix")
    parser.add_argument("--format", choices=formats, help=f"default: by the suffix of -o, else {default}")


def add_tested_table(parser: argparse.ArgumentParser) -> None:
    """Add what ``table`` and ``compare`` share: the results, where to write, and the tests."""
    add_results(parser)
    add_output(parser, TABLE_FORMATS, "terminal; markdown in a directory")
    parser.add_argument(
        "--columns",
        type=positive,
        metavar="N",
        help="in LaTeX, columns side by side; others follow below (default: as many as fit 5.5 inches)",
    )
    add_tests(parser)


def add_tests(parser: argparse.ArgumentParser) -> None:
    """Add how pairs are tested, and when they count as equivalent."""
    add_pairs(parser)
    add_margin(parser)


def add_pairs(parser: argparse.ArgumentParser) -> None:
    """Add what is compared with what, and how runs are paired."""
    parser.add_argument("--alpha", type=float, default=0.05, help="significance level (default: 0.05)")
    parser.add_argument(
        "--unit",
        choices=("run", "split"),
        default="run",
        help="what is paired: runs (default), or the means of splits over their seeds, corrected for nodes that splits share",
    )
    parser.add_argument(
        "--overlap",
        type=float,
        metavar="RATIO",
        help="test nodes / training nodes, for --unit split (default: as recorded)",
    )
    parser.add_argument(
        "--common-seeds",
        action="store_true",
        help="where a run was lost, pair the seeds that both models have (default: refuse the pair)",
    )
    parser.add_argument(
        "--baseline",
        metavar="MODEL=BASELINE",
        action="append",
        help="compare MODEL with BASELINE (default: the grid's compare); may be repeated",
    )


def add_margin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--margin",
        type=float,
        help="differences up to this are equivalent (default: 0.5 points; none for a loss)",
    )


def results_folder(args: argparse.Namespace) -> Path:
    """Return the folder, archive or table of scores that RESULTS names."""
    from lcat_analysis.scores_file import is_scores_file

    def is_readable(path: Path) -> bool:
        return holds_results(path) or (is_scores_file(path) and path.is_file())

    return find_results(args.results, args.results_dir, is_readable)


def load_results(args: argparse.Namespace) -> Results:
    """Read the sweep that RESULTS names; several of them only with ``--join``.

    Raises:
        UserError: RESULTS holds several sweeps.
    """
    from lcat_analysis.load import load_sweeps, sweeps_below

    sweeps = sweeps_below(results_folder(args))
    if len(sweeps) > 1 and not args.join:
        names = ", ".join(sweep.name for sweep in sweeps)
        raise UserError(
            f"{args.results} holds {len(sweeps)} sweeps: {names}; name one, or read them as one with --join"
        )
    return load_sweeps(sweeps)


def load_and_select(args: argparse.Namespace) -> tuple[Results, Selection]:
    results = load_results(args)
    return results, select_runs(args, results)


def select_runs(args: argparse.Namespace, results: Results) -> Selection:
    """Choose the runs, and say on standard error what is wrong with the others."""
    from lcat_analysis.select import select

    selection = select(results, args.metric, args.over, **metric_options(args))
    for warning in results.warnings:
        print(warning, file=sys.stderr)
    if len(results.problems):
        counts = results.counts()
        sound = counts.pop("done")
        others = ", ".join(f"{n} {state}" for state, n in counts.items())
        print(
            f"{sound} of {sound + sum(counts.values())} runs are sound; {others} (`lcat report` names them)",
            file=sys.stderr,
        )
    return selection


def metric_options(args: argparse.Namespace) -> dict[str, Any]:
    """Direction and scale of the metric, as `select` takes them."""
    higher_is_better = None if args.better is None else args.better == "higher"
    return {"higher_is_better": higher_is_better, "scale": args.scale}


def compare_models(args: argparse.Namespace, results: Results, selection: Selection, **options: Any) -> Comparisons:
    """Test every model against its baseline, from ``--baseline`` or the grid; ``options`` as for `compare`."""
    from lcat_analysis.compare import compare

    pairs = parse_baselines(args.baseline) or results.grid["compare"]
    return compare(selection, pairs, **{"strict": bool(args.baseline), **pairing_options(args), **options})


def pairing_options(args: argparse.Namespace) -> dict[str, Any]:
    """How runs are paired and tested, as `compare` takes it."""
    return {name: getattr(args, name, None) for name in ("alpha", "margin", "unit", "overlap", "common_seeds")}


def parse_baselines(texts: list[str] | None) -> dict[str, str]:
    """``["lcat=gat"]`` → ``{"lcat": "gat"}``."""
    pairs = {}
    for text in texts or []:
        model, sign, baseline = text.partition("=")
        if not (sign and model and baseline):
            raise UserError(f"--baseline expects MODEL=BASELINE, such as lcat=gat, got {text!r}")
        pairs[model] = baseline
    return pairs


def emit_table(table: Table, args: argparse.Namespace, name: str) -> None:
    """Print the table, or write it where ``-o`` says."""
    emit_tables([table], args, name)


def emit_tables(tables: list[Table], args: argparse.Namespace, name: str) -> None:
    """Print tables one below the other, or write them into one file where ``-o`` says."""
    from lcat_analysis.render import SUFFIXES, render, to_terminal

    columns = getattr(args, "columns", None)
    if args.output is None:
        style = args.format or "terminal"
        colour = sys.stdout.isatty()
        texts = [to_terminal(t, colour=colour) if style == "terminal" else render(t, style, columns) for t in tables]
        print("\n".join(texts), end="")
        return
    suffixes = {style: suffix for suffix, style in SUFFIXES.items()}
    if args.output.suffix and not args.output.is_dir():
        style = args.format or SUFFIXES.get(args.output.suffix.lower())
        if style is None:
            raise UserError(
                f"cannot tell the format of {args.output.name}: expected {', '.join(SUFFIXES)}, or --format"
            )
        target = args.output
    else:
        style = args.format or "markdown"
        target = args.output / f"{name}{suffixes[style]}"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, "\n".join(render(table, style, columns) for table in tables))
    print(f"wrote {target}")


def save_figure(figure: Figure, args: argparse.Namespace, name: str, folder: Path | None = None) -> list[Path]:
    """Write the figure where ``-o`` says, or to ``folder``, in the formats that are asked for; return the files."""
    from lcat_analysis.figures import save

    target = args.output or folder
    return save(figure, target, name, (args.format,) if args.format else FIGURE_FORMATS) if target else []
