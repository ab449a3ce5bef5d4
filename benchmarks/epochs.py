"""Milliseconds per epoch of ``lcat run`` against stock GraphGym with PyG's ``GATConv``, on real graphs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from lcat_benchmarks.child import measure_in_child
from lcat_benchmarks.measure import machine

SCHEMA = 1
DATASETS = ("Cora", "AmazonPhoto", "AmazonComputers", "CoauthorPhysics")
FLOWS = ("ours", "stock")
LABELS = {"ours": "lcat run, L-CAT", "stock": "GraphGym, GATConv"}
WARM_UP = 2
ROUNDS = 2


def measure_epochs(
    datasets: Sequence[str],
    epochs: int,
    threads: Sequence[int],
    rounds: int,
    progress: Callable[[str], None] = lambda text: None,
    keep: Callable[[dict[str, object]], None] = lambda result: None,
) -> dict[str, object]:
    """Each flow on each dataset in processes of its own, in turns, ``rounds`` times; the median epoch of the fastest.

    ``keep`` gets what has been measured after every dataset.
    """
    settings = {"epochs": epochs, "rounds": rounds, "warm_up": WARM_UP}
    rows: list[dict[str, object]] = []
    result = {"schema": SCHEMA, "kind": "epochs", "machine": machine(), "settings": settings, "measurements": rows}
    for dataset in datasets:
        for count in threads:
            seconds: dict[str, list[list[float]]] = {flow: [] for flow in FLOWS}
            for _ in range(rounds):
                for flow in FLOWS:
                    seconds[flow].append(_train(flow, dataset, epochs, count))
                    progress(f"{dataset}, {LABELS[flow]}")
            best = {flow: min(statistics.median(part) for part in seconds[flow]) for flow in FLOWS}
            for flow in FLOWS:
                row = {"dataset": dataset, "threads": count, "flow": flow, "name": LABELS[flow], "seconds": best[flow]}
                rows.append(row | {"times_ours": best[flow] / best["ours"], "epochs": seconds[flow]})
            keep(result)
    return result


def number_of_steps(datasets: Sequence, threads: Sequence, rounds: int) -> int:
    return len(datasets) * len(threads) * rounds * len(FLOWS)


def _train(flow: str, dataset: str, epochs: int, threads: int) -> list[float]:
    options = {"flow": flow, "dataset": dataset, "epochs": epochs + WARM_UP, "threads": threads}
    return measure_in_child(f"{LABELS[flow]} on {dataset}", "one_training", options)[WARM_UP:]


def text_table(result: dict[str, object]) -> str:
    lines = [f"{'dataset':<18}{'threads':>8}  {'training':<20}{'ms per epoch':>14}{'× ours':>9}"]
    for row in result["measurements"]:
        start = f"{row['dataset']:<18}{row['threads']:>8}  {row['name']:<20}"
        lines.append(f"{start}{1e3 * row['seconds']:>14.1f}{row['times_ours']:>9.1f}")
    return "\n".join(lines)
