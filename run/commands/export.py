"""``lcat export``: write the finished runs of a sweep into one file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lcat_core.errors import UserError
from lcat_run.arguments import CommandParser
from lcat_run.optional_packages import require
from lcat_run.results_folder import add_results_option, find_results, holds_results

HELP = "write the finished runs of sweeps into one file: to publish, to merge, or to continue elsewhere"
EXAMPLES = """\
  lcat export real -o real.jsonl.gz             results, settings, versions and λ of every finished run
  lcat export real -o real.jsonl.gz --curves    and the recorded curves
  lcat export real half.jsonl.gz -o all.jsonl   join a folder and an archive
  lcat export real -o real.csv                  a table with one row per run, also .parquet
  lcat sweep real --known real.jsonl.gz         continue elsewhere: archived runs count as done"""

_TABLES = (".csv", ".parquet")


def configure(parser: CommandParser) -> None:
    parser.add_argument(
        "results", metavar="RESULTS", nargs="+", help="results directories, archives, or names of sweeps"
    )
    add_results_option(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="ends in .jsonl, .jsonl.gz, .csv or .parquet"
    )
    parser.add_argument("--curves", action="store_true", help="include metrics and λ of every epoch")
    parser.intermixed = True


def execute(args: argparse.Namespace) -> None:
    from lcat_core.archive import SUFFIXES, is_archive

    paths = [find_results(name, args.results_dir, holds_results) for name in args.results]
    if is_archive(args.output):
        number = _write_archive(paths, args.output, args.curves)
    elif args.output.suffix in _TABLES:
        if args.curves:
            raise UserError("--curves needs an archive: -o FILE.jsonl.gz")
        number = _write_table(paths, args.output)
    else:
        known = ", ".join((*SUFFIXES, *_TABLES))
        raise UserError(f"cannot tell the format of {args.output.name}: expected a name that ends in {known}")
    print(f"wrote {number} runs to {args.output}")


def _write_archive(paths: list[Path], output: Path, curves: bool) -> int:
    from lcat_core.archive import collect_runs, is_archive, merge_archives, read_archive, write_archive

    archives = []
    for path in paths:
        if is_archive(path):
            archives.append((str(path), read_archive(path)))
            continue
        sweeps = [path] if (path / "runs").is_dir() else sorted(p.parent for p in path.glob("*/runs"))
        if not sweeps:
            raise UserError(f"no runs in {path}: expected runs/<run id>/result.json in it or in a folder below")
        for sweep in sweeps:
            archive, skipped = collect_runs(sweep, curves)
            archives.append((str(sweep), archive))
            for sentence in skipped:
                print(f"note: {sentence}", file=sys.stderr)
    joined = merge_archives(archives)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_archive(output, joined)
    return len(joined.runs)


def _write_table(paths: list[Path], output: Path) -> int:
    from lcat_analysis.load import load
    from lcat_core.files import write_atomically

    if output.suffix == ".parquet":
        require("pyarrow")
    runs = load(*paths).runs.drop(columns=["path"]).sort_values("run_id")
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.suffix == ".csv":
        write_atomically(output, lambda file: runs.to_csv(file, index=False))
    else:
        table = runs.assign(**{name: runs[name].map(repr) for name in ("lambdas", "extra")})
        write_atomically(output, lambda file: table.to_parquet(file, index=False))
    return len(runs)
