"""Time and memory of an epoch at the full size of ogbn-arxiv: the models of the paper, and PyG's layers in the same network."""

from __future__ import annotations

from collections.abc import Sequence

from lcat_benchmarks.child import DONE, measure_in_child, memory_limit_text, memory_options
from lcat_benchmarks.result import Keep, Result, Row, ignore, new_result

OURS = ("gcn", "gat", "lcat", "gatv2", "lcatv2")
#: PyG's layer → the models that have its score.
PEERS = {"PyG GATConv": ("gat", "lcat"), "PyG GATv2Conv": ("gatv2", "lcatv2")}
HEADS = (1, 8)


def measure_arxiv(
    epochs: int,
    memory_gib: float,
    threads: int,
    *,
    graph: str = "arxiv",
    heads: Sequence[int] = HEADS,
    models: Sequence[str] = (*OURS, *PEERS),
    keep: Keep = ignore,
) -> Result:
    """Measure some epochs of every model with every number of heads."""
    result = new_result("arxiv", {"epochs": epochs, "memory_gib": memory_gib, "threads": threads})
    for number in heads:
        for model in models:
            row = _run(model, graph, number, epochs, memory_gib, threads)
            family = "PyG" if model in PEERS else "ours"
            result["measurements"].append({"name": model, "family": family, "heads": number, **row})
            keep(result)
    return result


def _run(model: str, graph: str, heads: int, epochs: int, memory_gib: float, threads: int) -> Row:
    options = {"model": model, "graph": graph, "heads": heads, "epochs": epochs}
    return measure_in_child(
        f"{model}, {heads} heads,", "arxiv_process", {**options, **memory_options(memory_gib, threads)}
    )


def text_table(result: Result) -> str:
    """Return seconds per epoch (the fastest), memory, and how PyG's layer with the same score compares."""
    rows: list[Row] = result["measurements"]
    done = [row for row in rows if row["outcome"] == DONE]
    lines = []
    if done:
        lines.append(f"{done[0]['origin']}: {done[0]['nodes']:,} nodes, {done[0]['edges']:,} edges")
    lines.append(f"{'model':<15}{'heads':>6}{'s per epoch':>13}{'peak GiB':>10}{'PyG takes':>22}")
    for row in rows:
        start = f"{row['name']:<15}{row['heads']:>6}"
        if row["outcome"] != DONE:
            lines.append(start + memory_limit_text(row["outcome"], result["settings"]["memory_gib"]))
            continue
        peer = next((p for p in done if row["name"] in PEERS.get(p["name"], ()) and p["heads"] == row["heads"]), None)
        ratio = ""
        if peer is not None:
            times = min(peer["seconds"]) / min(row["seconds"])
            ratio = f"{times:.1f} × s, {peer['peak_bytes'] / row['peak_bytes']:.1f} × GiB"
        lines.append(f"{start}{min(row['seconds']):>13.2f}{row['peak_bytes'] / 2**30:>10.2f}{ratio:>22}")
    return "\n".join(lines)
