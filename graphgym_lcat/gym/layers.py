"""GraphGym's layers: adapters that read ``cfg.lcat`` and call the plain PyG modules."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import LayerConfig
from torch_geometric.graphgym.register import layer_dict

from graphgym_lcat.gym.config import check_lcat_config
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn import CATConv, LCATConv


def attention_options() -> dict[str, Any]:
    """What every layer of this package takes from ``cfg.lcat``, the two λ aside."""
    check_lcat_config(cfg)
    return {
        "heads": cfg.lcat.heads,
        "score": cfg.lcat.score,
        "score_weights": cfg.lcat.score_weights,
        "init": cfg.lcat.init,
        "negative_slope": float(cfg.lcat.negative_slope),
        "dropout": float(cfg.lcat.dropout),
        "edge_dim": cfg.lcat.edge_dim or None,
        "backend": cfg.lcat.backend,
    }


def lambda_options() -> dict[str, Any]:
    """The λ of ``cfg.lcat``; None stands for learned, since yacs fixes the type of every other default."""
    values = {"lambda1": cfg.lcat.lambda1, "lambda2": cfg.lcat.lambda2}
    learned = {name: "learn" if value is None else value for name, value in values.items()}
    return {**learned, "lambda_per_head": cfg.lcat.lambda_per_head}


def refuse_lambdas(layer_type: str, alternative: str) -> None:
    """Raises if a λ is set for a layer whose λ are fixed."""
    for name in ("lambda1", "lambda2"):
        value = cfg.lcat[name]
        if value is not None:
            raise ValueError(
                f"`lcat.{name}` must not be set for {layer_type!r}, where both λ are 1, got {value!r}; "
                f"use gnn.layer_type: {alternative}"
            )


def channels_per_head(layer_config: LayerConfig) -> int:
    """The layer's width, split over its heads."""
    heads = cfg.lcat.heads
    if layer_config.dim_out % heads:
        raise ValueError(
            f"the width of a layer, {layer_config.dim_out} (`gnn.dim_inner`), must be divisible by `lcat.heads`, got {heads}"
        )
    return layer_config.dim_out // heads


class LCATConvLayer(torch.nn.Module):
    """``lcatconv``: :class:`graphgym_lcat.nn.LCATConv`, set up by ``cfg.lcat``."""

    def __init__(self, layer_config: LayerConfig, **kwargs):
        super().__init__()
        self.model = LCATConv(
            layer_config.dim_in,
            channels_per_head(layer_config),
            bias=layer_config.has_bias,
            **attention_options(),
            **lambda_options(),
            **kwargs,
        )

    def forward(self, batch: Data) -> Data:
        edge_attr = batch.edge_attr if self.model.edge_dim is not None else None
        batch.x = self.model(batch.x, batch.edge_index, edge_attr)
        return batch


class CATConvLayer(LCATConvLayer):
    """``catconv``: :class:`graphgym_lcat.nn.CATConv`, set up by ``cfg.lcat``."""

    def __init__(self, layer_config: LayerConfig, **kwargs):
        torch.nn.Module.__init__(self)
        refuse_lambdas("catconv", "lcatconv")
        self.model = CATConv(
            layer_config.dim_in,
            channels_per_head(layer_config),
            bias=layer_config.has_bias,
            **attention_options(),
            **kwargs,
        )


register_once(layer_dict, "lcatconv", LCATConvLayer)
register_once(layer_dict, "catconv", CATConvLayer)
