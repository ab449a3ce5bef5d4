"""The graphs that layers are measured on: a real one, and generated ones of known sizes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgym_lcat.data import datasets, registry
from graphgym_lcat.data.ogb import OgbSpec


@dataclass(frozen=True)
class BenchmarkGraph:
    """A graph to measure on; ``origin`` says whether its edges are real."""

    name: str
    num_nodes: int
    edge_index: Tensor
    origin: str


@dataclass(frozen=True)
class Size:
    dataset: str
    num_nodes: int
    num_edges: int


SIZES = {
    "cora": Size("Cora", 2_708, 10_556),
    "amazon": Size("AmazonComputers", 13_752, 491_722),
    "arxiv": Size("ogbn-arxiv", 169_343, 2_315_598),
}
# Spread of the logarithm of degrees; 1.1 is that of co-purchase and citation graphs.
DEGREE_SPREAD = 1.1


def load_graph(name: str) -> BenchmarkGraph:
    """The real graph if its files are at hand (nothing is downloaded), else a generated one of its size."""
    size = SIZES[name]
    spec, folder = datasets.FILED.get(size.dataset), registry.data_directory()
    is_real = not (isinstance(spec, OgbSpec) and spec.is_synthetic(folder))
    if spec is not None and is_real and datasets.is_present(spec, folder):
        data = datasets.load_dataset(size.dataset, sparse=True)
        return BenchmarkGraph(name, data.num_nodes, data.edge_index.contiguous(), size.dataset)
    edges = skewed_graph(size.num_nodes, size.num_edges)
    return BenchmarkGraph(name, size.num_nodes, edges, f"generated, the size of {size.dataset}")


def skewed_graph(num_nodes: int, num_edges: int, seed: int = 0) -> Tensor:
    """A random undirected graph whose degrees are skewed, both directions of each edge; sorted by source."""
    generator = torch.Generator().manual_seed(seed)
    weights = (torch.randn(num_nodes, generator=generator) * DEGREE_SPREAD).exp().double()
    cumulative = weights.cumsum(0) / weights.sum()
    draws = torch.rand(2, num_edges // 2, dtype=torch.float64, generator=generator)
    half = torch.searchsorted(cumulative, draws).clamp_(max=num_nodes - 1)
    both = torch.cat([half, half.flip(0)], dim=1)
    order = torch.argsort(both[0] * num_nodes + both[1])
    return both[:, order].contiguous()
