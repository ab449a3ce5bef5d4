"""One training step on a random undirected graph, in a process of its own with a limit of memory; prints one line of JSON.

Started by :mod:`lcat_benchmarks.scale`; a limit that is reached ends this process, not the machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn import GATConv

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn import LCATConv

LAYERS = {"lcat": LCATConv, "PyG GATConv": GATConv}
CLASSES = 47  # of ogbn-products, as are its 100 features
FEATURES = 100


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
    for name in ("nodes", "edges", "depth", "width", "heads", "threads", "steps"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--memory-bytes", type=int, required=True)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (args.memory_bytes, args.memory_bytes))
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    try:
        result = measure(args)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        result = {"outcome": "out of memory"}
    print(json.dumps(result))


def measure(args: argparse.Namespace) -> dict[str, object]:
    half = torch.randint(args.nodes, (2, args.edges // 2))
    edge_index = torch.cat([half, half.flip(0)], dim=1)
    del half
    start = time.perf_counter()
    graph = edge_index
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
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"outcome": "done", "seconds": min(seconds), "layout_seconds": layout_seconds, "peak_bytes": peak}


if __name__ == "__main__":
    main()
