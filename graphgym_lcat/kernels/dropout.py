"""Which attention coefficients dropout keeps: a hash of seed, edge and head, the same on every device and in every backend.

``csrc/dropout.h`` computes the same masks. Nothing is stored: the backward pass computes them again.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphgym_lcat.kernels.hashing import STEP, WORD, finish, mix, scramble


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
    edge = edge.long()
    seed = seed.to(edge.device) if isinstance(seed, Tensor) else torch.tensor([seed], device=edge.device)
    edge_key, head_key = scramble(seed)
    head = mix((head_key + torch.arange(heads, device=edge.device) * STEP) & WORD)
    return finish(mix(edge ^ edge_key).unsqueeze(-1) ^ head) >= keep_threshold(probability)


def dropout_factors(seed: Tensor | int, edge: Tensor, heads: int, probability: float, dtype: torch.dtype) -> Tensor:
    """What coefficients are multiplied with: 0 where they are dropped, else ``1 / (1 - probability)``."""
    factor = 1 / (1 - probability) if probability < 1 else 0.0
    return keep_mask(seed, edge, heads, probability).to(dtype) * factor


def keep_threshold(probability: float) -> int:
    """The smallest 32-bit word that keeps a coefficient."""
    return min(math.floor(probability * 2**32 + 0.5), WORD)
