"""Layers and training steps on one device, usually a GPU: time by the device's own clock, and peak memory of its allocator.

Everything runs in one process, as users run it: ours with the backend that ``'auto'`` chooses and with the torch path, PyG's layers
eager and compiled.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgym_lcat.kernels import clear_graph_cache
from lcat_benchmarks.child import DONE, OUT_OF_MEMORY
from lcat_benchmarks.contenders import CONTENDERS, FLOOR, Contender
from lcat_benchmarks.graphs import BenchmarkGraph, load_graph
from lcat_benchmarks.result import Keep, Progress, Result, Row, ignore, new_result
from lcat_benchmarks.scale import DEPTH, EDGES, EDGES_PER_NODE, HEADS, LAYERS, WIDTH
from lcat_benchmarks.training_step import CLASSES, FEATURES, Network

WARM_UP = 3

Step = Callable[[], None]


def device_contenders() -> Iterator[Contender]:
    """Every contender that needs nothing but torch and PyG, and PyG's attention compiled too."""
    for contender in CONTENDERS:
        yield contender
        if contender.name.startswith("PyG GAT"):
            yield Contender(f"{contender.name}, compiled", contender.family, _compiled(contender))


def _compiled(contender: Contender) -> Any:
    def build(graph: BenchmarkGraph, heads: int, channels: int) -> Callable[[Tensor], Tensor]:
        torch._dynamo.reset()
        return torch.compile(contender.build(graph, heads, channels), dynamic=False)

    return build


def measure_layers_on(
    device: torch.device,
    graphs: Sequence[str],
    shapes: Sequence[tuple[int, int]],
    repeats: int,
    progress: Progress = ignore,
    keep: Keep = ignore,
    contenders: Sequence[Contender] | None = None,
) -> Result:
    """Measure every contender (by default all), forward and backward, on every graph and shape (heads, channels)."""
    contenders = list(device_contenders()) if contenders is None else contenders
    result = _new_result("layers", device, {"repeats": repeats})
    for name in graphs:
        graph = load_graph(name)
        graph = dataclasses.replace(graph, edge_index=graph.edge_index.to(device))
        for heads, channels in shapes:
            about: Row = {
                "graph": name,
                "origin": graph.origin,
                "nodes": graph.num_nodes,
                "edges": graph.edge_index.size(1),
            }
            about |= {"heads": heads, "channels": channels}
            rows: list[Row] = []
            for contender in contenders:
                row = _measure(device, repeats, _layer_step, device, contender, graph, heads, channels)
                rows.append(about | {"name": contender.name, "family": contender.family} | row)
                progress(f"{name} {heads}×{channels}, {contender.name}")
            best = {row["name"]: min(row["seconds"]) for row in rows if row["outcome"] == DONE}
            for row in rows:
                ratio = best[row["name"]] / best[FLOOR] if row["name"] in best and FLOOR in best else None
                row["times_floor"] = ratio
            result["measurements"] += rows
            keep(result)
    return result


def measure_scale_on(
    device: torch.device, max_edges: int, repeats: int, progress: Progress = ignore, keep: Keep = ignore
) -> Result:
    """Measure a training step of every layer at every size up to ``max_edges``; a layer out of memory stops there."""
    result = _new_result("scale", device, {"layers": DEPTH, "width": WIDTH, "heads": HEADS, "repeats": repeats})
    for layer in LAYERS:
        for edges in (size for size in EDGES if size <= max_edges):
            progress(f"{layer}, {edges:,} edges")
            row = _measure(device, repeats, _training_step, device, layer, edges)
            result["measurements"].append({"name": layer, "edges": edges, "nodes": edges // EDGES_PER_NODE, **row})
            keep(result)
            if row["outcome"] != DONE:
                break
    return result


def _new_result(subject: str, device: torch.device, settings: Row) -> Result:
    result = new_result(f"{subject}_{device.type}", settings | {"device": str(device)})
    if device.type == "cuda":
        result["machine"]["gpu"] = torch.cuda.get_device_name(device)
        result["machine"]["cuda"] = torch.version.cuda or torch.version.hip
    return result


def _layer_step(device: torch.device, contender: Contender, graph: BenchmarkGraph, heads: int, channels: int) -> Step:
    torch.manual_seed(0)
    with device:
        layer = contender.build(graph, heads, channels)
        x = torch.randn(graph.num_nodes, heads * channels)
        direction = torch.randn(graph.num_nodes, heads * channels)

    def step() -> None:
        layer(x.detach().requires_grad_()).backward(direction)

    return step


def _training_step(device: torch.device, layer: str, edges: int) -> Step:
    torch.manual_seed(0)
    nodes = edges // EDGES_PER_NODE
    with device:
        half = torch.randint(nodes, (2, edges // 2))
        edge_index = torch.cat([half, half.flip(0)], dim=1)
        x, labels = torch.randn(nodes, FEATURES), torch.randint(CLASSES, (nodes,))
        network = Network(layer, DEPTH, WIDTH, HEADS)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(network(x, edge_index), labels).backward()
        optimizer.step()

    return step


def _measure(device: torch.device, repeats: int, build: Callable[..., Step], *arguments: Any) -> Row:
    """Seconds of each repeat of the step that ``build`` returns, and the peak of allocated memory during them."""
    clear_graph_cache()
    try:
        step = build(*arguments)
        for _ in range(WARM_UP):  # compiles kernels, builds layouts
            step()
        if device.type != "cuda":
            return {"outcome": DONE, "seconds": [_wall_seconds(step) for _ in range(repeats)], "peak_bytes": None}
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        seconds = [_event_seconds(step) for _ in range(repeats)]
        return {"outcome": DONE, "seconds": seconds, "peak_bytes": torch.cuda.max_memory_allocated(device)}
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"outcome": OUT_OF_MEMORY, "seconds": [], "peak_bytes": None}


def _wall_seconds(step: Step) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _event_seconds(step: Step) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def text_table(result: Result) -> str:
    """Return one line per measurement."""
    lines = [f"{'':<28}{'name':<40}{'ms':>10}{'× floor':>10}{'peak MiB':>10}"]
    for row in result["measurements"]:
        shape = f" {row['heads']}×{row['channels']}" if "heads" in row else ""
        where = f"{row['graph']}{shape}" if "graph" in row else f"{row['edges']:,} edges"
        if row["outcome"] != DONE:
            lines.append(f"{where:<28}{row['name']:<40}  {row['outcome']}")
            continue
        ratio = "" if row.get("times_floor") is None else f"{row['times_floor']:.2f}"
        memory = "" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:.1f}"
        lines.append(f"{where:<28}{row['name']:<40}{1e3 * min(row['seconds']):>10.3f}{ratio:>10}{memory:>10}")
    return "\n".join(lines)
