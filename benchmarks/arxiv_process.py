"""Epochs of the paper's ogbn-arxiv network, in a process with limited memory; started by :mod:`lcat_benchmarks.arxiv`.

An epoch is what the training loop does: scores of all nodes without dropout, then a training step.
"""

from __future__ import annotations

import argparse
import time
from importlib import resources
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.nn import GATConv, GATv2Conv

from graphgym_lcat.gym.settings import apply_settings, read_settings
from graphgym_lcat.gym.stacked_network import StackedNetwork
from lcat_benchmarks.child import DONE, measure_with_limit, peak_bytes_of_process
from lcat_benchmarks.graphs import load_graph
from lcat_benchmarks.result import Row
from lcat_core.datasets import SIZES
from lcat_core.models import MODELS

FEATURES, CLASSES = SIZES["ogbn-arxiv"].features, SIZES["ogbn-arxiv"].classes
PEERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "PyG GATConv": (GATConv, {}),
    "PyG GATv2Conv": (GATv2Conv, {"share_weights": True}),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--graph", required=True)
    for name in ("heads", "epochs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    measure_with_limit(parser, lambda args: measure(args.model, args.graph, args.heads, args.epochs))


def measure(model: str, graph_name: str, heads: int, epochs: int) -> Row:
    """Time the epochs of one model, and record the memory of the process."""
    graph = load_graph(graph_name)
    data = Data(
        x=torch.randn(graph.num_nodes, FEATURES),
        edge_index=graph.edge_index,
        y=torch.randint(CLASSES, (graph.num_nodes,)),
    )
    network = build_network(model, heads)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    start_bytes = peak_bytes_of_process()
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
        "outcome": DONE,
        "origin": graph.origin,
        "nodes": graph.num_nodes,
        "edges": graph.edge_index.size(1),
        "parameters": sum(p.numel() for p in network.parameters()),
        "seconds": seconds,
        "start_bytes": start_bytes,
        "peak_bytes": peak_bytes_of_process(),
    }


def build_network(model: str, heads: int) -> Module:
    """Build the network of ``ogbn-arxiv.yaml`` with the layers of ``model``, ours or PyG's."""
    settings = read_settings(Path(str(resources.files("lcat_configs") / "ogbn-arxiv.yaml")))
    apply_settings({**settings, **(MODELS[model].settings if model in MODELS else {}), "lcat.heads": heads})
    network = StackedNetwork(FEATURES, CLASSES)
    if model in PEERS:
        layer, options = PEERS[model]
        for number, ours in enumerate(network.convs):
            sizes = (ours.in_channels, ours.out_channels, ours.heads)
            network.convs[number] = layer(*sizes, concat=ours.concat, dropout=float(cfg.lcat.dropout), **options)
    return network


if __name__ == "__main__":
    main()
