"""The two initialisations of the paper's experiments."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.parameter import is_lazy
from torch_geometric.nn.dense.linear import Linear

from graphgym_lcat.kernels.derivatives import in_transform
from graphgym_lcat.kernels.threads import MIN_PRODUCTS_PER_THREAD, limited_threads, threads_for

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


class _OneThreadLinear(torch.autograd.Function):
    """``x @ weightᵀ + bias`` in one thread, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        with limited_threads(1):
            return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        with limited_threads(1):
            return (
                grad @ weight if ctx.needs_input_grad[0] else None,
                grad.t() @ x if ctx.needs_input_grad[1] else None,
                grad.sum(0) if ctx.needs_input_grad[2] else None,
            )


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

    def forward(self, x: Tensor) -> Tensor:
        # A small product beside others that run in one thread must not wake a second one.
        if not torch.compiler.is_compiling() and torch.get_num_threads() > 1 and self._is_small(x):
            return _OneThreadLinear.apply(x, self.weight, self.bias)
        return super().forward(x)

    def _is_small(self, x: Tensor) -> bool:
        is_plain = (
            x.dim() == 2 and x.layout == torch.strided and x.device.type == "cpu" and x.dtype == self.weight.dtype
        )
        transformed = torch.is_autocast_enabled("cpu") or in_transform()
        work = x.size(0) * self.weight.numel()
        return is_plain and not transformed and threads_for(work, MIN_PRODUCTS_PER_THREAD) == 1

    def materialize(self, x: Tensor) -> None:
        """Creates the weight for inputs like ``x``, if it does not exist yet."""
        if not torch.compiler.is_compiling() and is_lazy(self.weight):
            self.initialize_parameters(self, (x,))
