"""Edges sampled per second on a graph with the degrees of ogbn-products, and how long a training step waits for its batch."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch_geometric import typing as pyg_typing
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader as PyGNeighborLoader

from graphgym_lcat.data import NeighborLoader, keep_freed_memory
from graphgym_lcat.nn import LCATConv, trim_to_layer
from lcat_benchmarks.graphs import skewed_graph
from lcat_benchmarks.result import Progress, Result, Row, ignore, new_result
from lcat_core.datasets import SIZES

SIZES_PER_HOP = (15, 10, 5)
BATCH_SIZE = 1024
OURS, PYG, STEP = "NeighborLoader", "PyG NeighborLoader", "training step"
_WIDTH = 128


def measure_sampling(
    batches: int, threads: Sequence[int], scale: float = 1.0, progress: Progress = ignore, training: bool = True
) -> Result:
    """Measure both loaders without features, and the steps of a network with the features of ogbn-products."""
    published = SIZES["ogbn-products"]
    nodes, edges = round(published.nodes / scale), round(published.edges / scale)
    progress("generate the graph")
    data = Data(edge_index=skewed_graph(nodes, edges), num_nodes=nodes)
    settings = {
        "batches": batches,
        "batch_size": BATCH_SIZE,
        "sizes": list(SIZES_PER_HOP),
        "nodes": nodes,
        "edges": edges,
    }
    result = new_result("sampling", settings)
    for number in threads:
        progress(f"{OURS}, {number} threads")
        loader = NeighborLoader(
            data, list(SIZES_PER_HOP), batch_size=BATCH_SIZE, shuffle=True, prefetch=0, threads=number
        )
        result["measurements"].append({"name": OURS, "threads": number, **_time(loader, batches)})
    peer = _pyg_loader(data)
    if peer is not None:
        progress(PYG)
        result["measurements"].append({"name": PYG, "threads": 1, **_time(peer, batches)})
    del peer
    if training:
        keep_freed_memory()  # as runs do
        data.x = torch.randn(nodes, published.features)
        data.y = torch.randint(published.classes, (nodes,))
        for number in threads:
            progress(f"{STEP}, {number} threads")
            result["measurements"].append({"name": STEP, "threads": number, **_time_steps(data, batches, number)})
    return result


def _pyg_loader(data: Data) -> PyGNeighborLoader | None:
    """PyG's loader, or None where neither pyg-lib nor torch-sparse is installed."""
    if not (pyg_typing.WITH_PYG_LIB or pyg_typing.WITH_TORCH_SPARSE):
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Using 'NeighborSampler' without a 'pyg-lib' installation")
        return PyGNeighborLoader(data, list(SIZES_PER_HOP), batch_size=BATCH_SIZE, shuffle=True)


def _endless(loader: Iterable[Any]) -> Iterator[Any]:
    """The batches of one epoch after another."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


def _time(loader: Iterable[Any], batches: int) -> Row:
    iterator = _endless(loader)
    next(iterator)
    seconds, edges, nodes = [], [], []
    for _ in range(batches):
        start = time.perf_counter()
        batch = next(iterator)
        seconds.append(time.perf_counter() - start)
        edges.append(batch.num_edges)
        nodes.append(batch.num_nodes)
    return {"seconds": seconds, "sampled_edges": edges, "sampled_nodes": nodes}


def _time_steps(data: Data, batches: int, threads: int) -> Row:
    """Seconds of whole training steps, and of those the seconds spent waiting for the batch, which a thread prepares."""
    earlier = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        step = _training_step(data.x.size(1), int(data.y.max()) + 1)
        loader = _endless(NeighborLoader(data, list(SIZES_PER_HOP), batch_size=BATCH_SIZE, shuffle=True))
        for _ in range(3):  # by then the queue is as full as it stays
            step(next(loader))
        seconds, waited = [], []
        for _ in range(batches):
            start = time.perf_counter()
            batch = next(loader)
            waited.append(time.perf_counter() - start)
            step(batch)
            seconds.append(time.perf_counter() - start)
    finally:
        torch.set_num_threads(earlier)
    return {"seconds": seconds, "waited": waited}


def _training_step(features: int, classes: int) -> Callable[[Data], None]:
    torch.manual_seed(0)
    widths = (features, _WIDTH, _WIDTH, classes)
    convs = torch.nn.ModuleList(LCATConv(*pair) for pair in itertools.pairwise(widths))
    optimizer = torch.optim.Adam(convs.parameters(), lr=0.001, fused=True)

    def step(batch: Data) -> None:
        x, edge_index = batch.x, batch.edge_index
        for number, conv in enumerate(convs):
            counts = (batch.num_sampled_nodes, batch.num_sampled_edges)
            x, edge_index, _ = trim_to_layer(number, len(convs), *counts, x, edge_index)
            x = conv(x, edge_index)
            x = x if number == len(convs) - 1 else torch.nn.functional.elu(x)
        size = batch.batch_size
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(x[:size], batch.y[:size]).backward()
        optimizer.step()

    return step


def text_table(result: Result) -> str:
    """Return million edges per second of the loaders, and the share of a step that waits for its batch."""
    settings = result["settings"]
    lines = [
        f"{settings['nodes']:,} nodes, {settings['edges']:,} edges; {settings['sizes']} around {settings['batch_size']} nodes",
        f"{'':<22}{'threads':>8}{'ms per batch':>14}{'million edges/s':>17}{'waiting':>9}",
    ]
    for row in result["measurements"]:
        total = sum(row["seconds"])
        start = f"{row['name']:<22}{row['threads']:>8}{1000 * total / len(row['seconds']):>14.1f}"
        if row["name"] == STEP:
            lines.append(f"{start}{'':>17}{sum(row['waited']) / total:>9.1%}")
        else:
            lines.append(f"{start}{sum(row['sampled_edges']) / total / 1e6:>17.1f}")
    if not any(row["name"] == PYG for row in result["measurements"]):
        lines.append(f"{PYG}: neither pyg-lib nor torch-sparse is installed")
    return "\n".join(lines)
