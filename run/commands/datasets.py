"""`lcat datasets`: which datasets are present, where, and whether they have the size that the paper used."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lcat_core.errors import DatasetError, UserError, unknown_name

if TYPE_CHECKING:
    from graphgym_lcat.data.ogb import OgbSpec
    from graphgym_lcat.data.registry import DatasetSpec
    from lcat_core.datasets import Statistics

HELP = "list the datasets: whether they are present, where, and their size beside the published one"
EXAMPLES = """\
  lcat datasets                           all datasets, in LCAT_DATA_DIR or ./datasets
  lcat datasets --dir ~/data              in another folder
  lcat datasets --fetch Cora CiteSeer     download and prepare these two now
  lcat datasets ogbn-arxiv --generate --scale 1000 --dir /tmp/ogb
                                          write random data of its shape, a thousandth of its size"""

Row = tuple[str, ...]
_HEADER: Row = ("dataset", "nodes", "edges", "avg. degree", "features", "classes", "state")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these datasets (default: all)")
    parser.add_argument("--dir", help="root of the datasets (default: LCAT_DATA_DIR, else ./datasets)")
    parser.add_argument("--fetch", action="store_true", help="download datasets whose files are missing")
    parser.add_argument(
        "--generate", action="store_true", help="write random data in the shape and files of the named ogbn datasets"
    )
    parser.add_argument("--scale", type=float, metavar="S", help="with --generate: 1/S of the nodes and edges (1000)")
    parser.add_argument("--seed", type=int, metavar="N", help="with --generate: seed of the random data (0)")


def execute(args: argparse.Namespace) -> int:
    from graphgym_lcat.data.datasets import dataset_names
    from graphgym_lcat.data.registry import data_directory

    if not args.generate and (args.scale, args.seed) != (None, None):
        raise UserError("--scale and --seed belong to --generate")
    folder = data_directory(args.dir)
    if args.generate:
        _generate(args)
    rows, notes = [_HEADER], []
    for name in args.names or dataset_names():
        row, note = _describe(name, folder, args.fetch)
        rows.append(row)
        notes += [note] if note else []
    print(f"datasets in {folder.absolute()}\n")
    _print_table(rows)
    if notes:
        print("\n" + "\n".join(notes))
    return 0


def _describe(name: str, folder: Path, fetch: bool) -> tuple[Row, str | None]:
    """Return the row of one dataset and, if something is wrong with it, a sentence about that."""
    from graphgym_lcat.data.datasets import dataset_names, load_dataset, statistics
    from graphgym_lcat.data.ogb import OGB_DATASETS
    from graphgym_lcat.data.registry import DATASETS, EMBEDDED

    if name in EMBEDDED:
        return _cells(name, statistics(load_dataset(name)), "embedded"), None
    if name in DATASETS:
        return _describe_files(DATASETS[name], folder, fetch)
    if name in OGB_DATASETS:
        return _describe_ogb(OGB_DATASETS[name], folder)
    raise DatasetError(unknown_name("dataset", name, dataset_names()))


def _describe_files(spec: DatasetSpec, folder: Path, fetch: bool) -> tuple[Row, str | None]:
    from graphgym_lcat.data.datasets import is_present, load_dataset, statistics

    if not fetch and not is_present(spec, folder):
        note = f"{spec.name}: put {', '.join(spec.raw_files)} into {spec.raw_dir(folder).absolute()}"
        if spec.site_is_gone:
            return _cells(spec.name, spec.published, "missing, no download"), note
        return _cells(spec.name, spec.published, "missing, downloaded when used"), None
    try:
        found = statistics(load_dataset(spec.name, folder, sparse=True))
    except DatasetError as error:
        if fetch:
            raise
        return _cells(spec.name, spec.published, "present, UNREADABLE"), str(error)
    if found == spec.published:
        return _cells(spec.name, found, "present, size as published"), None
    expected = ", ".join(f"{value} {key}" for key, value in vars(spec.published).items())
    return _cells(spec.name, found, "present, SIZE DIFFERS"), f"{spec.name} was published with {expected}"


def _describe_ogb(spec: OgbSpec, folder: Path) -> tuple[Row, str | None]:
    """Describe a dataset of OGB by the files that store its counts, since reading its graph takes minutes."""
    from graphgym_lcat.data.ogb import missing_message

    if spec.missing_files(folder):
        return _cells(spec.name, spec.published, "missing"), missing_message(spec, folder)
    found = spec.size_on_disk(folder)
    if spec.is_synthetic(folder):
        return _cells(spec.name, found, "SYNTHETIC"), f"{spec.name} was written by --generate; it is not OGB's data"
    if found == spec.published:
        return _cells(spec.name, found, "present, size as published"), None
    return _cells(spec.name, found, "present, SIZE DIFFERS"), (
        f"{spec.name} was published with {spec.published.nodes} nodes, {spec.published.edges} edges"
    )


def _generate(args: argparse.Namespace) -> None:
    from graphgym_lcat.data.ogb_generator import generate_ogb

    if not args.names:
        raise UserError("--generate needs the names of ogbn datasets, for example ogbn-arxiv")
    for name in args.names:
        scale, seed = 1000.0 if args.scale is None else args.scale, args.seed or 0
        folder, nodes, edges = generate_ogb(name, scale, args.dir, seed)
        print(f"wrote {nodes:,} nodes and {edges:,} edges in the shape of {name} to {folder.absolute()}")


def _cells(name: str, size: Statistics, state: str) -> Row:
    numbers = (f"{size.nodes:,}", f"{size.edges:,}", f"{size.avg_degree:.2f}", f"{size.features:,}")
    return (name, *numbers, f"{size.classes}", state)


def _print_table(rows: list[Row]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for name, *numbers, state in rows:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:-1], strict=True)]
        print("  ".join([name.ljust(widths[0]), *cells, state]))
