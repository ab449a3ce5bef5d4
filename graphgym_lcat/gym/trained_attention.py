"""The attention coefficients of a trained network, layer by layer."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from graphgym_lcat.nn import LCATConv
from lcat_core.errors import ResultsError


@dataclass(frozen=True)
class LayerAttention:
    """Attention of one layer.

    Attributes:
        name: Name of the module in the network.
        edge_index: Senders and receivers, ``[2, edges]``, with the self-loops that the layer adds.
        alpha: Coefficients, ``[edges, heads]``; those of one receiver sum to 1.
        lambda1, lambda2: As ``lambdas()`` of the layer returns them.
    """

    name: str
    edge_index: Tensor
    alpha: Tensor
    lambda1: float | tuple[float, ...]
    lambda2: float | tuple[float, ...]


def attention_of(model: torch.nn.Module, data: Data | HeteroData) -> list[LayerAttention]:
    """Return the attention of every attention layer of a GraphGym network on a graph; dropout is off.

    Raises:
        ResultsError: The network has no attention layer, such as a dense one, or one of PNA, GCNII or GIN.
    """
    layers = {name: module for name, module in model.named_modules() if isinstance(module, LCATConv)}
    if not layers:
        raise ResultsError("the network has no layer of the types lcatconv and catconv, whose attention could be shown")
    inputs: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def remember(name: str) -> Any:
        def hook(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            inputs[name] = args, kwargs

        return hook

    handles = [layer.register_forward_pre_hook(remember(name), with_kwargs=True) for name, layer in layers.items()]
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            model(copy.copy(data))
            for handle in handles:
                handle.remove()
            return [_layer_attention(name, layers[name], *inputs[name]) for name in layers if name in inputs]
    finally:
        for handle in handles:
            handle.remove()
        model.train(training)


def _layer_attention(name: str, layer: LCATConv, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LayerAttention:
    _, (edge_index, alpha) = layer(*args, **kwargs, return_attention_weights=True)
    lambda1, lambda2 = layer.lambdas()
    return LayerAttention(name, edge_index, alpha, lambda1, lambda2)
