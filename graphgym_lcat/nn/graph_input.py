"""Converts every form in which PyG users pass a graph into a :class:`~graphgym_lcat.kernels.Graph`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric import EdgeIndex
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_torch_sparse_tensor, to_edge_index

from graphgym_lcat.kernels import Graph, find_graph
from graphgym_lcat.kernels.cache import MAX_GRAPHS

# Edges of torch.sparse matrices and EdgeIndex objects, so that their layouts are cached like those of `edge_index` tensors.
_EDGES: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def resolve_graph(
    edge_index: Tensor | SparseTensor | Graph,
    num_src: int,
    num_dst: int,
    add_self_loops: bool,
    shared_nodes: bool,
    flow: str = "source_to_target",
) -> tuple[Graph, Tensor | None]:
    """The layout of the graph, and the values of a sparse matrix (which PyG uses as edge features).

    Sparse matrices are transposed adjacencies, as everywhere in PyG: rows are destinations. The edges of the layout go from
    sources to destinations, for both directions of flow.
    """
    if torch.jit.is_tracing():  # type: ignore[attr-defined]  # torch does not declare it as public
        raise RuntimeError(
            "the layers of graphgym_lcat do not support torch.jit.trace; use torch.compile or torch.export"
        )
    if isinstance(edge_index, Graph):
        _check_graph(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
        return edge_index, None
    edges, values = edge_index, None
    if not _is_plain(edge_index):
        _check_declared_size(edge_index, num_src, num_dst, flow)
        edges, values = _coordinates(edge_index)
    if flow == "target_to_source":
        edges = edges.flip(0)
    return find_graph(edges, num_src, num_dst, add_self_loops, shared_nodes), values


def declared_size(edge_index: Tensor | SparseTensor | Graph) -> tuple[int | None, int | None]:
    """Numbers of sources and destinations that the graph itself declares; None where it does not."""
    if isinstance(edge_index, Graph):
        return edge_index.num_src, edge_index.num_dst
    if isinstance(edge_index, EdgeIndex):
        return edge_index.num_rows, edge_index.num_cols
    if isinstance(edge_index, SparseTensor) or (isinstance(edge_index, Tensor) and is_torch_sparse_tensor(edge_index)):
        return edge_index.size(1), edge_index.size(0)
    return None, None


def _is_plain(edge_index: object) -> bool:
    return type(edge_index) is Tensor and edge_index.layout is torch.strided


def _check_declared_size(edge_index: Tensor | SparseTensor, num_src: int, num_dst: int, flow: str) -> None:
    declared = declared_size(edge_index)
    if flow == "target_to_source":
        if not isinstance(edge_index, EdgeIndex) and declared != (None, None):
            raise ValueError(
                "`flow='target_to_source'` needs an `edge_index` [2, E], got a sparse matrix; pass the transposed matrix to a "
                "layer with the default flow"
            )
        declared = declared[::-1]
    for name, count, nodes in zip(("source", "destination"), declared, (num_src, num_dst), strict=True):
        if count is not None and count != nodes:
            raise ValueError(
                f"`edge_index` declares {count} {name} nodes, but `x` has {nodes} (rows of a sparse matrix are destinations)"
            )


def _coordinates(edge_index: Tensor | SparseTensor) -> tuple[Tensor, Tensor | None]:
    """The edges as a tensor ``[2, E]`` from sources to destinations, and the values of a sparse matrix."""
    if isinstance(edge_index, EdgeIndex):
        # An alias, and a new one after each change in place: only the EdgeIndex itself counts versions.
        return _remember(edge_index, lambda: edge_index.as_tensor().detach()), None
    if isinstance(edge_index, SparseTensor):
        row, col, values = edge_index.coo()
        return torch.stack([col, row]), values
    if isinstance(edge_index, Tensor) and is_torch_sparse_tensor(edge_index):
        adj = edge_index.coalesce() if edge_index.layout == torch.sparse_coo else edge_index
        return _remember(adj, lambda: to_edge_index(adj)[0].flip(0)), adj.values()
    if isinstance(edge_index, Tensor) and edge_index.layout == torch.strided:  # a subclass of Tensor
        return edge_index, None
    raise TypeError(
        "`edge_index` must be a tensor [2, E], a torch.sparse matrix (COO, CSR or CSC), a SparseTensor, an EdgeIndex or a "
        f"Graph, got {edge_index.layout if isinstance(edge_index, Tensor) else type(edge_index).__name__}"
    )


def _remember(adj: Tensor, edges: Callable[[], Tensor]) -> Tensor:
    """``edges()``, or its result from the last time, if ``adj`` has not been changed since."""
    if torch.compiler.is_compiling() or adj.is_inference():
        return edges()
    version, edge_index = _EDGES.get(adj, (None, None))
    if version != adj._version:
        with torch.inference_mode(False):  # layouts of inference tensors are not cached
            edge_index = edges()
        _EDGES[adj] = (adj._version, edge_index)
        if len(_EDGES) > MAX_GRAPHS:
            del _EDGES[next(iter(_EDGES))]
    return edge_index


def _check_graph(graph: Graph, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool) -> None:
    if (graph.num_src, graph.num_dst) != (num_src, num_dst):
        raise ValueError(
            f"`edge_index` is a Graph of {graph.num_src} sources and {graph.num_dst} destinations, "
            f"but `x` has {num_src} and {num_dst}"
        )
    if graph.add_self_loops != add_self_loops:
        raise ValueError(
            f"`edge_index` is a Graph built with add_self_loops={graph.add_self_loops}, "
            f"but the layer has add_self_loops={add_self_loops}"
        )
    if graph.shared_nodes != shared_nodes:
        raise ValueError(
            f"`edge_index` is a Graph built with shared_nodes={graph.shared_nodes}, but `x` "
            + ("is one set of nodes" if shared_nodes else "is a pair of two sets of nodes")
        )


def check_edge_attr(edge_attr: Tensor | None, edge_dim: int | None, graph: Graph) -> Tensor | None:
    """``edge_attr`` as ``[E, edge_dim]``, or None for a layer without ``edge_dim``."""
    if edge_dim is None:
        if edge_attr is not None:
            raise ValueError(f"`edge_attr` of shape {list(edge_attr.shape)} needs a layer with `edge_dim`, got None")
        return None
    if edge_attr is None:
        raise ValueError(f"`edge_dim` is {edge_dim}, so `edge_attr` must be given, got None")
    if edge_attr.dim() == 1:
        edge_attr = edge_attr.unsqueeze(-1)
    if edge_attr.dim() != 2:
        raise ValueError(f"`edge_attr` must have shape [edges, edge_dim], got {list(edge_attr.shape)}")
    if edge_attr.size(1) != edge_dim and edge_dim != -1:
        raise ValueError(f"`edge_attr` must have edge_dim={edge_dim} columns, got {edge_attr.size(1)}")
    num_edges = graph.edge_index.size(1)
    if edge_attr.size(0) != num_edges:
        raise ValueError(f"`edge_attr` must have one row for each of the {num_edges} edges, got {edge_attr.size(0)}")
    return edge_attr


def check_edge_weight(edge_weight: Tensor | None, graph: Graph) -> None:
    """Raises unless ``edge_weight`` is None or has one number per edge."""
    num_edges = graph.edge_index.size(1)
    if edge_weight is not None and (edge_weight.dim() != 1 or edge_weight.size(0) != num_edges):
        raise ValueError(
            f"`edge_weight` must have shape [{num_edges}], one number per edge, got {list(edge_weight.shape)}"
        )
