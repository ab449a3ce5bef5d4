"""Time and memory of a full-batch training step while the graph grows to the size of ogbn-products."""

from __future__ import annotations

from lcat_benchmarks.child import DONE, measure_in_child, memory_limit_text, memory_options
from lcat_benchmarks.result import Keep, Progress, Result, Row, ignore, new_result

LARGEST = 120_000_000
EDGES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 60_000_000, LARGEST)
EDGES_PER_NODE = 50
DEPTH, WIDTH, HEADS = 3, 128, 4
LAYERS = ("lcat", "PyG GATConv")
SMALL = 3_000_000  # a step on a smaller graph is repeated


def measure_scale(
    max_edges: int, memory_gib: float, threads: int, progress: Progress = ignore, keep: Keep = ignore
) -> Result:
    """Measure a step of every layer at every size up to ``max_edges``; a layer that runs out of memory stops there."""
    settings = {"layers": DEPTH, "width": WIDTH, "heads": HEADS, "memory_gib": memory_gib, "threads": threads}
    result = new_result("scale", settings)
    for layer in LAYERS:
        for edges in (size for size in EDGES if size <= max_edges):
            progress(f"{layer}, {edges:,} edges")
            row = _run_step(layer, edges, memory_gib, threads)
            result["measurements"].append({"name": layer, "edges": edges, "nodes": edges // EDGES_PER_NODE, **row})
            keep(result)
            if row["outcome"] != DONE:
                break
    return result


def _run_step(layer: str, edges: int, memory_gib: float, threads: int) -> Row:
    sizes = {
        "layer": layer,
        "nodes": edges // EDGES_PER_NODE,
        "edges": edges,
        "depth": DEPTH,
        "width": WIDTH,
        "heads": HEADS,
        "steps": 3 if edges <= SMALL else 1,
        **memory_options(memory_gib, threads),
    }
    return measure_in_child(f"{layer} with {edges:,} edges", "training_step", sizes)


def text_table(result: Result) -> str:
    """Return one line per layer and size."""
    lines = [f"{'layer':<14}{'edges':>14}{'nodes':>12}{'s per step':>12}{'peak GiB':>10}"]
    for row in result["measurements"]:
        start = f"{row['name']:<14}{row['edges']:>14,}{row['nodes']:>12,}"
        if row["outcome"] == DONE:
            lines.append(f"{start}{row['seconds']:>12.3f}{row['peak_bytes'] / 2**30:>10.2f}")
        else:
            lines.append(start + memory_limit_text(row["outcome"], result["settings"]["memory_gib"]))
    return "\n".join(lines)
