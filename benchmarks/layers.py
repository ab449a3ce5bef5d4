"""One layer, forward and backward, against the floor: a linear layer and one sparse product."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import torch

from lcat_benchmarks.contenders import FLOOR, Contender, available
from lcat_benchmarks.graphs import BenchmarkGraph, load_graph
from lcat_benchmarks.measure import interleaved_seconds, machine, peak_bytes

SCHEMA = 1


def measure_layers(
    graphs: Sequence[str],
    shapes: Sequence[tuple[int, int]],
    threads: Sequence[int],
    repeats: int,
    budget: float,
    progress: Callable[[str], None] = lambda text: None,
    contenders: Sequence[Contender] | None = None,
    kind: str = "layers",
    keep: Callable[[dict[str, object]], None] = lambda result: None,
) -> dict[str, object]:
    """Measures every contender (all, by default) on every graph, shape (heads, channels) and number of threads.

    ``progress`` is told what is being done after every step; there are ``number_of_steps`` of them. ``keep`` gets what has been
    measured after every setting: a full comparison takes long.
    """
    before = torch.get_num_threads()
    contenders = list(available()) if contenders is None else contenders
    settings = {"repeats": repeats, "budget_seconds": budget}
    rows: list[dict[str, object]] = []
    result = {"schema": SCHEMA, "kind": kind, "machine": machine(), "settings": settings, "measurements": rows}
    try:
        for name in graphs:
            graph = load_graph(name)
            for heads, channels in shapes:
                for count in threads:
                    torch.set_num_threads(count)
                    rows += _measure(contenders, graph, heads, channels, count, repeats, budget, progress)
                    keep(result)
    finally:
        torch.set_num_threads(before)
    return result


def number_of_steps(graphs: Sequence, shapes: Sequence, threads: Sequence, repeats: int, contenders: Sequence) -> int:
    return len(graphs) * len(shapes) * len(threads) * len(contenders) * (repeats + 1)


def _measure(
    contenders: Sequence[Contender],
    graph: BenchmarkGraph,
    heads: int,
    channels: int,
    threads: int,
    repeats: int,
    budget: float,
    progress: Callable[[str], None],
) -> list[dict[str, object]]:
    where = f"{graph.name} {heads}×{channels}, {threads} thread{'s' if threads > 1 else ''}"
    steps, peaks = {}, {}
    for contender in contenders:
        step = _step(contender, graph, heads, channels)
        step()  # layouts, caches and thread pools are made by the first one
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


def text_table(result: dict[str, object]) -> str:
    """Milliseconds, multiples of the floor and memory, a block for each setting."""
    blocks: dict[tuple, list[dict]] = {}
    for row in result["measurements"]:
        key = tuple(row[k] for k in ("graph", "origin", "nodes", "edges", "heads", "channels", "threads"))
        blocks.setdefault(key, []).append(row)
    lines = []
    for (name, origin, nodes, edges, heads, channels, threads), rows in blocks.items():
        width = heads * channels
        lines += [
            "",
            f"{name} ({origin}): {nodes:,} nodes, {edges:,} edges; {width} → {heads} heads of {channels}; "
            f"{threads} thread{'s' if threads > 1 else ''}",
            f"  {'layer':<30}{'ms':>10}{'× floor':>10}{'MiB':>10}",
        ]
        for row in rows:
            memory = "" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:.1f}"
            lines.append(
                f"  {row['name']:<30}{1e3 * min(row['seconds']):>10.2f}{row['times_floor']:>10.2f}{memory:>10}"
            )
    return "\n".join(lines[1:])
