"""Time and memory of a full-batch training step while the graph grows to the size of ogbn-products."""

from __future__ import annotations

from collections.abc import Callable

from lcat_benchmarks.child import measure_in_child
from lcat_benchmarks.measure import machine

SCHEMA = 1
LARGEST = 120_000_000
EDGES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 60_000_000, LARGEST)
EDGES_PER_NODE = 50
DEPTH, WIDTH, HEADS = 3, 128, 4
LAYERS = ("lcat", "PyG GATConv")
SMALL = 3_000_000  # below which a step is repeated


def measure_scale(
    max_edges: int,
    memory_gib: float,
    threads: int,
    progress: Callable[[str], None] = lambda text: None,
    keep: Callable[[dict[str, object]], None] = lambda result: None,
) -> dict[str, object]:
    """A step of every layer at every size up to ``max_edges``; a layer that is out of memory is not tried further.

    ``keep`` gets what has been measured after every step.
    """
    settings = {"layers": DEPTH, "width": WIDTH, "heads": HEADS, "memory_gib": memory_gib, "threads": threads}
    rows: list[dict[str, object]] = []
    result = {"schema": SCHEMA, "kind": "scale", "machine": machine(), "settings": settings, "measurements": rows}
    for layer in LAYERS:
        for edges in (count for count in EDGES if count <= max_edges):
            progress(f"{layer}, {edges:,} edges")
            row = _run_step(layer, edges, memory_gib, threads)
            rows.append({"name": layer, "edges": edges, "nodes": edges // EDGES_PER_NODE, **row})
            keep(result)
            if row["outcome"] != "done":
                break
    return result


def _run_step(layer: str, edges: int, memory_gib: float, threads: int) -> dict[str, object]:
    sizes = {
        "layer": layer,
        "nodes": edges // EDGES_PER_NODE,
        "edges": edges,
        "depth": DEPTH,
        "width": WIDTH,
        "heads": HEADS,
        "threads": threads,
        "steps": 3 if edges <= SMALL else 1,
        "memory-bytes": int(memory_gib * 2**30),
    }
    return measure_in_child(f"{layer} with {edges:,} edges", "training_step", sizes)


def text_table(result: dict[str, object]) -> str:
    lines = [f"{'layer':<14}{'edges':>14}{'nodes':>12}{'s per step':>12}{'peak GiB':>10}"]
    for row in result["measurements"]:
        start = f"{row['name']:<14}{row['edges']:>14,}{row['nodes']:>12,}"
        if row["outcome"] == "done":
            lines.append(f"{start}{row['seconds']:>12.3f}{row['peak_bytes'] / 2**30:>10.2f}")
        else:
            lines.append(f"{start}  {row['outcome']} (limit {result['settings']['memory_gib']:.3g} GiB)")
    return "\n".join(lines)
