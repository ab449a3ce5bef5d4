"""Turns every way in which PyG users give a graph into a :class:`~graphgym_lcat.kernels.Graph`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric import EdgeIndex
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_torch_sparse_tensor, to_edge_index

from graphgym_lcat.kernels import Graph, find_graph

# Edges of torch.sparse matrices, so that their layouts are found again as those of `edge_index` tensors are.
_EDGES_OF_SPARSE = WeakTensorKeyDictionary()


def resolve_graph(
    edge_index: Tensor | SparseTensor | Graph,
    num_src: int,
    num_dst: int,
    add_self_loops: bool,
    shared_nodes: bool,
    flow: str = "source_to_target",
) -> tuple[Graph, Tensor | None]:
    """The graph's layout, and the values of a sparse matrix (which PyG takes as edge features).

    Sparse matrices are transposed adjacencies, as everywhere in PyG: rows are destinations.
    """
    if isinstance(edge_index, Graph):
        _check_graph(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
        return edge_index, None
    edge_index, values = coordinates(edge_index)
    if flow == "target_to_source":
        edge_index = edge_index.flip(0)
    return find_graph(edge_index, num_src, num_dst, add_self_loops, shared_nodes), values


def coordinates(edge_index: Tensor | SparseTensor | Graph) -> tuple[Tensor, Tensor | None]:
    """The edges as a tensor ``[2, E]`` of sources and destinations, and the values of a sparse matrix."""
    if isinstance(edge_index, Graph):
        return edge_index.edge_index, None
    if isinstance(edge_index, EdgeIndex):
        return edge_index.as_tensor(), None
    if isinstance(edge_index, SparseTensor):
        row, col, values = edge_index.coo()
        return torch.stack([col, row]), values
    if isinstance(edge_index, Tensor):
        return _edges_of_sparse(edge_index) if is_torch_sparse_tensor(edge_index) else (edge_index, None)
    raise TypeError(
        "`edge_index` must be a tensor [2, E], a torch.sparse matrix, a SparseTensor, an EdgeIndex or a Graph, "
        f"got {type(edge_index).__name__}"
    )


def _edges_of_sparse(adj: Tensor) -> tuple[Tensor, Tensor]:
    if adj.layout == torch.sparse_coo:
        adj = adj.coalesce()
    values = adj.values()
    if torch.compiler.is_compiling() or adj.is_inference():
        return to_edge_index(adj)[0].flip(0), values
    version, edge_index = _EDGES_OF_SPARSE.get(adj, (None, None))
    if version != adj._version:
        edge_index = to_edge_index(adj)[0].flip(0)
        _EDGES_OF_SPARSE[adj] = (adj._version, edge_index)
    return edge_index, values


def _check_graph(graph: Graph, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool) -> None:
    if (graph.num_src, graph.num_dst) != (num_src, num_dst):
        raise ValueError(
            f"`edge_index` is a Graph of {graph.num_src} sources and {graph.num_dst} destinations, "
            f"but `x` has {num_src} and {num_dst}"
        )
    if bool(graph.self_loops) != (add_self_loops and min(num_src, num_dst) > 0):
        raise ValueError(
            f"`edge_index` is a Graph built with add_self_loops={bool(graph.self_loops)}, "
            f"but the layer has add_self_loops={add_self_loops}"
        )
    if graph.shared_nodes != shared_nodes:
        raise ValueError(
            f"`edge_index` is a Graph built with shared_nodes={graph.shared_nodes}, but `x` "
            + ("is one set of nodes" if shared_nodes else "is a pair of two sets of nodes")
        )
