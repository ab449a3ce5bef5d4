"""The two initialisations of the paper's experiments."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy
from torch_geometric.nn.dense.linear import Linear

INITS = ("uniform", "normal")


def init_weight(weight: Tensor, init: str) -> None:
    """``uniform``: Glorot uniform, gain 1. ``normal``: Glorot normal, gain √2."""
    if init == "uniform":
        torch.nn.init.xavier_uniform_(weight)
    else:
        torch.nn.init.xavier_normal_(weight, gain=math.sqrt(2))


def init_attention_vector(vector: Tensor, init: str) -> None:
    """``[1, H, C]``. ``uniform``: ones, as in the authors' code. ``normal``: as the weights."""
    if init == "uniform":
        torch.nn.init.ones_(vector)
    else:
        init_weight(vector[0], init)


class Projection(Linear):
    """A PyG ``Linear``, initialised as ``init`` says; ``in_channels`` may be −1. A bias starts at 0."""

    def __init__(self, in_channels: int, out_channels: int, init: str, bias: bool = False):
        self.init = init
        super().__init__(in_channels, out_channels, bias=bias)

    def reset_parameters(self) -> None:
        if self.in_channels > 0:
            init_weight(self.weight, self.init)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def materialize(self, x: Tensor) -> None:
        """Creates the weight for inputs like ``x``, if it does not exist yet."""
        if not torch.compiler.is_compiling() and is_lazy(self.weight):
            self.initialize_parameters(self, (x,))
