"""Milliseconds per epoch of ``lcat run`` against stock GraphGym with PyG's ``GATConv``, on real graphs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from lcat_benchmarks.child import measure_in_child
from lcat_benchmarks.result import Keep, Progress, Result, Row, ignore, new_result

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
    progress: Progress = ignore,
    keep: Keep = ignore,
    device: str = "cpu",
) -> Result:
    """Train with each flow on each dataset, in turns and in separate processes; keep the median epoch of the fastest."""
    kind = "epochs" if device == "cpu" else f"epochs_{device.partition(':')[0]}"
    result = new_result(kind, {"epochs": epochs, "rounds": rounds, "warm_up": WARM_UP, "device": device})
    rows: list[Row] = result["measurements"]
    for dataset in datasets:
        for number in threads:
            seconds: dict[str, list[list[float]]] = {flow: [] for flow in FLOWS}
            for _ in range(rounds):
                for flow in FLOWS:
                    seconds[flow].append(_train(flow, dataset, epochs, number, device))
                    progress(f"{dataset}, {LABELS[flow]}")
            best = {flow: min(statistics.median(part) for part in seconds[flow]) for flow in FLOWS}
            for flow in FLOWS:
                row = {"dataset": dataset, "threads": number, "flow": flow, "name": LABELS[flow], "seconds": best[flow]}
                rows.append(row | {"times_ours": best[flow] / best["ours"], "epochs": seconds[flow]})
            keep(result)
    return result


def number_of_steps(datasets: Sequence[str], threads: Sequence[int], rounds: int) -> int:
    """Return how often ``progress`` is called."""
    return len(datasets) * len(threads) * rounds * len(FLOWS)


def _train(flow: str, dataset: str, epochs: int, threads: int, device: str) -> list[float]:
    options = {"flow": flow, "dataset": dataset, "epochs": epochs + WARM_UP, "threads": threads, "device": device}
    return measure_in_child(f"{LABELS[flow]} on {dataset}", "one_training", options)[WARM_UP:]


def text_table(result: Result) -> str:
    """Return one line per dataset, number of threads and flow."""
    lines = [f"{'dataset':<18}{'threads':>8}  {'training':<20}{'ms per epoch':>14}{'× ours':>9}"]
    for row in result["measurements"]:
        start = f"{row['dataset']:<18}{row['threads']:>8}  {row['name']:<20}"
        lines.append(f"{start}{1e3 * row['seconds']:>14.1f}{row['times_ours']:>9.1f}")
    return "\n".join(lines)
