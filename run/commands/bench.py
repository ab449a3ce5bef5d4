"""`lcat bench`: how fast the layers are here, beside their peers."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

from lcat_run.errors import UserError

HELP = "measure layers against PyG's, DGL's and a bare sparse product; a training step as the graph grows; an epoch on arxiv"
EXAMPLES = """\
  lcat bench
  lcat bench --full --threads 1 2 -o benchmarks/results
  lcat bench --graphs arxiv --shapes 8x16 --repeats 3
  lcat bench --scale --max-edges 10000000 -o benchmarks/results
  lcat bench --epoch --heads 8 -o benchmarks/results"""

_GRAPHS = ("cora", "amazon", "arxiv")
_SHAPES = ("4x8", "8x16", "1x128")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--graphs", nargs="+", choices=_GRAPHS, help="default: cora and amazon")
    parser.add_argument("--shapes", nargs="+", metavar="HxC", help="heads × channels (default: 4x8)")
    parser.add_argument("--full", action="store_true", help=f"all graphs, and the shapes {', '.join(_SHAPES)}")
    parser.add_argument("--threads", nargs="+", type=int, metavar="T", help="numbers of threads (default: all cores)")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="how often each layer runs (default: 7)")
    parser.add_argument(
        "--budget", type=float, default=20, metavar="S", help="seconds after which a slow layer runs 3 times only (20)"
    )
    parser.add_argument("--scale", action="store_true", help="one training step from 10⁵ edges up, instead of layers")
    parser.add_argument("--max-edges", type=int, default=120_000_000, metavar="E", help="of --scale (default: 1.2e8)")
    parser.add_argument(
        "--epoch", action="store_true", help="an epoch of every model at the size of ogbn-arxiv, instead of layers"
    )
    parser.add_argument("--heads", nargs="+", type=int, default=[1, 8], metavar="H", help="of --epoch (default: 1 8)")
    parser.add_argument(
        "--memory", type=float, metavar="GiB", help="limit of --scale, --epoch (default: nine tenths of what is free)"
    )
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
        *(("--threads", t) for t in threads),
        *(("--heads", h) for h in args.heads),
    ):
        if value < 1:
            raise UserError(f"{name} must be at least 1, got {value}")
    if args.scale and args.epoch:
        raise UserError("--scale and --epoch are different measurements; choose one")
    if args.epoch:
        result = _epochs(args, max(threads))
    else:
        result = _scale(args, max(threads)) if args.scale else _layers(args, graphs, shapes, threads)
    if args.output is not None:
        _write(result, args.output)
    return 0


def _layers(args: argparse.Namespace, graphs: list[str], shapes: list[tuple[int, int]], threads: list[int]) -> dict:
    from tqdm import tqdm

    from lcat_benchmarks.layers import measure_layers, number_of_steps, text_table

    with tqdm(
        total=number_of_steps(graphs, shapes, threads, args.repeats), unit="step", leave=False, disable=None
    ) as bar:

        def progress(text: str) -> None:
            bar.set_description(text, refresh=False)
            bar.update()

        result = measure_layers(graphs, shapes, threads, args.repeats, args.budget, progress)
    print(text_table(result))
    return result


def _scale(args: argparse.Namespace, threads: int) -> dict:
    from lcat_benchmarks.scale import StepFailed, measure_scale, text_table

    memory = args.memory or 0.9 * _free_gib()
    try:
        result = measure_scale(args.max_edges, memory, threads, lambda text: print(f"{text} …", flush=True))
    except StepFailed as error:
        raise UserError(str(error)) from error
    print(text_table(result))
    return result


def _epochs(args: argparse.Namespace, threads: int) -> dict:
    from tqdm import tqdm

    from lcat_benchmarks.epoch import OURS, PEERS, EpochFailed, measure_epochs, text_table

    memory = args.memory or 0.9 * _free_gib()
    with tqdm(total=len(args.heads) * len((*OURS, *PEERS)), unit="model", disable=None) as bar:

        def after_each(result: dict) -> None:
            bar.set_description(str(result["measurements"][-1]["name"]), refresh=False)
            bar.update()
            if args.output is not None:  # it takes long, and what is measured should not be lost
                _write_json(result, args.output)

        try:
            result = measure_epochs(args.repeats, memory, threads, heads=args.heads, after_each=after_each)
        except EpochFailed as error:
            raise UserError(str(error)) from error
    print(text_table(result))
    return result


def _write_json(result: dict, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{result['kind']}.json").write_text(text, encoding="utf-8")


def _write(result: dict, folder: Path) -> None:
    from lcat_benchmarks import charts

    _write_json(result, folder)
    name = str(result["kind"])
    figure = {"layers": charts.layer_chart, "scale": charts.scale_chart, "epoch": charts.epoch_chart}[name](result)
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
        raise UserError("--scale needs --memory here: how much is free cannot be read")
    kib = next(line.split()[1] for line in fields.read_text().splitlines() if line.startswith("MemAvailable"))
    return int(kib) / 2**20
