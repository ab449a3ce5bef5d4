"""Which attention coefficients dropout keeps: a hash of seed, edge and head, the same on every device and in every backend.

``csrc/dropout.h`` computes the same masks. Nothing is stored: the backward pass computes them again.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_WORD = 0xFFFFFFFF
_STEP = 0x9E3779B9


def draw_seed(device: torch.device | None = None) -> Tensor:
    """A seed for one forward pass, an int64 tensor with one number, from torch's default generator.

    On a GPU, it is that of the GPU: nothing is copied there, and every replay of a CUDA graph draws another seed.
    """
    on_gpu = device is not None and device.type == "cuda"
    return torch.randint(-(2**63), 2**63 - 1, (1,), dtype=torch.int64, device=device if on_gpu else None)


def keep_mask(seed: Tensor | int, edge: Tensor, heads: int, probability: float) -> Tensor:
    """Whether dropout keeps each coefficient: ``[len(edge), heads]``, bool.

    Args:
        seed: 64 bits.
        edge: ``[n]``, numbers of edges: positions in ``edge_index``; the added self-loop of node i has the number E + i.
        heads: Number of heads.
        probability: Probability that a coefficient is dropped.
    """
    # 64-bit integers that hold 32-bit words, which all devices and torch.compile support.
    edge = edge.long()
    seed = seed.to(edge.device) if isinstance(seed, Tensor) else torch.tensor([seed], device=edge.device)
    low, high = seed & _WORD, (seed >> 32) & _WORD
    # Scrambled, so that successive seeds have nothing in common; a bijection.
    edge_key = _mix(low ^ _mix((high + _STEP) & _WORD))
    head_key = _mix(high ^ _mix((edge_key + _STEP) & _WORD))
    head = _mix((head_key + torch.arange(heads, device=edge.device) * _STEP) & _WORD)
    return _finish(_mix(edge ^ edge_key).unsqueeze(-1) ^ head) >= keep_threshold(probability)


def dropout_factors(seed: Tensor | int, edge: Tensor, heads: int, probability: float, dtype: torch.dtype) -> Tensor:
    """What coefficients are multiplied with: 0 where they are dropped, else ``1 / (1 - probability)``."""
    factor = 1 / (1 - probability) if probability < 1 else 0.0
    return keep_mask(seed, edge, heads, probability).to(dtype) * factor


def keep_threshold(probability: float) -> int:
    """The smallest 32-bit word that keeps a coefficient."""
    return min(math.floor(probability * 2**32 + 0.5), _WORD)


def _mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit words in which every bit of the result depends on every bit of ``x`` (Wellons' lowbias32)."""
    x = x ^ (x >> 16)
    x = _product(x, 0x7FEB352D)
    x = x ^ (x >> 15)
    x = _product(x, 0x846CA68B)
    return x ^ (x >> 16)


def _finish(x: Tensor) -> Tensor:
    """A stronger one (his triple32): with :func:`_mix` alone, the rates of single heads were further off than chance allows."""
    x = x ^ (x >> 17)
    x = _product(x, 0xED5AD4BB)
    x = x ^ (x >> 11)
    x = _product(x, 0xAC4C1B51)
    x = x ^ (x >> 15)
    x = _product(x, 0x31848BAB)
    return x ^ (x >> 14)


def _product(x: Tensor, factor: int) -> Tensor:
    """``x * factor mod 2³²``."""
    if factor < 2**31:
        return (x * factor) & _WORD
    low = x * (factor & 0xFFFF)
    high = ((x * (factor >> 16)) & 0xFFFF) << 16
    return (low + high) & _WORD
