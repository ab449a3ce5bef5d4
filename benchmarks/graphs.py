"""The graphs that layers are measured on: real ones, or generated ones of the same sizes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgym_lcat.data import datasets, registry
from graphgym_lcat.data.ogb import OgbSpec
from lcat_core.datasets import SIZES as PUBLISHED


@dataclass(frozen=True)
class BenchmarkGraph:
    """A graph to measure on; ``origin`` says whether its edges are real."""

    name: str
    num_nodes: int
    edge_index: Tensor
    origin: str


@dataclass(frozen=True)
class Size:
    """The dataset that a graph stands for, and the size of the graph."""

    dataset: str
    num_nodes: int
    num_edges: int

    @classmethod
    def published(cls, dataset: str) -> Size:
        return cls(dataset, PUBLISHED[dataset].nodes, PUBLISHED[dataset].edges)


SIZES = {
    "cora": Size.published("Cora"),
    "amazon": Size.published("AmazonComputers"),
    # OGB counts the citations; training uses both directions.
    "arxiv": Size("ogbn-arxiv", PUBLISHED["ogbn-arxiv"].nodes, 2_315_598),
}
# Spread of the logarithm of degrees; 1.1 is that of co-purchase and citation graphs.
DEGREE_SPREAD = 1.1


def load_graph(name: str) -> BenchmarkGraph:
    """Return the real graph if its files are present (nothing is downloaded), else a generated one of its size."""
    size = SIZES[name]
    spec, folder = datasets.FILED.get(size.dataset), registry.data_directory()
    is_real = not (isinstance(spec, OgbSpec) and spec.is_synthetic(folder))
    if spec is not None and is_real and datasets.is_present(spec, folder):
        data = datasets.load_dataset(size.dataset, sparse=True)
        return BenchmarkGraph(name, data.num_nodes, data.edge_index.contiguous(), size.dataset)
    edges = skewed_graph(size.num_nodes, size.num_edges)
    return BenchmarkGraph(name, size.num_nodes, edges, f"generated, the size of {size.dataset}")


def skewed_graph(num_nodes: int, num_edges: int, seed: int = 0) -> Tensor:
    """Return a random undirected graph with skewed degrees: both directions of each edge, sorted by source."""
    generator = torch.Generator().manual_seed(seed)
    weights = (torch.randn(num_nodes, generator=generator) * DEGREE_SPREAD).exp().double()
    cumulative = weights.cumsum(0) / weights.sum()
    draws = torch.rand(2, num_edges // 2, dtype=torch.float64, generator=generator)
    half = torch.searchsorted(cumulative, draws).clamp_(max=num_nodes - 1)
    both = torch.cat([half, half.flip(0)], dim=1)
    order = torch.argsort(both[0] * num_nodes + both[1])
    return both[:, order].contiguous()
