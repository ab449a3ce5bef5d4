"""What the targets of speed are computed from: seconds of every contender, by name."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GATConv, GATv2Conv, PNAConv
from torch_geometric.utils import degree

from graphgym_lcat.data import datasets, registry
from graphgym_lcat.nn import LCATConv, LCATPNAConv
from lcat_benchmarks.adjacency import AGGREGATORS, SCALERS
from lcat_benchmarks.child import measure_in_child
from lcat_benchmarks.contenders import CONTENDERS, FLOOR
from lcat_benchmarks.graphs import load_graph, skewed_graph
from lcat_benchmarks.measure import interleaved_seconds
from lcat_benchmarks.result import ignore

HEADS, CHANNELS = 4, 8
WIDTH = HEADS * CHANNELS
EDGE_DIM = 16
BUDGET = 20.0  # seconds, after which a slow contender is not repeated further
GRAPHS_PER_STEP = 5  # several steps are timed at once, each on a new graph
BUSY_PROCESSES = 2
EPOCHS, WARM_UP, ROUNDS = 60, 5, 2

Step = Callable[[], None]
Seconds = dict[str, float]


def layer_seconds(threads: int, repeats: int, baseline: str | None = None) -> Seconds:
    """One layer on AmazonComputers, forward and backward."""
    graph = load_graph("amazon")
    edge_attr = torch.randn(graph.edge_index.size(1), EDGE_DIM)
    floor = next(contender for contender in CONTENDERS if contender.name == FLOOR)
    steps = {FLOOR: _step(graph.num_nodes, floor.build(graph, HEADS, CHANNELS))}
    for name, score in (("lcat", "gat"), ("lcatv2", "gatv2")):
        plain, half = _lcat(score), _lcat(score).to(torch.bfloat16)
        dropout, edges = _lcat(score, dropout=0.6), _lcat(score, edge_dim=EDGE_DIM)
        for variant, layer in {name: plain, f"{name}, dropout": dropout}.items():
            steps[variant] = _step(graph.num_nodes, _apply(layer, graph.edge_index))
        steps[f"{name}, edge_dim"] = _step(graph.num_nodes, _apply(edges, graph.edge_index, edge_attr))
        steps[f"{name}, weights"] = _step(graph.num_nodes, _apply(plain, graph.edge_index, None, None, True))
        steps[f"{name}, bfloat16"] = _step(graph.num_nodes, _apply(half, graph.edge_index), torch.bfloat16)
    histogram = torch.bincount(degree(graph.edge_index[1], graph.num_nodes, dtype=torch.long))
    arguments = WIDTH, WIDTH, AGGREGATORS, SCALERS, histogram
    ours, pyg = LCATPNAConv(*arguments, heads=HEADS, lambda1=0), PNAConv(*arguments)
    steps["lcat PNA, λ1 = 0"] = _step(graph.num_nodes, lambda x: ours(x, graph.edge_index))
    steps["PyG PNAConv"] = _step(graph.num_nodes, lambda x: pyg(x, graph.edge_index))
    return _fastest(steps, threads, repeats)


def new_graph_seconds(threads: int, repeats: int, baseline: str | None = None) -> Seconds:
    """One layer on graphs that it has never seen."""
    kinds = {"batch": (1600, batch_of_graphs), "subgraph": (5000, lambda seed: skewed_graph(5000, 50_000, seed))}
    seconds: Seconds = {}
    for kind, (num_nodes, build) in kinds.items():
        layers = {
            "lcat": _lcat("gat"),
            "PyG GATConv": GATConv(WIDTH, CHANNELS, HEADS),
            "lcatv2": _lcat("gatv2"),
            "PyG GATv2Conv": GATv2Conv(WIDTH, CHANNELS, HEADS, share_weights=True),
        }
        pool = [build(seed) for seed in range(GRAPHS_PER_STEP)]
        steps = {f"{name}, {kind}": _steps_on_copies(num_nodes, layer, pool) for name, layer in layers.items()}
        fastest = _fastest(steps, threads, 4 * repeats)
        seconds |= {name: value / GRAPHS_PER_STEP for name, value in fastest.items()}
    return seconds


def busy_seconds(threads: int, repeats: int, baseline: str | None = None) -> Seconds:
    """One layer on Cora with one and with several threads of torch, while other processes keep the processors busy."""
    graph = load_graph("cora")
    layer = _lcat("gat")
    step = _step(graph.num_nodes, lambda x: layer(x, graph.edge_index))
    names = {1: "1 thread", threads: f"{threads} threads"}
    total = dict.fromkeys(names.values(), 0.0)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)]
    before = torch.get_num_threads()
    try:
        for _ in range(10 * repeats):
            for number, name in names.items():
                torch.set_num_threads(number)
                start = time.perf_counter()
                for _ in range(20):
                    step()
                total[name] += time.perf_counter() - start
    finally:
        torch.set_num_threads(before)
        for process in others:
            process.kill()
            process.wait()
    return {name: seconds / (10 * repeats * 20) for name, seconds in total.items()}


def epoch_seconds(threads: int, repeats: int, baseline: str | None = None) -> Seconds:
    """An epoch of ``real.yaml``; ``baseline`` is the Python of another installation. Datasets that are missing are left out."""
    runs = {
        "lcat, AmazonPhoto": ("AmazonPhoto", "lcat", sys.executable),
        "lpnacat, AmazonPhoto": ("AmazonPhoto", "lpnacat", sys.executable),
        "lcat, Cora": ("Cora", "lcat", sys.executable),
    }
    if baseline is not None:
        runs["lcat, Cora, baseline"] = ("Cora", "lcat", baseline)
    folder = registry.data_directory()
    present = {name: run for name, run in runs.items() if datasets.is_present(datasets.FILED[run[0]], folder)}
    medians: dict[str, list[float]] = {name: [] for name in present}
    for _ in range(ROUNDS):
        for name, (dataset, model, python) in present.items():
            options = {"flow": "ours", "dataset": dataset, "epochs": EPOCHS + WARM_UP, "threads": threads}
            if model != "lcat":
                options["model"] = model
            epochs = measure_in_child(name, "one_training", options, python)
            medians[name].append(statistics.median(epochs[WARM_UP:]))
    return {name: min(values) for name, values in medians.items()}


def batch_of_graphs(seed: int, graphs: int = 64, nodes: int = 25, edges: int = 100) -> Tensor:
    """Return the edges of small random undirected graphs in one batch, as a ``DataLoader`` makes it."""
    parts = [skewed_graph(nodes, edges, seed * graphs + number) + number * nodes for number in range(graphs)]
    return torch.cat(parts, dim=1)


def _lcat(score: str, **options: Any) -> LCATConv:
    return LCATConv(WIDTH, CHANNELS, HEADS, score=score, **options)


def _apply(layer: LCATConv, *arguments: Any) -> Callable[[Tensor], Tensor]:
    """The layer as a function of the features, without the attention weights that it may return."""

    def apply(x: Tensor) -> Tensor:
        out = layer(x, *arguments)
        return out[0] if isinstance(out, tuple) else out

    return apply


def _step(num_nodes: int, layer: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.float32) -> Step:
    x, direction = torch.randn(num_nodes, WIDTH, dtype=dtype), torch.randn(num_nodes, WIDTH, dtype=dtype)

    def step() -> None:
        layer(x.detach().requires_grad_()).backward(direction)

    return step


def _steps_on_copies(num_nodes: int, layer: Callable[..., Tensor], pool: Iterable[Tensor]) -> Step:
    """Steps on new tensors: no layer has seen them before."""
    x, direction = torch.randn(num_nodes, WIDTH), torch.randn(num_nodes, WIDTH)

    def steps() -> None:
        for edge_index in pool:
            layer(x.detach().requires_grad_(), edge_index.clone()).backward(direction)

    return steps


def _fastest(steps: dict[str, Step], threads: int, repeats: int) -> Seconds:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for step in steps.values():
            step()  # the first one builds layouts, caches and thread pools
        seconds = interleaved_seconds(steps, repeats, BUDGET, lambda: ignore(None))
    finally:
        torch.set_num_threads(before)
    return {name: min(values) for name, values in seconds.items()}
