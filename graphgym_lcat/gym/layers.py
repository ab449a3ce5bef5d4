"""GraphGym's attention layers: adapters that read ``cfg.lcat`` and call the plain PyG modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import LayerConfig
from torch_geometric.graphgym.register import layer_dict

from graphgym_lcat.gym.config import check_lcat_config
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn import CATConv, LCATConv
from lcat_core.errors import SettingsError
from lcat_core.models import FAMILIES, LAYERS


def attention_options() -> dict[str, Any]:
    """Return what every layer of this package takes from ``cfg.lcat``, except the two λ."""
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
    """Return the λ of ``cfg.lcat``; None means learned, because yacs fixes the type of every other default."""
    values = {"lambda1": cfg.lcat.lambda1, "lambda2": cfg.lcat.lambda2}
    learned = {name: "learn" if value is None else value for name, value in values.items()}
    return {**learned, "lambda_per_head": cfg.lcat.lambda_per_head}


def refuse_lambdas(layer_type: str) -> None:
    """Check that no λ is set for a layer whose λ are both 1.

    Raises:
        SettingsError: A λ is set.
    """
    for name in ("lambda1", "lambda2"):
        value = cfg.lcat[name]
        if value is not None:
            raise SettingsError(
                f"`lcat.{name}` must not be set for {layer_type!r}, where both λ are 1, got {value!r}; "
                f"use gnn.layer_type: {LAYERS[layer_type].layer_type}",
                f"lcat.{name}",
            )


def channels_per_head(layer_config: LayerConfig) -> int:
    """Divide the width of a layer among its heads."""
    heads = cfg.lcat.heads
    if layer_config.dim_out % heads:
        raise SettingsError(
            f"the width of a layer, {layer_config.dim_out} (`gnn.dim_inner`), must be divisible by `lcat.heads`, got {heads}",
            "lcat.heads",
        )
    return layer_config.dim_out // heads


def layers_with_lambdas(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """Yield the layers of a network that have λ: the outermost modules with a method ``lambdas()``, in order."""
    if callable(getattr(module, "lambdas", None)):
        yield module
        return
    for child in module.children():
        yield from layers_with_lambdas(child)


class LCATConvLayer(torch.nn.Module):
    """``lcatconv``: :class:`graphgym_lcat.nn.LCATConv`, configured by ``cfg.lcat``."""

    def __init__(self, layer_config: LayerConfig, **kwargs: Any):
        super().__init__()
        options = {"bias": layer_config.has_bias, **attention_options(), **kwargs}
        self.model = self._build(layer_config.dim_in, channels_per_head(layer_config), options)

    def _build(self, dim_in: int, channels: int, options: dict[str, Any]) -> LCATConv:
        return LCATConv(dim_in, channels, **options, **lambda_options())

    def forward(self, batch: Data) -> Data:
        edge_attr = batch.edge_attr if self.model.edge_dim is not None else None
        batch.x = self.model(batch.x, batch.edge_index, edge_attr)
        return batch


class CATConvLayer(LCATConvLayer):
    """``catconv``: :class:`graphgym_lcat.nn.CATConv`, configured by ``cfg.lcat``."""

    def _build(self, dim_in: int, channels: int, options: dict[str, Any]) -> CATConv:
        refuse_lambdas(FAMILIES["conv"].fixed_layer_type)
        return CATConv(dim_in, channels, **options)


register_once(layer_dict, FAMILIES["conv"].layer_type, LCATConvLayer)
register_once(layer_dict, FAMILIES["conv"].fixed_layer_type, CATConvLayer)
