"""``lcat sweep``: execute every run of a grid with an engine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lcat_run.arguments import CommandParser, positive

HELP = "execute every run of a grid, here or on a cluster; rerun the same command to resume"
EXAMPLES = """\
  lcat sweep demo                                      an included grid, one worker per core
  lcat sweep mygrid.yaml --dry-run                     number of runs, the first one in full, an estimate
  lcat sweep real -j 4 --threads 2                     4 workers with 2 threads each
  lcat sweep real --only dataset.name=Cora,model=lcat  part of a grid
  lcat sweep real optim.max_epoch 100 seeds 3          with other settings
  lcat sweep real --engine slurm --partition cpu --time 2:00:00 --cpus 2 --runs-per-task 20
  lcat sweep real --known real.jsonl.gz                runs that another machine has finished count as done
  lcat sweep --engine slurm --help                     the options of that engine"""

_DEFAULT_ENGINE = "local"


def configure(parser: CommandParser) -> None:
    parser.add_argument("grid", metavar="GRID", help="a YAML file, or the name of an included grid")
    parser.add_argument(
        "settings", nargs="*", default=[], metavar="KEY VALUE", help="settings for all runs; `seeds N` is one too"
    )
    parser.add_argument(
        "--engine", default=_DEFAULT_ENGINE, metavar="NAME", help="what executes the runs: local (default), slurm, …"
    )
    parser.add_argument(
        "--threads", type=positive, metavar="T", help="threads per worker (default: cores / jobs, or 1)"
    )
    parser.add_argument("--dry-run", action="store_true", help="check and describe the sweep; write and start nothing")
    parser.add_argument("--retry-failed", action="store_true", help="also start runs that failed with an error")
    parser.add_argument("--only", action="append", default=[], metavar="KEY=VALUE,…", help="only the runs that match")
    parser.add_argument("--max-runs", type=positive, metavar="N", help="refuse a grid of more runs (default: 100000)")
    parser.add_argument(
        "--known",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="an archive of `lcat export` whose runs count as done; may be repeated",
    )
    parser.intermixed = True
    parser.prepare = lambda words: _add_engine_options(parser, words)


def _add_engine_options(parser: CommandParser, words: list[str]) -> list[str]:
    """Add the options of the engine that the command line names; engines of other packages may have any."""
    from lcat_run.engines.registry import load_engine

    names = argparse.ArgumentParser(prog=parser.prog, add_help=False)
    names.add_argument("--engine", default=_DEFAULT_ENGINE)
    engine = load_engine(names.parse_known_args(words)[0].engine)
    engine.add_options(parser.add_argument_group(f"engine {engine.name}", engine.summary))
    parser.set_defaults(loaded_engine=engine)
    return words


def execute(args: argparse.Namespace) -> int:
    from lcat_core.settings import parse_overrides
    from lcat_run.launch import SweepRequest, run_sweep
    from lcat_run.sweep.selection import parse_only

    request = SweepRequest(
        grid=args.grid,
        overrides=parse_overrides(args.settings),
        only=parse_only(args.only),
        retry_failed=args.retry_failed,
        known=args.known,
        **({} if args.max_runs is None else {"max_runs": args.max_runs}),
        dry_run=args.dry_run,
        command=sys.argv[1:],
    )
    args.loaded_engine.configure(args)
    return run_sweep(request, args.loaded_engine)
