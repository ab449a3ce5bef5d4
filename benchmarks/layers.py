"""One layer, forward and backward, against the floor: a linear layer and one sparse product."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from itertools import groupby

import torch

from lcat_benchmarks.contenders import FLOOR, Contender, available
from lcat_benchmarks.graphs import BenchmarkGraph, load_graph
from lcat_benchmarks.measure import interleaved_seconds, peak_bytes
from lcat_benchmarks.result import Keep, Progress, Result, Row, ignore, new_result
from lcat_core.text import count

_SETTING = ("graph", "origin", "nodes", "edges", "heads", "channels", "threads")


def measure_layers(
    graphs: Sequence[str],
    shapes: Sequence[tuple[int, int]],
    threads: Sequence[int],
    repeats: int,
    budget: float,
    progress: Progress = ignore,
    contenders: Sequence[Contender] | None = None,
    kind: str = "layers",
    keep: Keep = ignore,
) -> Result:
    """Measure every contender (by default all) on every graph, shape (heads, channels) and number of threads."""
    before = torch.get_num_threads()
    contenders = list(available()) if contenders is None else contenders
    result = new_result(kind, {"repeats": repeats, "budget_seconds": budget})
    try:
        for name in graphs:
            graph = load_graph(name)
            for heads, channels in shapes:
                for number in threads:
                    torch.set_num_threads(number)
                    rows = _measure(contenders, graph, heads, channels, number, repeats, budget, progress)
                    result["measurements"] += rows
                    keep(result)
    finally:
        torch.set_num_threads(before)
    return result


def number_of_steps(
    graphs: Sequence[str],
    shapes: Sequence[tuple[int, int]],
    threads: Sequence[int],
    repeats: int,
    contenders: Sequence[Contender],
) -> int:
    """Return how often ``progress`` is called."""
    return len(graphs) * len(shapes) * len(threads) * len(contenders) * (repeats + 1)


def _measure(
    contenders: Sequence[Contender],
    graph: BenchmarkGraph,
    heads: int,
    channels: int,
    threads: int,
    repeats: int,
    budget: float,
    progress: Progress,
) -> list[Row]:
    where = f"{graph.name} {heads}×{channels}, {count(threads, 'thread')}"
    steps, peaks = {}, {}
    for contender in contenders:
        step = _step(contender, graph, heads, channels)
        step()  # the first one builds layouts, caches and thread pools
        gc.collect()
        peaks[contender.name] = peak_bytes(step)
        steps[contender.name] = step
        progress(where)
    seconds = interleaved_seconds(steps, repeats, budget, lambda: progress(where))
    floor = min(seconds[FLOOR])
    return [
        {
            "graph": graph.name,
            "origin": graph.origin,
            "nodes": graph.num_nodes,
            "edges": graph.edge_index.size(1),
            "heads": heads,
            "channels": channels,
            "threads": threads,
            "name": contender.name,
            "family": contender.family,
            "seconds": seconds[contender.name],
            "times_floor": min(seconds[contender.name]) / floor,
            "peak_bytes": peaks[contender.name],
        }
        for contender in contenders
    ]


def _step(contender: Contender, graph: BenchmarkGraph, heads: int, channels: int) -> Callable[[], None]:
    torch.manual_seed(0)
    layer = contender.build(graph, heads, channels)
    x = torch.randn(graph.num_nodes, heads * channels)
    direction = torch.randn(graph.num_nodes, heads * channels)

    def step() -> None:
        layer(x.detach().requires_grad_()).backward(direction)

    return step


def text_table(result: Result) -> str:
    """Return milliseconds, multiples of the floor and memory, one block per setting."""
    lines = []
    for setting, rows in groupby(result["measurements"], key=lambda row: tuple(row[name] for name in _SETTING)):
        name, origin, nodes, edges, heads, channels, threads = setting
        lines += [
            "",
            f"{name} ({origin}): {nodes:,} nodes, {edges:,} edges; {heads * channels} → {heads} heads of {channels}; "
            f"{count(threads, 'thread')}",
            f"  {'layer':<30}{'ms':>10}{'× floor':>10}{'MiB':>10}",
        ]
        for row in rows:
            memory = "" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:.1f}"
            lines.append(
                f"  {row['name']:<30}{1e3 * min(row['seconds']):>10.2f}{row['times_floor']:>10.2f}{memory:>10}"
            )
    return "\n".join(lines[1:])
