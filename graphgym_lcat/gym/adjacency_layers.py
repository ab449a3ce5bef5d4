"""GraphGym's layers on the attention adjacency: one adapter per family, registered with λ learned or set, and with both λ fixed.

To add a layer, write an adapter that builds ``self.model``, and decorate it with the name of its row in
``lcat_core.models.FAMILIES``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

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
from lcat_core.errors import SettingsError
from lcat_core.models import FAMILIES, FIXED_LAYERS

_CAT = {"lambda1": 1.0, "lambda2": 1.0}


class AdjacencyLayer(torch.nn.Module):
    """The base of the adapters; ``layer_type`` is the name that the layer was built by."""

    model: torch.nn.Module

    def __init__(self, layer_type: str):
        super().__init__()
        self.layer_type = layer_type

    def options(self) -> dict[str, Any]:
        """Return what the layer takes from ``cfg.lcat``, with the two λ.

        Raises:
            SettingsError: A key is set that this layer does not support.
        """
        options = attention_options()
        for key in ("dropout", "edge_dim"):
            if options.pop(key):
                raise SettingsError(
                    f"`lcat.{key}` must be 0 for {self.layer_type!r}, got {cfg.lcat[key]}", f"lcat.{key}"
                )
        if self.layer_type not in FIXED_LAYERS:
            return options | lambda_options()
        refuse_lambdas(self.layer_type)
        return options | _CAT

    def forward(self, batch: Data) -> Data:
        batch.x = self.model(batch.x, batch.edge_index)
        return batch


Adapter = TypeVar("Adapter", bound=Callable[..., AdjacencyLayer])


def adjacency_layer(family_name: str) -> Callable[[Adapter], Adapter]:
    """Register an adapter under both names of its family: ``lcat…`` (λ learned or set) and ``cat…`` (both λ are 1)."""
    family = FAMILIES[family_name]

    def register(adapter: Adapter) -> Adapter:
        for layer_type in (family.layer_type, family.fixed_layer_type):
            register_once(layer_dict, layer_type, _builder(adapter, layer_type))
        return adapter

    return register


def _builder(adapter: Callable[..., AdjacencyLayer], layer_type: str) -> Callable[..., AdjacencyLayer]:
    @functools.wraps(adapter, assigned=("__module__", "__qualname__", "__name__", "__doc__"), updated=())
    def build(layer_config: LayerConfig, **kwargs: Any) -> AdjacencyLayer:
        return adapter(layer_type, layer_config, **kwargs)

    return build


def degree_histogram(data: Data) -> torch.Tensor:
    """Count the nodes of each in-degree, which determines the scalers of PNA."""
    degrees = degree(data.edge_index[1], data.num_nodes, dtype=torch.long)
    return torch.bincount(degrees)


@adjacency_layer("pna")
class PNALayer(AdjacencyLayer):
    """PNA. The degree histogram is computed from the graph of the first forward pass, and kept."""

    knows_degrees: torch.Tensor

    def __init__(self, layer_type: str, layer_config: LayerConfig, **kwargs: Any):
        super().__init__(layer_type)
        options = self.options()
        options.pop("backend")
        # A dummy histogram: PyG's buffers are filled in when the first graph is seen.
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
        return super().forward(batch)

    def _set_degrees(self, histogram: torch.Tensor) -> None:
        degrees = torch.arange(histogram.numel(), device=histogram.device)
        nodes = histogram.sum()
        scaler: Any = self.model.aggr_module
        scaler.avg_deg_lin.data.fill_((degrees * histogram).sum() / nodes)
        scaler.avg_deg_log.data.fill_((torch.log(degrees + 1) * histogram).sum() / nodes)
        self.knows_degrees.fill_(True)


@adjacency_layer("gcnii")
class GCN2Layer(AdjacencyLayer):
    """GCNII. The input of the first such layer is h⁰ of all of them; ``model.type: lcat`` numbers them."""

    def __init__(self, layer_type: str, layer_config: LayerConfig, **kwargs: Any):
        super().__init__(layer_type)
        if layer_config.dim_in != layer_config.dim_out:
            raise SettingsError(
                f"{self.layer_type!r} keeps the width, got {layer_config.dim_in} → {layer_config.dim_out}; "
                "set `gnn.layers_pre_mp: 1` to put a linear layer first",
                "gnn.layers_pre_mp",
            )
        self.model = LCATGCN2Conv(
            layer_config.dim_out,
            alpha=float(cfg.lcat.gcn2_alpha),
            theta=float(cfg.lcat.gcn2_theta),
            layer=1,
            **self.options(),
            **kwargs,
        )

    def set_number(self, number: int) -> None:
        """Set the position of the layer in the network, from 1, which determines β."""
        model: Any = self.model
        model.beta = torch.log(torch.tensor(cfg.lcat.gcn2_theta / number + 1)).item()

    def forward(self, batch: Data) -> Data:
        if "x_0" not in batch:
            batch.x_0 = batch.x
        batch.x = self.model(batch.x, batch.x_0, batch.edge_index)
        return batch


@adjacency_layer("gin")
class GINLayer(AdjacencyLayer):
    """GIN with a perceptron of two layers. The score always has weights of its own."""

    def __init__(self, layer_type: str, layer_config: LayerConfig, **kwargs: Any):
        super().__init__(layer_type)
        options = self.options()
        options.pop("score_weights")
        width = layer_config.dim_out
        perceptron = MLP([layer_config.dim_in, width, width], act=cfg.gnn.act, norm=None)
        self.model = LCATGINConv(
            perceptron, cfg.lcat.gin_eps, cfg.lcat.gin_train_eps, in_channels=layer_config.dim_in, **options, **kwargs
        )


def number_layers(network: torch.nn.Module) -> None:
    """Number the GCNII layers of a network in order."""
    layers = [module for module in network.modules() if isinstance(module, GCN2Layer)]
    for number, layer in enumerate(layers, start=1):
        layer.set_number(number)
