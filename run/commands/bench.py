"""``lcat bench``: how fast the layers are on this machine, beside their peers."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcat_core.errors import UserError, unknown_name
from lcat_run.arguments import CommandParser, positive

if TYPE_CHECKING:
    import torch

HELP = "measure layers, training steps and epochs on this machine, beside their peers"
EXAMPLES = """\
  lcat bench                                       layers against PyG's, DGL's and a bare sparse product
  lcat bench layers --full --threads 1 2 -o benchmarks/results
  lcat bench --graphs arxiv --shapes 8x16 --repeats 3
  lcat bench adjacency                             PNA, GCNII and GIN on the attention adjacency against PyG's
  lcat bench scale --max-edges 10000000            one training step as the graph grows
  lcat bench epochs --datasets Cora                training against stock GraphGym's
  lcat bench arxiv --heads 8                       an epoch of every model at the size of ogbn-arxiv
  lcat bench targets --threads 1 2 -o benchmarks/results   all ratios with a target, met or not
  lcat bench sampling --threads 1 2                neighbour sampling on a graph like ogbn-products
  lcat bench --device cuda -o benchmarks/results   on a GPU: layers, and so for scale and epochs
  lcat bench scale --help                          the options of one subject"""

_GRAPHS = ("cora", "amazon", "arxiv")
_SHAPES = ((4, 8), (8, 16), (1, 128))
_TARGET_GROUPS = ("layers", "new-graphs", "busy", "epochs")

Result = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """One sub-command: its options, and the function that measures and prints."""

    name: str
    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace], Result]


def configure(parser: CommandParser) -> None:
    parser.prepare = _choose_layers_by_default
    subjects = parser.add_subparsers(dest="subject", metavar="SUBJECT", parser_class=argparse.ArgumentParser)
    for subject in SUBJECTS:
        options = subjects.add_parser(subject.name, help=subject.summary, description=subject.summary)
        subject.add_options(options)
        options.add_argument("-o", "--output", type=Path, metavar="DIR", help="where to write JSON and charts")
        options.set_defaults(measure=subject.measure)


def _choose_layers_by_default(words: list[str]) -> list[str]:
    """``lcat bench`` and ``lcat bench --graphs …`` measure layers."""
    has_subject = bool(words) and (not words[0].startswith("-") or words[0] in ("-h", "--help"))
    return words if has_subject else [SUBJECTS[0].name, *words]


def execute(args: argparse.Namespace) -> None:
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
    result = args.measure(args)
    if args.output is not None:
        from lcat_benchmarks.charts import save_chart

        names = [f"{result['kind']}.json", *(path.name for path in save_chart(result, args.output))]
        print(f"\nwrote {', '.join(names)} to {args.output}")


def _add_layer_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--graphs", nargs="+", choices=_GRAPHS, help="default: cora and amazon")
    parser.add_argument(
        "--shapes", nargs="+", type=_shape, metavar="HxC", help=f"heads × channels (default: {_shape_text(_SHAPES[0])})"
    )
    shapes = ", ".join(map(_shape_text, _SHAPES))
    parser.add_argument("--full", action="store_true", help=f"all graphs, and the shapes {shapes}")
    _add_thread_numbers(parser)
    parser.add_argument("--repeats", type=positive, default=7, metavar="N", help="how often each layer runs (7)")
    parser.add_argument(
        "--budget", type=float, default=20, metavar="S", help="seconds after which a slow layer runs only 3 times (20)"
    )


def _add_layer_options_with_device(parser: argparse.ArgumentParser) -> None:
    _add_layer_options(parser)
    _add_device(parser)


def _measure_layers_on_device(args: argparse.Namespace) -> Result:
    if args.device == "cpu":
        return _measure_layers(args)
    from lcat_benchmarks.on_device import device_contenders, measure_layers_on, text_table

    device = _device(args)
    graphs, shapes = _graphs_and_shapes(args)
    with _progress(len(graphs) * len(shapes) * len(list(device_contenders()))) as progress:
        result = measure_layers_on(device, graphs, shapes, args.repeats, progress, _keeper(args))
    print(text_table(result))
    return result


def _graphs_and_shapes(args: argparse.Namespace) -> tuple[Sequence[str], Sequence[tuple[int, int]]]:
    return args.graphs or (_GRAPHS if args.full else _GRAPHS[:2]), args.shapes or (
        _SHAPES if args.full else _SHAPES[:1]
    )


def _measure_layers(args: argparse.Namespace) -> Result:
    from lcat_benchmarks.adjacency import ADJACENCY_CONTENDERS, ratio_table
    from lcat_benchmarks.contenders import available
    from lcat_benchmarks.layers import measure_layers, number_of_steps, text_table

    is_adjacency = args.subject == "adjacency"
    contenders = ADJACENCY_CONTENDERS if is_adjacency else list(available())
    graphs, shapes = _graphs_and_shapes(args)
    threads = _thread_numbers(args)
    with _progress(number_of_steps(graphs, shapes, threads, args.repeats, contenders)) as progress:
        result = measure_layers(
            graphs, shapes, threads, args.repeats, args.budget, progress, contenders, args.subject, _keeper(args)
        )
    print(text_table(result))
    if is_adjacency:
        print(f"\n{ratio_table(result)}")
    return result


def _add_scale_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-edges", type=positive, default=120_000_000, metavar="E", help="largest graph (default: 1.2e8 edges)"
    )
    _add_limits(parser)
    _add_device(parser)


def _measure_scale(args: argparse.Namespace) -> Result:
    if args.device != "cpu":
        return _measure_scale_on_device(args)
    from lcat_benchmarks.scale import measure_scale, text_table

    with _progress(None) as progress:
        result = measure_scale(args.max_edges, _memory(args), _one_thread_number(args), progress, _keeper(args))
    print(text_table(result))
    return result


def _measure_scale_on_device(args: argparse.Namespace) -> Result:
    from lcat_benchmarks.on_device import measure_scale_on, text_table

    device = _device(args)
    with _progress(None) as progress:
        result = measure_scale_on(device, args.max_edges, 5, progress, _keeper(args))
    print(text_table(result))
    return result


def _add_epoch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", nargs="+", metavar="NAME", help="default: four of different sizes")
    parser.add_argument(
        "--epochs", type=positive, default=20, metavar="N", help="epochs of each training run (default: 20)"
    )
    _add_thread_numbers(parser)
    _add_device(parser)


def _measure_epochs(args: argparse.Namespace) -> Result:
    from graphgym_lcat.data.registry import DATASETS as FILED
    from graphgym_lcat.data.registry import EMBEDDED
    from lcat_benchmarks.epochs import DATASETS, ROUNDS, measure_epochs, number_of_steps, text_table

    datasets, known = args.datasets or DATASETS, [*FILED, *EMBEDDED]
    for name in datasets:
        if name not in known:
            raise UserError(unknown_name("dataset", name, known))
    threads = _thread_numbers(args)
    device = args.device if args.device == "cpu" else str(_device(args))
    with _progress(number_of_steps(datasets, threads, ROUNDS)) as progress:
        result = measure_epochs(datasets, args.epochs, threads, ROUNDS, progress, _keeper(args), device)
    print(text_table(result))
    return result


def _add_arxiv_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--heads", nargs="+", type=positive, default=[1, 8], metavar="H", help="default: 1 8")
    parser.add_argument("--repeats", type=positive, default=7, metavar="N", help="epochs of each model (default: 7)")
    _add_limits(parser)


def _measure_arxiv(args: argparse.Namespace) -> Result:
    from lcat_benchmarks.arxiv import OURS, PEERS, measure_arxiv, text_table

    keep = _keeper(args)
    with _progress(len(args.heads) * len((*OURS, *PEERS))) as progress:

        def after_each(result: Result) -> None:
            progress(str(result["measurements"][-1]["name"]))
            keep(result)

        memory, threads = _memory(args), _one_thread_number(args)
        result = measure_arxiv(args.repeats, memory, threads, heads=args.heads, keep=after_each)
    print(text_table(result))
    return result


def _add_target_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--groups", nargs="+", choices=_TARGET_GROUPS, default=_TARGET_GROUPS, help="what to measure (default: all)"
    )
    parser.add_argument("--repeats", type=positive, default=7, metavar="N", help="how often each contender runs (7)")
    parser.add_argument(
        "--baseline", metavar="PYTHON", help="Python of another installation of graphgym-lcat, to compare epochs with"
    )
    _add_thread_numbers(parser)


def _measure_targets(args: argparse.Namespace) -> Result:
    from lcat_benchmarks.result import read_result
    from lcat_benchmarks.targets import measure_targets, text_table

    threads = _thread_numbers(args)
    earlier = None if args.output is None else read_result("targets", args.output)
    with _progress(None) as progress:
        result = measure_targets(args.groups, threads, args.repeats, args.baseline, earlier, progress, _keeper(args))
    print(text_table(result))
    return result


def _add_sampling_options(parser: argparse.ArgumentParser) -> None:
    _add_thread_numbers(parser)
    parser.add_argument("--batches", type=positive, default=20, metavar="N", help="batches to time (default: 20)")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="S", help="1/S of the nodes and edges of ogbn-products (default: 1)"
    )


def _measure_sampling(args: argparse.Namespace) -> Result:
    from lcat_benchmarks.sampling import measure_sampling, text_table

    if not args.scale >= 1:
        raise UserError(f"--scale must be at least 1, got {args.scale:g}")
    with _progress(None) as progress:
        result = measure_sampling(args.batches, _thread_numbers(args), args.scale, progress)
    _keeper(args)(result)
    print(text_table(result))
    return result


#: The first one is the default.
SUBJECTS = (
    Subject(
        "layers",
        "one layer against PyG's, DGL's and a bare sparse product",
        _add_layer_options_with_device,
        _measure_layers_on_device,
    ),
    Subject(
        "adjacency", "PNA, GCNII and GIN on the attention adjacency against PyG's", _add_layer_options, _measure_layers
    ),
    Subject("scale", "one training step as the graph grows", _add_scale_options, _measure_scale),
    Subject("epochs", "training epochs against stock GraphGym's", _add_epoch_options, _measure_epochs),
    Subject("arxiv", "an epoch of every model at the size of ogbn-arxiv", _add_arxiv_options, _measure_arxiv),
    Subject("targets", "all ratios that have a target, met or not", _add_target_options, _measure_targets),
    Subject(
        "sampling", "neighbour sampling, and training on sampled batches", _add_sampling_options, _measure_sampling
    ),
)


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="cpu", help="what computes, for example cuda (default: cpu)")


def _device(args: argparse.Namespace) -> torch.device:
    import torch

    try:
        device = torch.device(args.device)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # unknown, not compiled in, or no such device
        raise UserError(f"--device {args.device} cannot be used: {str(error).splitlines()[0]}") from error
    return device


def _add_thread_numbers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", nargs="+", type=positive, metavar="T", help="numbers of threads (default: all cores)"
    )


def _thread_numbers(args: argparse.Namespace) -> list[int]:
    from lcat_run.threads import available_cores

    return args.threads or [available_cores()]


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=positive, metavar="T", help="number of threads (default: all cores)")
    parser.add_argument(
        "--memory", type=float, metavar="GiB", help="memory limit of each process (default: 90 %% of what is free)"
    )


def _one_thread_number(args: argparse.Namespace) -> int:
    from lcat_run.threads import available_cores

    return args.threads or available_cores()


def _memory(args: argparse.Namespace) -> float:
    if args.memory is not None:
        return args.memory
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        raise UserError(f"{args.subject} needs --memory on this system, which does not tell how much is free")
    kib = next(line.split()[1] for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable"))
    return 0.9 * int(kib) / 2**20


@contextlib.contextmanager
def _progress(steps: int | None) -> Iterator[Callable[[str], None]]:
    from tqdm import tqdm

    with tqdm(total=steps, unit="step", leave=False, disable=None) as bar:

        def progress(text: str) -> None:
            bar.set_description(text, refresh=steps is None)
            bar.update()

        yield progress


def _keeper(args: argparse.Namespace) -> Callable[[Result], None]:
    """Return a function that writes what is measured so far, if ``-o`` asks for files."""
    from lcat_benchmarks.result import ignore, write_result

    return ignore if args.output is None else lambda result: write_result(result, args.output)


def _shape(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if match is None or "0" in match.groups():
        raise argparse.ArgumentTypeError(f"expected heads x channels, for example 4x8, got {text!r}")
    return int(match[1]), int(match[2])


def _shape_text(shape: tuple[int, int]) -> str:
    return f"{shape[0]}x{shape[1]}"
