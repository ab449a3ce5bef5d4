"""GraphGym's network with sparse input, a faster PReLU, layer normalisation, and numbered GCNII layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.gnn import GNN, GNNStackStage
from torch_geometric.graphgym.register import network_dict

from graphgym_lcat.gym.adjacency_layers import number_layers
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn.prelu import PReLU
from graphgym_lcat.nn.sparse_linear import SparseLinear
from graphgym_lcat.nn.trimming import largest_reach, trim_to_layer


class LCATNetwork(GNN):
    """``model.type: lcat``: the same layers and initial weights as GraphGym's ``gnn``.

    The first layer before message passing accepts bag-of-words features as a CSR matrix. With ``lcat.norm: layer``,
    ``gnn.batchnorm: true`` means layer normalisation.
    """

    def __init__(self, dim_in: int, dim_out: int, **kwargs: Any):
        super().__init__(dim_in, dim_out, **kwargs)
        self.takes_sparse = cfg.gnn.layers_pre_mp > 0 and not cfg.dataset.node_encoder
        if self.takes_sparse:
            first = self.pre_mp.Layer_0.layer
            dense = first.model
            first.model = torch.nn.utils.skip_init(
                SparseLinear, dense.in_channels, dense.out_channels, bias=dense.bias is not None
            )
            first.model.load_state_dict(dense.state_dict())
        _replace(self, torch.nn.PReLU, _faster)
        if cfg.lcat.norm == "layer":
            _replace(self, torch.nn.BatchNorm1d, lambda norm: torch.nn.LayerNorm(norm.num_features))
        number_layers(self)
        stage = getattr(self, "mp", None)
        if type(stage) is GNNStackStage:  # not one that a plugin registered
            self.mp: torch.nn.Module = TrimmingStage(stage)

    def forward(self, batch: Data) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.takes_sparse and batch.x.layout != torch.strided:
            batch.x = batch.x.to_dense()
        return super().forward(batch)


class TrimmingStage(torch.nn.Module):
    """GraphGym's stack of layers; a sampled batch is trimmed before every layer to what it and the later ones need."""

    def __init__(self, stage: GNNStackStage):
        super().__init__()
        for name, layer in stage.named_children():
            self.add_module(name, layer)
        self.reach = largest_reach(stage)

    def forward(self, batch: Data) -> Data:
        layers = list(self.children())
        for number, layer in enumerate(layers):
            if self.reach is not None and "num_sampled_nodes" in batch:
                self._trim(batch, number, len(layers))
            x = batch.x
            batch = layer(batch)
            if cfg.gnn.stage_type == "skipsum":
                batch.x = x + batch.x
            elif cfg.gnn.stage_type == "skipconcat" and number < len(layers) - 1:
                batch.x = torch.cat([x, batch.x], dim=1)
        if cfg.gnn.l2norm:
            batch.x = torch.nn.functional.normalize(batch.x, p=2, dim=-1)
        if "num_sampled_nodes" in batch:
            batch.x = batch.x[: batch.batch_size]
        return batch

    def _trim(self, batch: Data, number: int, depth: int) -> None:
        counts = (batch.num_sampled_nodes, batch.num_sampled_edges)
        trimmed = trim_to_layer(
            number, depth, *counts, batch.x, batch.edge_index, batch.get("edge_attr"), reach=self.reach or 2
        )
        batch.x, batch.edge_index, batch.edge_attr = trimmed
        if "x_0" in batch:  # of GCNII
            batch.x_0 = batch.x_0[: batch.x.size(0)]


Kind = TypeVar("Kind", bound=torch.nn.Module)


def _replace(module: torch.nn.Module, kind: type[Kind], replacement: Callable[[Kind], torch.nn.Module]) -> None:
    for name, child in module.named_children():
        if isinstance(child, kind):
            setattr(module, name, replacement(child))
        else:
            _replace(child, kind, replacement)


def _faster(act: torch.nn.PReLU) -> PReLU:
    faster = PReLU(act.num_parameters)
    faster.weight = act.weight
    return faster


register_once(network_dict, "lcat", LCATNetwork)
