"""Sampled batches get smaller layer by layer: no layer computes what no later layer needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric import nn as pyg
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.typing import EdgeType

from graphgym_lcat.nn.attention import ConvolvedAttention

#: Layers of PyG whose output at a node depends on the features at the ends of its in-edges, and on nothing else.
_ONE_HOP = (
    *(pyg.GATConv, pyg.GATv2Conv, pyg.GINConv, pyg.GINEConv, pyg.GraphConv, pyg.PNAConv),
    *(pyg.SAGEConv, pyg.TransformerConv),
)


def reach(layer: Module) -> int | None:
    """How many hops away nodes influence the output of a layer; None if unknown.

    A score with :math:`\\lambda_2 \\neq 0` averages the neighbours of the neighbours, so our layers reach two hops, unless
    :math:`\\lambda_1` or :math:`\\lambda_2` is fixed at 0. L such layers need 2 L hops of neighbours for an exact result.
    """
    if uses_degrees_of_neighbors(layer):
        return 2
    if isinstance(layer, ConvolvedAttention):
        return 1 if 0 in (layer.interpolation.fixed1, layer.interpolation.fixed2) else 2
    return 1 if isinstance(layer, _ONE_HOP) else None


def uses_degrees_of_neighbors(layer: Module) -> bool:
    """Whether a layer depends on the degrees of the neighbours, and so on the in-edges of these."""
    return isinstance(layer, (pyg.GCNConv, pyg.GCN2Conv))


def largest_reach(network: Module) -> int | None:
    """The largest reach of a network's graph layers; None if one of them is unknown."""
    kinds = (MessagePassing, ConvolvedAttention)
    reaches = [reach(module) for module in network.modules() if isinstance(module, kinds)]
    return None if None in reaches else max((hops for hops in reaches if hops is not None), default=1)


def trim_to_layer(
    layer: int,
    num_layers: int,
    num_sampled_nodes: Sequence[int] | Mapping[str, Sequence[int]],
    num_sampled_edges: Sequence[int] | Mapping[EdgeType, Sequence[int]],
    x: Any,
    edge_index: Any,
    edge_attr: Any = None,
    *,
    reach: int = 2,
) -> tuple[Any, Any, Any]:
    """Keep what layer number ``layer``, from 0, of ``num_layers`` needs of a sampled batch.

    PyG's function of this name removes one hop per layer, which changes results if the score has :math:`\\lambda_2 \\neq 0`. This
    one keeps ``reach`` hops per remaining layer: the outputs of the nodes that the batch was sampled for stay the same.

    Args:
        layer: Number of the layer that comes next.
        num_layers: Number of layers.
        num_sampled_nodes, num_sampled_edges: Of the batch, per hop; per type in a heterogeneous graph.
        x: Node features ``[nodes, …]``, by type in a heterogeneous graph.
        edge_index: Edges ``[2, edges]``, by relation in a heterogeneous graph.
        edge_attr: Edge features ``[edges, …]``.
        reach: Hops that a layer reaches: see :func:`reach`.

    Returns:
        ``x``, ``edge_index`` and ``edge_attr``, as views of their first rows, or columns.
    """
    kept = reach * (num_layers - layer)
    if isinstance(num_sampled_nodes, Mapping) and isinstance(num_sampled_edges, Mapping):
        nodes = {kind: sum(counts[: kept + 1]) for kind, counts in num_sampled_nodes.items()}
        edges = {relation: sum(counts[:kept]) for relation, counts in num_sampled_edges.items()}
        return (
            {kind: part[: nodes[kind]] for kind, part in x.items()},
            {relation: part[:, : edges[relation]] for relation, part in edge_index.items()},
            edge_attr and {relation: part[: edges[relation]] for relation, part in edge_attr.items()},
        )
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise TypeError(f"`edge_index` must be a tensor [2, E], got {type(edge_index).__name__}")
    assert not isinstance(num_sampled_nodes, Mapping) and not isinstance(num_sampled_edges, Mapping)
    num_nodes, num_edges = sum(num_sampled_nodes[: kept + 1]), sum(num_sampled_edges[:kept])
    return x[:num_nodes], edge_index[:, :num_edges], None if edge_attr is None else edge_attr[:num_edges]


__all__ = ["largest_reach", "reach", "trim_to_layer"]
