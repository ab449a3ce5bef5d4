"""What the commands that read results share: finding the folder, where to write, errors of the analysis."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcat_run.errors import UserError, nearest

if TYPE_CHECKING:
    from lcat_analysis.cells import Table
    from lcat_analysis.compare import Comparisons
    from lcat_analysis.load import Results
    from lcat_analysis.select import Selection

RESULTS_ROOT = Path("results")
TABLE_FORMATS = ("terminal", "markdown", "latex", "csv", "html")
FIGURE_FORMATS = ("png", "svg", "pdf")


def add_results(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    parser.add_argument(
        "results",
        metavar="RESULTS",
        nargs="?" if optional else None,
        help="a results directory, or the name of a sweep under ./results",
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


def add_tests(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--alpha", type=float, default=0.05, help="level of the tests (default 0.05)")
    add_margin(parser)
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


@contextmanager
def reported_errors() -> Iterator[None]:
    """Errors of the analysis and of files, and a missing extra, as messages to the user."""
    from lcat_core.errors import ResultsError

    try:
        yield
    except ResultsError as error:
        raise UserError(str(error)) from error
    except BrokenPipeError:  # the reader has gone, which cli.py knows to be no fault
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""  # a full disk is found out without a name
        raise UserError(f"{place}{error.strerror or error}") from error
    except ModuleNotFoundError as error:
        if error.name not in ("matplotlib", "statsmodels", "jinja2"):
            raise
        raise UserError(_missing_extra(error)) from error


def find_results(name: str) -> Path:
    """An existing directory, else a sweep of that name under ./results."""
    path = Path(name)
    if path.is_dir():
        return path
    if (RESULTS_ROOT / name).is_dir():
        return RESULTS_ROOT / name
    known = sorted(p.name for p in RESULTS_ROOT.iterdir() if p.is_dir()) if RESULTS_ROOT.is_dir() else []
    listed = f" (there are {', '.join(known)})" if known else ""
    raise UserError(f"{name!r} is neither a directory nor a sweep under ./results{listed}{nearest(name, known)}")


def load_and_select(args: argparse.Namespace) -> tuple[Results, Selection]:
    from lcat_analysis.load import load
    from lcat_analysis.select import select

    results = load(find_results(args.results))
    selection = select(results, args.metric, args.over, **metric_options(args))
    for warning in results.warnings:
        print(warning, file=sys.stderr)
    if len(results.problems):
        counts = ", ".join(f"{n} {state}" for state, n in results.counts().items())
        print(f"not all runs have a usable result: {counts} (`lcat report` names them)", file=sys.stderr)
    return results, selection


def metric_options(args: argparse.Namespace) -> dict[str, Any]:
    """Direction and scale of the metric, as `select` takes them."""
    higher_is_better = None if args.better is None else args.better == "higher"
    return {"higher_is_better": higher_is_better, "scale": args.scale}


def compare_models(
    args: argparse.Namespace, results: Results, selection: Selection, *, strict: bool, **options: str
) -> Comparisons:
    """The tests, of ``--baseline`` or the grid's pairs; ``options`` as for `compare`."""
    from lcat_analysis.compare import compare

    pairs = parse_baselines(args.baseline) or results.grid["compare"]
    return compare(selection, pairs, alpha=args.alpha, margin=args.margin, strict=strict, **options)


def parse_baselines(texts: list[str] | None) -> dict[str, str]:
    pairs = {}
    for text in texts or []:
        model, sign, baseline = text.partition("=")
        if not (sign and model and baseline):
            raise UserError(f"--baseline expects MODEL=BASELINE, such as lcat=gat, got {text!r}")
        pairs[model] = baseline
    return pairs


def emit_table(table: Table, args: argparse.Namespace, name: str) -> None:
    """Print the table, or write it where ``-o`` says."""
    from lcat_analysis.render import SUFFIXES, render, to_terminal

    if args.output is None:
        style = args.format or "terminal"
        if style == "terminal":
            print(to_terminal(table, colour=sys.stdout.isatty()), end="")
        else:
            print(render(table, style), end="")
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
    write_text(target, render(table, style))


def write_text(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"wrote {target}")


def _missing_extra(error: ModuleNotFoundError) -> str:
    return f"{error.name} is not installed; the analysis needs: pip install 'graphgym-lcat[analysis]'"
