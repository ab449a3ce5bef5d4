"""Epochs of the paper's ogbn-arxiv network, in a process of its own with a limit of memory; prints one line of JSON.

Started by :mod:`lcat_benchmarks.arxiv`. An epoch is what the training loop does: scores of all nodes without dropout, then a step.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from importlib import resources

import torch
import torch.nn.functional as F
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.nn import GATConv, GATv2Conv

from graphgym_lcat.gym.settings import apply_settings, read_settings
from graphgym_lcat.gym.stacked_network import StackedNetwork
from lcat_benchmarks.graphs import load_graph
from lcat_core.models import MODELS

FEATURES, CLASSES = 128, 40
PEERS = {"PyG GATConv": (GATConv, {}), "PyG GATv2Conv": (GATv2Conv, {"share_weights": True})}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--graph", required=True)
    for name in ("heads", "threads", "epochs", "memory-bytes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (args.memory_bytes, args.memory_bytes))
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    try:
        result = measure(args.model, args.graph, args.heads, args.epochs)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        result = {"outcome": "out of memory"}
    print(json.dumps(result))


def measure(model: str, graph_name: str, heads: int, epochs: int) -> dict[str, object]:
    graph = load_graph(graph_name)
    data = Data(
        x=torch.randn(graph.num_nodes, FEATURES),
        edge_index=graph.edge_index,
        y=torch.randint(CLASSES, (graph.num_nodes,)),
    )
    network = build_network(model, heads)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    start_bytes = _peak_bytes()
    seconds = []
    for _ in range(epochs):
        start = time.perf_counter()
        network.eval()
        with torch.no_grad():
            network(data)
        network.train()
        optimizer.zero_grad()
        F.cross_entropy(network(data)[0], data.y).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return {
        "outcome": "done",
        "origin": graph.origin,
        "nodes": graph.num_nodes,
        "edges": graph.edge_index.size(1),
        "parameters": sum(p.numel() for p in network.parameters()),
        "seconds": seconds,
        "start_bytes": start_bytes,
        "peak_bytes": _peak_bytes(),
    }


def build_network(model: str, heads: int) -> Module:
    """The network of ``ogbn-arxiv.yaml`` with the layers of ``model``, ours or PyG's."""
    settings = read_settings(resources.files("lcat_configs") / "ogbn-arxiv.yaml")
    apply_settings({**settings, **(MODELS[model].settings if model in MODELS else {}), "lcat.heads": heads})
    network = StackedNetwork(FEATURES, CLASSES)
    if model in PEERS:
        layer, options = PEERS[model]
        for number, ours in enumerate(network.convs):
            sizes = (ours.in_channels, ours.out_channels, ours.heads)
            network.convs[number] = layer(*sizes, concat=ours.concat, dropout=float(cfg.lcat.dropout), **options)
    return network


def _peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
