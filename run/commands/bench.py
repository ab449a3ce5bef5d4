"""`lcat bench`: how fast the layers are here, beside their peers."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from lcat_run.errors import UserError, nearest

HELP = "measure layers, training steps and epochs here, beside their peers"
EXAMPLES = """\
  lcat bench                                       layers against PyG's, DGL's and a bare sparse product
  lcat bench --full --threads 1 2 -o benchmarks/results
  lcat bench --graphs arxiv --shapes 8x16 --repeats 3
  lcat bench adjacency                             PNA, GCNII and GIN on the attention adjacency against PyG's
  lcat bench scale --max-edges 10000000            one training step as the graph grows
  lcat bench epochs --datasets Cora                a training against stock GraphGym's
  lcat bench arxiv --heads 8                       an epoch of every model at the size of ogbn-arxiv"""

_SUBJECTS = ("layers", "adjacency", "scale", "epochs", "arxiv")

_GRAPHS = ("cora", "amazon", "arxiv")
_SHAPES = ("4x8", "8x16", "1x128")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("subject", nargs="?", choices=_SUBJECTS, default="layers", help="default: layers")
    parser.add_argument("--graphs", nargs="+", choices=_GRAPHS, help="default: cora and amazon")
    parser.add_argument("--shapes", nargs="+", metavar="HxC", help="heads × channels (default: 4x8)")
    parser.add_argument("--full", action="store_true", help=f"all graphs, and the shapes {', '.join(_SHAPES)}")
    parser.add_argument("--threads", nargs="+", type=int, metavar="T", help="numbers of threads (default: all cores)")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="how often each layer runs (default: 7)")
    parser.add_argument(
        "--budget", type=float, default=20, metavar="S", help="seconds after which a slow layer runs 3 times only (20)"
    )
    parser.add_argument("--max-edges", type=int, default=120_000_000, metavar="E", help="of scale (default: 1.2e8)")
    parser.add_argument(
        "--memory", type=float, metavar="GiB", help="limit of scale and arxiv (default: nine tenths of what is free)"
    )
    parser.add_argument("--heads", nargs="+", type=int, default=[1, 8], metavar="H", help="of arxiv (default: 1 8)")
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="of epochs (default: four of different sizes)")
    parser.add_argument("--epochs", type=int, default=20, metavar="N", help="of each training (default: 20)")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="where to write JSON and charts")


def execute(args: argparse.Namespace) -> int:
    shapes = [_shape(text) for text in args.shapes or (_SHAPES if args.full else _SHAPES[:1])]
    graphs = args.graphs or (_GRAPHS if args.full else _GRAPHS[:2])
    threads = args.threads or [
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    ]
    for name, value in (
        ("--repeats", args.repeats),
        ("--max-edges", args.max_edges),
        ("--epochs", args.epochs),
        *(("--threads", t) for t in threads),
        *(("--heads", h) for h in args.heads),
    ):
        if value < 1:
            raise UserError(f"{name} must be at least 1, got {value}")
    bench = {"layers": _layers, "adjacency": _layers, "scale": _scale, "epochs": _epochs, "arxiv": _arxiv}[args.subject]
    result = bench(args, graphs, shapes, threads)
    if args.output is not None:
        _draw(result, args.output)
    return 0


def _layers(args: argparse.Namespace, graphs: list[str], shapes: list[tuple[int, int]], threads: list[int]) -> dict:
    from lcat_benchmarks.adjacency import ADJACENCY_CONTENDERS, ratio_table
    from lcat_benchmarks.contenders import available
    from lcat_benchmarks.layers import measure_layers, number_of_steps, text_table

    contenders = ADJACENCY_CONTENDERS if args.subject == "adjacency" else list(available())
    with _progress(number_of_steps(graphs, shapes, threads, args.repeats, contenders)) as progress:
        result = measure_layers(
            graphs, shapes, threads, args.repeats, args.budget, progress, contenders, args.subject, _keeper(args)
        )
    print(text_table(result))
    if args.subject == "adjacency":
        print(f"\n{ratio_table(result)}")
    return result


def _scale(args: argparse.Namespace, graphs: list[str], shapes: list[tuple[int, int]], threads: list[int]) -> dict:
    from lcat_benchmarks.child import MeasurementFailed
    from lcat_benchmarks.scale import measure_scale, text_table

    memory = args.memory or 0.9 * _free_gib()
    try:
        with _progress(None) as progress:
            result = measure_scale(args.max_edges, memory, max(threads), progress, _keeper(args))
    except MeasurementFailed as error:
        raise UserError(str(error)) from error
    print(text_table(result))
    return result


def _epochs(args: argparse.Namespace, graphs: list[str], shapes: list[tuple[int, int]], threads: list[int]) -> dict:
    from graphgym_lcat.data.datasets import EMBEDDED
    from graphgym_lcat.data.registry import DATASETS as REGISTRY
    from lcat_benchmarks.child import MeasurementFailed
    from lcat_benchmarks.epochs import DATASETS, ROUNDS, measure_epochs, number_of_steps, text_table

    datasets = args.datasets or DATASETS
    for name in datasets:
        if name not in (known := [*REGISTRY, *EMBEDDED]):
            raise UserError(f"unknown dataset {name!r}{nearest(name, known)}")
    try:
        with _progress(number_of_steps(datasets, threads, ROUNDS)) as progress:
            result = measure_epochs(datasets, args.epochs, threads, ROUNDS, progress, _keeper(args))
    except MeasurementFailed as error:
        raise UserError(str(error)) from error
    print(text_table(result))
    return result


def _arxiv(args: argparse.Namespace, graphs: list[str], shapes: list[tuple[int, int]], threads: list[int]) -> dict:
    from lcat_benchmarks.arxiv import OURS, PEERS, measure_arxiv, text_table
    from lcat_benchmarks.child import MeasurementFailed

    memory = args.memory or 0.9 * _free_gib()
    keep = _keeper(args)
    try:
        with _progress(len(args.heads) * len((*OURS, *PEERS))) as progress:

            def after_each(result: dict) -> None:
                progress(str(result["measurements"][-1]["name"]))
                keep(result)

            result = measure_arxiv(args.repeats, memory, max(threads), heads=args.heads, after_each=after_each)
    except MeasurementFailed as error:
        raise UserError(str(error)) from error
    print(text_table(result))
    return result


@contextlib.contextmanager
def _progress(steps: int | None) -> Iterator[Callable[[str], None]]:
    from tqdm import tqdm

    with tqdm(total=steps, unit="step", leave=False, disable=None) as bar:

        def progress(text: str) -> None:
            bar.set_description(text, refresh=steps is None)
            bar.update()

        yield progress


def _keeper(args: argparse.Namespace) -> Callable[[dict], None]:
    """Writes what has been measured so far, if it is to be written at all."""
    if args.output is None:
        return lambda result: None
    args.output.mkdir(parents=True, exist_ok=True)

    def keep(result: dict) -> None:
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        (args.output / f"{result['kind']}.json").write_text(text, encoding="utf-8")

    return keep


def _draw(result: dict, folder: Path) -> None:
    from lcat_benchmarks import charts

    name = str(result["kind"])
    figure = {"scale": charts.scale_chart, "epochs": charts.epoch_chart, "arxiv": charts.arxiv_chart}.get(
        name, charts.layer_chart
    )(result)
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"{name}.{suffix}", dpi=150)
    print(f"\nwrote {name}.json, {name}.png and {name}.svg to {folder}")


def _shape(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if match is None or "0" in match.groups():
        raise UserError(f"--shapes must be heads x channels, for example 4x8, got {text!r}")
    return int(match[1]), int(match[2])


def _free_gib() -> float:
    fields = Path("/proc/meminfo")
    if not fields.exists():
        raise UserError("scale needs --memory here: how much is free cannot be read")
    kib = next(line.split()[1] for line in fields.read_text().splitlines() if line.startswith("MemAvailable"))
    return int(kib) / 2**20
