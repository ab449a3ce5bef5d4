"""``lcat …``: find the command, execute it, and report errors in one line."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from lcat_core.errors import LcatError
from lcat_run.arguments import CommandParser
from lcat_run.optional_packages import missing_package
from lcat_run.terminal import survive_closed_terminal, write_any_text

COMMANDS = (
    "init",
    "run",
    "sweep",
    "status",
    "logs",
    "cancel",
    "table",
    "best",
    "compare",
    "rank",
    "trend",
    "plot",
    "report",
    "export",
    "layers",
    "datasets",
    "bench",
)

DESCRIPTION = "L-CAT for GraphGym: train, sweep, and compare layers that learn whether to convolve or attend."
_USER_ERROR = 2
_INTERRUPTED = 130
_LONGEST_MESSAGE = 4000


def build_parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lcat", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"graphgym-lcat {version('graphgym-lcat')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser)
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
    """Execute one command and return its exit status: 2 for a mistake in the input, 1 for another failure."""
    survive_closed_terminal()
    write_any_text()
    words = list(sys.argv[1:] if argv is None else argv)
    name = words[0] if words else ""
    try:
        parser = build_parser()
        args = parser.parse_args(words)
        if args.command is None:
            parser.print_help(sys.stderr)
            return _USER_ERROR
        return args.execute(args) or 0
    except LcatError as error:
        return _report(name, error, error.exit_status)
    except ModuleNotFoundError as error:
        missing = missing_package(error.name)
        if missing is None:
            raise
        return _report(name, missing, missing.exit_status)
    except BrokenPipeError:  # `lcat … | head`: the reader has left, which is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # no permission, a full disk, a folder that is gone
        place = f"{error.filename}: " if error.filename else ""
        return _report(name, f"{place}{error.strerror or error}", _USER_ERROR)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return _INTERRUPTED


def _report(command: str, error: object, status: int) -> int:
    print(f"lcat {command}: {error!s:.{_LONGEST_MESSAGE}}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
