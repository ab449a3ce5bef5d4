"""GraphGym's network with sparse input, a faster PReLU, layer normalisation, and numbered GCNII layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.gnn import GNN
from torch_geometric.graphgym.register import network_dict

from graphgym_lcat.gym.adjacency_layers import number_layers
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn.prelu import PReLU
from graphgym_lcat.nn.sparse_linear import SparseLinear


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

    def forward(self, batch: Data) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.takes_sparse and batch.x.layout != torch.strided:
            batch.x = batch.x.to_dense()
        return super().forward(batch)


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
