"""The networks of the Open Graph Benchmark experiments: plain stacks of layers, for one or several types of nodes.

GraphGym's ``gnn`` has linear layers at both ends, and applies dropout before the activation. In OGB's example networks the last
graph layer may be the output, and each layer is followed by normalisation, activation and dropout, in this order.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Dropout, Embedding, Identity, LayerNorm, Linear, Module, ModuleDict, ModuleList
from torch_geometric.data import Data, HeteroData
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import act_dict, network_dict
from torch_geometric.nn import HeteroConv

from graphgym_lcat.gym.layers import attention_options, lambda_options, refuse_lambdas
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn import CATConv, LCATConv
from graphgym_lcat.nn.trimming import largest_reach, trim_to_layer
from lcat_core.models import FAMILIES, FIXED_LAYERS

STACKED_LAYERS = (FAMILIES["conv"].layer_type, FAMILIES["conv"].fixed_layer_type)


class StackedNetwork(Module):
    """``model.type: lcat_stack``: ``gnn.layers_mp`` layers of width ``gnn.dim_inner``, for graphs with one type of nodes.

    With ``lcat.output: layer`` the last layer, its heads averaged, is the output; with ``linear`` a linear layer follows it.
    ``gnn.layers_pre_mp: 1`` adds a linear layer and an activation before the first. With ``gnn.stage_type: skipsum`` a linear map
    of its input is added to the output of every layer. ``lcat.input_dropout`` applies before the first layer, ``gnn.dropout``
    between layers.
    """

    def __init__(self, dim_in: int, dim_out: int):
        super().__init__()
        width, depth = cfg.gnn.dim_inner, cfg.gnn.layers_mp
        self.encoder = Linear(dim_in, width) if cfg.gnn.layers_pre_mp else None
        self.decoder = Linear(width, dim_out) if cfg.lcat.output == "linear" else None
        sizes = [width if self.encoder else dim_in] + [width] * (depth - 1)
        outputs = [width] * (depth - 1) + [width if self.decoder else dim_out]
        residual = cfg.gnn.stage_type == "skipsum"
        self.convs = ModuleList(
            _convolution(size, out, is_last=last and not self.decoder, residual=residual)
            for size, out, last in zip(sizes, outputs, _is_last(depth), strict=True)
        )
        between = depth if self.decoder else depth - 1
        self.norms = ModuleList(_norm(width) for _ in range(between))
        self.act = act_dict[cfg.gnn.act]()
        self.input_dropout = Dropout(cfg.lcat.input_dropout)
        self.dropout = Dropout(cfg.gnn.dropout)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        x = batch.x if batch.x.layout == torch.strided else batch.x.to_dense()
        if self.encoder is not None:
            x = self.act(self.encoder(x))
        x = self.input_dropout(x)
        edge_index = batch.edge_index
        for number, conv in enumerate(self.convs):
            x, edge_index = _trim(batch, number, self.convs, x, edge_index)
            x = conv(x, edge_index)
            if number < len(self.norms):
                x = self.dropout(self.act(self.norms[number](x)))
        return (x if self.decoder is None else self.decoder(x)), batch.y


class RelationalNetwork(Module):
    """``model.type: lcat_relational``: each of ``gnn.layers_mp`` layers has one attention layer per relation.

    A node sums the messages of all relations; with ``gnn.stage_type: skipsum`` a linear map of the node itself is added. The output
    is a linear layer. Types of nodes without features have learned embeddings, as in OGB's own examples. ``cfg.share`` describes
    the graph: ``relations``, ``node_types``, ``embedded`` (how many nodes of each type need an embedding), and ``target``, the type
    to classify.
    """

    def __init__(self, dim_in: int, dim_out: int):
        super().__init__()
        width, depth = cfg.gnn.dim_inner, cfg.gnn.layers_mp
        self.target: str = cfg.share.target
        counts = zip(cfg.share.node_types, cfg.share.embedded, strict=True)
        self.embeddings = ModuleDict({kind: Embedding(count, dim_in) for kind, count in counts if count})
        for embedding in self.embeddings.values():
            torch.nn.init.xavier_uniform_(embedding.get_parameter("weight"))
        residual = cfg.gnn.stage_type == "skipsum"
        self.convs, self.skips, self.norms = ModuleList(), ModuleList(), ModuleList()
        for number, reached in enumerate(_types_that_reach(self.target, depth)):
            size = width if number else dim_in
            self.convs.append(_relational_convolution(size, width, reached))
            self.skips.append(ModuleDict({kind: Linear(size, width) for kind in reached} if residual else {}))
            self.norms.append(ModuleDict({kind: _norm(width) for kind in reached}))
        self.decoder = Linear(width, dim_out)
        self.act = act_dict[cfg.gnn.act]()
        self.dropout = Dropout(cfg.gnn.dropout)

    def forward(self, batch: HeteroData) -> tuple[Tensor, Tensor]:
        x = {kind: self._input(batch, kind) for kind in batch.node_types}
        layers: Iterator[tuple[Any, Any, Any]] = zip(self.convs, self.skips, self.norms, strict=True)
        edge_index = batch.edge_index_dict
        for number, (conv, skips, norms) in enumerate(layers):
            x, edge_index = _trim(batch, number, self.convs, x, edge_index)
            out = conv(x, edge_index)
            out = {kind: out[kind] + skips[kind](x[kind]) if kind in skips else out[kind] for kind in out}
            x = {kind: self.dropout(self.act(norms[kind](h))) for kind, h in out.items()}
        return self.decoder(x[self.target]), batch[self.target].y

    def _input(self, batch: HeteroData, kind: str) -> Tensor:
        if kind not in self.embeddings:
            return batch[kind].x
        sampled = batch[kind].get("n_id")
        embedding = self.embeddings[kind]
        return embedding.get_parameter("weight") if sampled is None else embedding(sampled)


def _trim(batch: Data | HeteroData, number: int, convs: ModuleList, x: Any, edge_index: Any) -> tuple[Any, Any]:
    """Keep what layer ``number`` and the later ones need of a sampled batch; a full batch stays as it is."""
    if isinstance(batch, HeteroData):
        nodes, edges = (batch.collect(f"num_sampled_{name}", allow_empty=True) for name in ("nodes", "edges"))
    else:
        nodes, edges = batch.get("num_sampled_nodes"), batch.get("num_sampled_edges")
    if not nodes:
        return x, edge_index
    reach = largest_reach(convs) or 2
    if isinstance(batch, HeteroData):  # after the first layer, only some types are left
        nodes = {kind: nodes[kind] for kind in x}
    return trim_to_layer(number, len(convs), nodes, edges, x, edge_index, reach=reach)[:2]


def _types_that_reach(target: str, depth: int) -> list[list[str]]:
    """Return, for each layer, the types of nodes whose output reaches the target; in the last layer, the target alone."""
    layers = [[target]]
    while len(layers) < depth:
        sources = {relation[0] for relation in cfg.share.relations if relation[2] in layers[0]}
        layers.insert(0, [kind for kind in cfg.share.node_types if kind in sources or kind in layers[0]])
    return layers


def _is_last(depth: int) -> Iterator[bool]:
    return (number == depth - 1 for number in range(depth))


def _convolution(size: int | tuple[int, int], out: int, *, is_last: bool = False, **options: Any) -> LCATConv:
    """Build a layer as configured by ``cfg.lcat``; the last one averages its heads, since they cannot share out the classes."""
    options |= {**attention_options(), "concat": not is_last}
    channels = out if is_last else out // cfg.lcat.heads
    if cfg.gnn.layer_type in FIXED_LAYERS:
        refuse_lambdas(cfg.gnn.layer_type)
        return CATConv(size, channels, **options)
    return LCATConv(size, channels, **options, **lambda_options())


def _relational_convolution(size: int, width: int, reached: list[str]) -> HeteroConv:
    """Build one layer for every relation that ends in a type of ``reached``."""
    layers = {}
    for relation in cfg.share.relations:
        if relation[2] in reached:
            one_type = relation[0] == relation[2]
            sizes = size if one_type else (size, size)
            layers[relation] = _convolution(sizes, width, add_self_loops=one_type)
    with warnings.catch_warnings():
        # The last layers update only some types, on purpose.
        warnings.filterwarnings("ignore", message="There exist node types .* whose representations do not get updated")
        return HeteroConv(layers, aggr="sum")


def _norm(width: int) -> Module:
    if not cfg.gnn.batchnorm:
        return Identity()
    return LayerNorm(width) if cfg.lcat.norm == "layer" else BatchNorm1d(width)


register_once(network_dict, "lcat_stack", StackedNetwork)
register_once(network_dict, "lcat_relational", RelationalNetwork)
