"""`lcat …`: finds the subcommand, reports mistakes in one line."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from lcat_core.errors import LcatError
from lcat_run.errors import UserError
from lcat_run.terminal import write_any_text

COMMANDS = (
    "run",
    "sweep",
    "status",
    "logs",
    "cancel",
    "table",
    "compare",
    "trend",
    "plot",
    "report",
    "layers",
    "datasets",
    "bench",
)

DESCRIPTION = "L-CAT for GraphGym: train, sweep, and compare layers that learn whether to convolve or attend."


def build_parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lcat", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"graphgym-lcat {version('graphgym-lcat')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in names:
        command = importlib.import_module(f"lcat_run.commands.{name}")
        subparser = subparsers.add_parser(
            name,
            help=command.HELP,
            description=command.HELP,
            epilog=f"examples:\n{command.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.configure(subparser)
        subparser.set_defaults(execute=command.execute)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    write_any_text()
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return args.execute(args) or 0
    except UserError as error:
        print(f"lcat {args.command}: {error}", file=sys.stderr)
        return 2
    except LcatError as error:
        print(f"lcat {args.command}: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:  # `lcat … | head`: the reader has gone, which is no fault
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # no permission, a full disk, a folder that is gone
        print(
            f"lcat {args.command}: {error.filename or 'the results folder'}: {error.strerror or error}", file=sys.stderr
        )
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
