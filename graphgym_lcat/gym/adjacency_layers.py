"""GraphGym's layers over the attention adjacency, and what PNA and GCNII need around them."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import LayerConfig
from torch_geometric.graphgym.register import layer_dict
from torch_geometric.nn import MLP
from torch_geometric.utils import degree

from graphgym_lcat.gym.layers import attention_options, lambda_options, refuse_lambdas
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn import LCATGCN2Conv, LCATGINConv, LCATPNAConv

CAT = {"lambda1": 1.0, "lambda2": 1.0}


def degree_histogram(data: Data) -> torch.Tensor:
    """Number of nodes of each in-degree, which PNA's scalers are set up by."""
    degrees = degree(data.edge_index[1], data.num_nodes, dtype=torch.long)
    return torch.bincount(degrees)


class _AdjacencyLayer(torch.nn.Module):
    """Reads ``cfg.lcat``; a subclass builds ``self.model``."""

    name = ""
    learns_lambdas = True

    def _options(self) -> dict[str, Any]:
        options = attention_options()
        for key in ("dropout", "edge_dim"):
            if options.pop(key):
                raise ValueError(f"`lcat.{key}` must be 0 for {self.name!r}, got {cfg.lcat[key]}")
        if self.learns_lambdas:
            return options | lambda_options()
        refuse_lambdas(self.name, f"l{self.name}")
        return options | CAT


class LCATPNAConvLayer(_AdjacencyLayer):
    """``lcatpnaconv``. Its degree histogram comes from the graph of the first forward pass, and stays."""

    name = "lcatpnaconv"

    def __init__(self, layer_config: LayerConfig, **kwargs):
        super().__init__()
        options = self._options()
        options.pop("backend")
        # A histogram of no nodes: PyG's buffers are filled in when the graph is seen.
        self.model = LCATPNAConv(
            layer_config.dim_in,
            layer_config.dim_out,
            cfg.lcat.pna_aggregators,
            cfg.lcat.pna_scalers,
            torch.ones(2, dtype=torch.long),
            **options,
            **kwargs,
        )
        self.register_buffer("knows_degrees", torch.tensor(False))

    def forward(self, batch: Data) -> Data:
        if not self.knows_degrees:
            self._set_degrees(degree_histogram(batch))
        batch.x = self.model(batch.x, batch.edge_index)
        return batch

    def _set_degrees(self, histogram: torch.Tensor) -> None:
        degrees = torch.arange(histogram.numel(), device=histogram.device)
        nodes = histogram.sum()
        scaler = self.model.aggr_module
        scaler.avg_deg_lin.data.fill_((degrees * histogram).sum() / nodes)
        scaler.avg_deg_log.data.fill_((torch.log(degrees + 1) * histogram).sum() / nodes)
        self.knows_degrees.fill_(True)


class CATPNAConvLayer(LCATPNAConvLayer):
    """``catpnaconv``: both λ are 1."""

    name, learns_lambdas = "catpnaconv", False


class LCATGCN2ConvLayer(_AdjacencyLayer):
    """``lcatgcn2conv``. The representation that enters the first such layer is h⁰ of all; ``model.type: lcat`` numbers them."""

    name = "lcatgcn2conv"

    def __init__(self, layer_config: LayerConfig, **kwargs):
        super().__init__()
        if layer_config.dim_in != layer_config.dim_out:
            raise ValueError(
                f"{self.name!r} keeps the width, got {layer_config.dim_in} → {layer_config.dim_out}; "
                "set `gnn.layers_pre_mp: 1` so that a linear layer comes first"
            )
        self.model = LCATGCN2Conv(
            layer_config.dim_out,
            alpha=float(cfg.lcat.gcn2_alpha),
            theta=float(cfg.lcat.gcn2_theta),
            layer=1,
            **self._options(),
            **kwargs,
        )

    def set_number(self, number: int) -> None:
        """The layer's place in the network, from 1 on, decides its β."""
        self.model.beta = torch.log(torch.tensor(cfg.lcat.gcn2_theta / number + 1)).item()

    def forward(self, batch: Data) -> Data:
        if "x_0" not in batch:
            batch.x_0 = batch.x
        batch.x = self.model(batch.x, batch.x_0, batch.edge_index)
        return batch


class CATGCN2ConvLayer(LCATGCN2ConvLayer):
    """``catgcn2conv``: both λ are 1."""

    name, learns_lambdas = "catgcn2conv", False


class LCATGINConvLayer(_AdjacencyLayer):
    """``lcatginconv``: GIN with a perceptron of two layers. The score always has weights of its own."""

    name = "lcatginconv"

    def __init__(self, layer_config: LayerConfig, **kwargs):
        super().__init__()
        options = self._options()
        options.pop("score_weights")
        width = layer_config.dim_out
        perceptron = MLP([layer_config.dim_in, width, width], act=cfg.gnn.act, norm=None)
        self.model = LCATGINConv(
            perceptron, cfg.lcat.gin_eps, cfg.lcat.gin_train_eps, in_channels=layer_config.dim_in, **options, **kwargs
        )

    def forward(self, batch: Data) -> Data:
        batch.x = self.model(batch.x, batch.edge_index)
        return batch


class CATGINConvLayer(LCATGINConvLayer):
    """``catginconv``: both λ are 1."""

    name, learns_lambdas = "catginconv", False


def number_layers(network: torch.nn.Module) -> None:
    """Tells every GCNII layer of a network its place."""
    layers = [module for module in network.modules() if isinstance(module, LCATGCN2ConvLayer)]
    for number, layer in enumerate(layers, start=1):
        layer.set_number(number)


for _layer in (
    LCATPNAConvLayer,
    CATPNAConvLayer,
    LCATGCN2ConvLayer,
    CATGCN2ConvLayer,
    LCATGINConvLayer,
    CATGINConvLayer,
):
    register_once(layer_dict, _layer.name, _layer)
