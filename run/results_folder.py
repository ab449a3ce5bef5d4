"""Find the folder that a command is about: a path, or the name of a sweep in the results directory."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from lcat_core.archive import is_archive
from lcat_core.errors import UserError, did_you_mean

DEFAULT_RESULTS = Path("results")


def add_results_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--results``, the directory in which sweeps are looked up by name."""
    parser.add_argument(
        "--results",
        dest="results_dir",
        metavar="DIR",
        type=Path,
        default=DEFAULT_RESULTS,
        help="where to look for sweeps by name (default: ./results)",
    )


def holds_results(path: Path) -> bool:
    """Whether a path is a directory or an archive."""
    return path.is_dir() or (is_archive(path) and path.is_file())


def find_results(name: str, root: Path, accepts: Callable[[Path], bool] = Path.is_dir) -> Path:
    """Return the directory ``name``, or the one of that name in ``root``.

    Args:
        name: A path, or the name of a sweep.
        root: The results directory.
        accepts: Which directories will do.

    Raises:
        UserError: There is no such directory.
    """
    for path in (Path(name), root / name):
        if accepts(path):
            return path
    known = sorted(path.name for path in root.iterdir() if accepts(path)) if root.is_dir() else []
    listed = f" (there are {', '.join(known)})" if known else ""
    shown = f"./{root}" if root == DEFAULT_RESULTS else root
    raise UserError(f"{name!r} is neither a directory nor a sweep under {shown}{listed}{did_you_mean(name, known)}")
