"""One training step on a random undirected graph, in a process with limited memory; started by :mod:`lcat_benchmarks.scale`."""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import GATConv

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn import LCATConv
from lcat_benchmarks.child import DONE, measure_with_limit, peak_bytes_of_process
from lcat_benchmarks.result import Row
from lcat_core.datasets import SIZES

LAYERS: dict[str, Any] = {"lcat": LCATConv, "PyG GATConv": GATConv}
FEATURES, CLASSES = SIZES["ogbn-products"].features, SIZES["ogbn-products"].classes


class Network(Module):
    def __init__(self, layer: str, depth: int, width: int, heads: int):
        super().__init__()
        sizes = [FEATURES] + [width] * depth
        self.convs = ModuleList(LAYERS[layer](size, width // heads, heads) for size in sizes[:-1])
        self.head = torch.nn.Linear(width, CLASSES)

    def forward(self, x: Tensor, graph: Tensor | Graph) -> Tensor:
        for conv in self.convs:
            x = F.relu_(conv(x, graph))
        return self.head(x)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layer", choices=LAYERS, required=True)
    for name in ("nodes", "edges", "depth", "width", "heads", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    measure_with_limit(parser, measure)


def measure(args: argparse.Namespace) -> Row:
    """Time the steps of one layer, and record the memory of the process."""
    half = torch.randint(args.nodes, (2, args.edges // 2))
    edge_index = torch.cat([half, half.flip(0)], dim=1)
    del half
    start = time.perf_counter()
    graph: Tensor | Graph = edge_index
    if args.layer == "lcat":
        graph = Graph.from_edge_index(edge_index, args.nodes)
        _ = graph.compact
    layout_seconds = time.perf_counter() - start
    x = torch.randn(args.nodes, FEATURES)
    labels = torch.randint(CLASSES, (args.nodes,))
    network = Network(args.layer, args.depth, args.width, args.heads)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    seconds = []
    for _ in range(args.steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(network(x, graph), labels).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return {
        "outcome": DONE,
        "seconds": min(seconds),
        "layout_seconds": layout_seconds,
        "peak_bytes": peak_bytes_of_process(),
    }


if __name__ == "__main__":
    main()
