"""What is compared: our layers, PyG's, DGL's if it is installed, and the floor."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv

from graphgym_lcat.nn import CATConv, LCATConv
from lcat_benchmarks.graphs import BenchmarkGraph

FLOOR = "floor"

Layer = Callable[[Tensor], Tensor]
#: Takes the graph, heads and channels.
Build = Callable[[BenchmarkGraph, int, int], Layer]


@dataclass(frozen=True)
class Contender:
    """A layer from ``heads × channels`` columns to as many; ``build`` returns it as a function of the features."""

    name: str
    family: str
    build: Build


class _Product(torch.autograd.Function):
    """``A @ x`` with both ``A`` and its transpose given: the least that a GCN costs."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transpose: Tensor, x: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.transpose @ grad


def _csr(rows: Tensor, cols: Tensor, num_nodes: int) -> Tensor:
    order = torch.argsort(rows * num_nodes + cols)
    rows, cols = rows[order], cols[order]
    pointers = torch.searchsorted(rows, torch.arange(num_nodes + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch announces that CSR is in beta
        return torch.sparse_csr_tensor(
            pointers.int(), cols.int(), torch.ones(cols.numel()), (num_nodes, num_nodes), check_invariants=False
        )


def _floor(graph: BenchmarkGraph, heads: int, channels: int) -> Layer:
    src, dst = graph.edge_index
    matrix, transpose = _csr(dst, src, graph.num_nodes), _csr(src, dst, graph.num_nodes)
    linear = Linear(heads * channels, heads * channels)
    return lambda x: _Product.apply(matrix, transpose, linear(x))


def _ours(**options: Any) -> Build:
    def build(graph: BenchmarkGraph, heads: int, channels: int) -> Layer:
        layer = (CATConv if "cat" in options else LCATConv)(
            heads * channels, channels, heads, **{k: v for k, v in options.items() if k != "cat"}
        )
        return lambda x: layer(x, graph.edge_index)

    return build


def _pyg(layer_class: Any, **options: Any) -> Build:
    def build(graph: BenchmarkGraph, heads: int, channels: int) -> Layer:
        if layer_class is GCNConv:
            layer = GCNConv(heads * channels, heads * channels, cached=True)
        else:
            layer = layer_class(heads * channels, channels, heads, **options)
        return lambda x: layer(x, graph.edge_index)

    return build


def _dgl(name: str) -> Build:
    def build(graph: BenchmarkGraph, heads: int, channels: int) -> Layer:
        import dgl

        dgl_graph = dgl.add_self_loop(dgl.graph(tuple(graph.edge_index), num_nodes=graph.num_nodes))
        dgl_graph.create_formats_()
        width = heads * channels
        sizes = (width, width) if name == "GraphConv" else (width, channels, heads)
        layer = getattr(dgl.nn, name)(*sizes)
        return lambda x: layer(dgl_graph, x).flatten(1)

    return build


CONTENDERS = (
    Contender(FLOOR, "floor", _floor),
    Contender("gcn", "ours", _ours(lambda1=0)),
    Contender("gat", "ours", _ours(lambda1=1, lambda2=0)),
    Contender("cat", "ours", _ours(cat=True)),
    Contender("lcat", "ours", _ours()),
    Contender("gatv2", "ours", _ours(score="gatv2", lambda1=1, lambda2=0)),
    Contender("catv2", "ours", _ours(score="gatv2", cat=True)),
    Contender("lcatv2", "ours", _ours(score="gatv2")),
    Contender("lcat, torch path", "ours, torch path", _ours(backend="torch")),
    Contender("lcatv2, torch path", "ours, torch path", _ours(score="gatv2", backend="torch")),
    Contender("PyG GCNConv(cached)", "PyG", _pyg(GCNConv)),
    Contender("PyG GATConv", "PyG", _pyg(GATConv)),
    Contender("PyG GATv2Conv(share_weights)", "PyG", _pyg(GATv2Conv, share_weights=True)),
)
DGL_CONTENDERS = tuple(Contender(f"DGL {name}", "DGL", _dgl(name)) for name in ("GraphConv", "GATConv", "GATv2Conv"))


def available() -> Iterator[Contender]:
    """Return all contenders that can run here."""
    yield from CONTENDERS
    if importlib.util.find_spec("dgl") is not None:
        yield from DGL_CONTENDERS
