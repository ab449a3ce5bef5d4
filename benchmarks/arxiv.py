"""Time and memory of an epoch at the full size of ogbn-arxiv: the models of the paper, and PyG's layers in the same network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lcat_benchmarks.child import measure_in_child
from lcat_benchmarks.measure import machine

SCHEMA = 1
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
    after_each: Callable[[dict[str, object]], None] = lambda result: None,
) -> dict[str, object]:
    """Some epochs of every model with every number of heads; ``after_each`` gets all that is measured so far."""
    settings = {"epochs": epochs, "memory_gib": memory_gib, "threads": threads}
    result = {"schema": SCHEMA, "kind": "arxiv", "machine": machine(), "settings": settings, "measurements": []}
    for count in heads:
        for model in models:
            row = _run(model, graph, count, epochs, memory_gib, threads)
            family = "PyG" if model in PEERS else "ours"
            result["measurements"].append({"name": model, "family": family, "heads": count, **row})
            after_each(result)
    return result


def _run(model: str, graph: str, heads: int, epochs: int, memory_gib: float, threads: int) -> dict[str, object]:
    options = {"model": model, "graph": graph, "heads": heads, "threads": threads, "epochs": epochs}
    options["memory-bytes"] = int(memory_gib * 2**30)
    return measure_in_child(f"{model}, {heads} heads,", "arxiv_process", options)


def text_table(result: dict[str, object]) -> str:
    """Seconds an epoch (the fastest), memory, and how PyG's layer of the same score compares."""
    rows = result["measurements"]
    done = [row for row in rows if row["outcome"] == "done"]
    lines = []
    if done:
        lines.append(f"{done[0]['origin']}: {done[0]['nodes']:,} nodes, {done[0]['edges']:,} edges")
    lines.append(f"{'model':<15}{'heads':>6}{'s per epoch':>13}{'peak GiB':>10}{'PyG takes':>22}")
    for row in rows:
        start = f"{row['name']:<15}{row['heads']:>6}"
        if row["outcome"] != "done":
            lines.append(f"{start}  {row['outcome']} (limit {result['settings']['memory_gib']:.3g} GiB)")
            continue
        peer = next((p for p in done if row["name"] in PEERS.get(p["name"], ()) and p["heads"] == row["heads"]), None)
        ratio = ""
        if peer is not None:
            times = min(peer["seconds"]) / min(row["seconds"])
            ratio = f"{times:.1f} × s, {peer['peak_bytes'] / row['peak_bytes']:.1f} × GiB"
        lines.append(f"{start}{min(row['seconds']):>13.2f}{row['peak_bytes'] / 2**30:>10.2f}{ratio:>22}")
    return "\n".join(lines)
