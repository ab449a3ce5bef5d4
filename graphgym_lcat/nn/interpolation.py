"""The two scalars that slide a layer between GCN, GAT and CAT."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses import FakeTensor
from torch.nn import Module, Parameter

from graphgym_lcat.kernels.backend import Lambda
from graphgym_lcat.nn.checks import check_unit_interval
from graphgym_lcat.nn.weight_decay import exempt

# λ1 = sigmoid(10^x − 6), λ2 = sigmoid(10^(2.2 − y) − 6). Both start at 0.5.
_OFFSET = 6.0
_MIRROR = 2.2
_START = math.log10(_OFFSET)


# Models that earlier versions pickled as a whole name their parameters so.
LambdaParameter = Parameter


class Lambdas(NamedTuple):
    """The values of a layer: one number each, or one per head."""

    lambda1: float | tuple[float, ...]
    lambda2: float | tuple[float, ...]


class Interpolation(Module):
    r"""Holds :math:`\lambda_1` (0: convolve, 1: attend) and :math:`\lambda_2` (0: score raw features, 1: convolved ones).

    Args:
        lambda1, lambda2: ``'learn'``, or a fixed number in [0, 1].
        heads: 1 for one pair that all heads share, or the number of heads for one pair per head.
    """

    x: Parameter
    y: Parameter

    def __init__(self, lambda1: float | str = "learn", lambda2: float | str = "learn", heads: int = 1):
        super().__init__()
        self.fixed1 = None if lambda1 == "learn" else check_unit_interval("lambda1", lambda1)
        self.fixed2 = None if lambda2 == "learn" else check_unit_interval("lambda2", lambda2)
        for name, fixed in (("x", self.fixed1), ("y", self.fixed2)):
            self.register_parameter(name, Parameter(torch.empty(heads)) if fixed is None else None)
        if self.fixed1 is None or self.fixed2 is None:
            exempt(self)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.fixed1 is None:
            torch.nn.init.constant_(self.x, _START)
        if self.fixed2 is None:
            torch.nn.init.constant_(self.y, _MIRROR - _START)

    def __setstate__(self, state: dict[str, Any]) -> None:  # for copies
        super().__setstate__(state)
        exempt(self)

    def forward(self) -> tuple[Tensor | float, Tensor | float]:
        """λ1 and λ2: a float where it is fixed, a tensor ``[1]`` or ``[heads]`` where it is learned."""
        lambda1 = torch.sigmoid(10**self.x - _OFFSET) if self.fixed1 is None else self.fixed1
        lambda2 = torch.sigmoid(10 ** (_MIRROR - self.y) - _OFFSET) if self.fixed2 is None else self.fixed2
        return lambda1, lambda2

    def numbers(self) -> tuple[Lambda, Lambda]:
        """λ1 and λ2 as numbers with their derivatives, for kernels that compute a whole layer."""
        lambda1 = Lambda((self.fixed1,)) if self.fixed1 is not None else _differentiated(self.x, 0.0, 1.0)
        lambda2 = Lambda((self.fixed2,)) if self.fixed2 is not None else _differentiated(self.y, _MIRROR, -1.0)
        return lambda1, lambda2

    def lambdas(self) -> Lambdas:
        """The values as plain numbers; NaN on the meta device, and for the parts of a sharded model on other ranks."""
        lambda1 = _plain(_lambda(x) for x in _numbers(self.x)) if self.fixed1 is None else self.fixed1
        lambda2 = _plain(_lambda(_MIRROR - y) for y in _numbers(self.y)) if self.fixed2 is None else self.fixed2
        return Lambdas(lambda1, lambda2)

    def extra_repr(self) -> str:
        return describe(self)


def describe(interpolation: Interpolation) -> str:
    """``lambda1=0.5 (learned), lambda2=1``, for the repr of layers."""
    fixed = (interpolation.fixed1, interpolation.fixed2)
    parts = []
    for name, value, constant in zip(Lambdas._fields, interpolation.lambdas(), fixed, strict=True):
        text = f"[{', '.join(f'{v:.3g}' for v in value)}]" if isinstance(value, tuple) else f"{value:.3g}"
        parts.append(f"{name}={text}" + (" (learned)" if constant is None else ""))
    return ", ".join(parts)


def _numbers(parameter: Tensor) -> list[float]:
    """The numbers in ``parameter``, as far as this process has them: gathering those of other ranks could wait forever."""
    local = parameter.to_local() if hasattr(parameter, "to_local") else parameter  # a DTensor
    if local.is_meta or isinstance(local, FakeTensor) or local.numel() < parameter.numel():
        return [math.nan] * parameter.numel()
    return local.tolist()


def _lambda(x: float) -> float:
    """sigmoid(10ˣ − 6) of a plain number. x is limited because 10ˣ would overflow for a diverged layer."""
    return 1 / (1 + math.exp(_OFFSET - 10 ** min(x, 3.0)))


def _differentiated(parameter: Tensor, offset: float, sign: float) -> Lambda:
    """sigmoid(10^(offset + sign · x) − 6) of each number x of a parameter."""
    exponents = [min(offset + sign * x, 3.0) for x in parameter.tolist()]  # see `_lambda`
    values = [_lambda(x) for x in exponents]
    slopes = [sign * v * (1 - v) * math.log(10) * 10**x for v, x in zip(values, exponents, strict=True)]
    return Lambda(tuple(values), parameter, tuple(slopes))


def _plain(values: Iterable[float]) -> float | tuple[float, ...]:
    values = tuple(values)
    return values[0] if len(values) == 1 else values
