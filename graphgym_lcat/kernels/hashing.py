"""The counter-based generator of ``csrc/hash.h`` in torch: words are functions of a seed and two counters.

Words are 32 bits in 64-bit integers, which all devices and torch.compile support.
"""

from __future__ import annotations

from torch import Tensor

WORD = 0xFFFFFFFF
STEP = 0x9E3779B9


def scramble(seed: Tensor) -> tuple[Tensor, Tensor]:
    """The keys of the two counters; successive seeds have nothing in common."""
    low, high = seed & WORD, (seed >> 32) & WORD
    first = mix(low ^ mix((high + STEP) & WORD))
    return first, mix(high ^ mix((first + STEP) & WORD))


def mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit words in which every bit of the result depends on every bit of ``x`` (Wellons' lowbias32)."""
    x = x ^ (x >> 16)
    x = _product(x, 0x7FEB352D)
    x = x ^ (x >> 15)
    x = _product(x, 0x846CA68B)
    return x ^ (x >> 16)


def finish(x: Tensor) -> Tensor:
    """A stronger one (his triple32): with :func:`mix` alone, the rates of single heads were further off than chance allows."""
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
        return (x * factor) & WORD
    low = x * (factor & 0xFFFF)
    high = ((x * (factor >> 16)) & 0xFFFF) << 16
    return (low + high) & WORD
