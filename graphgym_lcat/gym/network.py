"""GraphGym's network with three additions: sparse input, layer normalisation, and numbered GCNII layers."""

from __future__ import annotations

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.gnn import GNN
from torch_geometric.graphgym.register import network_dict

from graphgym_lcat.gym.adjacency_layers import number_layers
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn.sparse_linear import SparseLinear


class LCATNetwork(GNN):
    """``model.type: lcat``: the same layers and initial weights as GraphGym's ``gnn``.

    The first layer before message passing takes bag-of-words features as a CSR matrix, and ``lcat.norm: layer`` makes
    ``gnn.batchnorm: true`` a layer normalisation.
    """

    def __init__(self, dim_in: int, dim_out: int, **kwargs):
        super().__init__(dim_in, dim_out, **kwargs)
        self.takes_sparse = cfg.gnn.layers_pre_mp > 0 and not cfg.dataset.node_encoder
        if self.takes_sparse:
            first = self.pre_mp.Layer_0.layer
            dense = first.model
            first.model = torch.nn.utils.skip_init(
                SparseLinear, dense.in_channels, dense.out_channels, bias=dense.bias is not None
            )
            first.model.load_state_dict(dense.state_dict())
        if cfg.lcat.norm == "layer":
            _replace_batch_norms(self)
        number_layers(self)

    def forward(self, batch: Data) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.takes_sparse and batch.x.layout != torch.strided:
            batch.x = batch.x.to_dense()
        return super().forward(batch)


def _replace_batch_norms(module: torch.nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, torch.nn.BatchNorm1d):
            setattr(module, name, torch.nn.LayerNorm(child.num_features))
        else:
            _replace_batch_norms(child)


register_once(network_dict, "lcat", LCATNetwork)
