"""Launching kernels: the sizes of their blocks, and the device that they run on."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

#: Numbers of a tile (edges × columns) that a program holds in registers, and of those that one warp holds.
TILE = 2048
TILE_OF_WARP = 512
MAX_COLUMNS = 256
MAX_EDGES = 16
MAX_WARPS = 8


class Blocks(NamedTuple):
    """What one program works on at a time: some edges, some heads of a node, and all of their channels."""

    edges: int
    heads: int
    warps: int


def columns_of(width: int) -> int:
    """Columns of a block that holds ``width`` numbers, for which Triton needs a power of 2."""
    return triton.next_power_of_2(width)


def choose_blocks(heads: int, width: int) -> Blocks:
    """The blocks for so many heads with ``width`` numbers each."""
    columns = columns_of(width)
    block_heads = max(1, min(triton.next_power_of_2(heads), MAX_COLUMNS // columns))
    edges = max(1, min(MAX_EDGES, TILE // (block_heads * columns)))
    warps = max(1, min(MAX_WARPS, edges * block_heads * columns // TILE_OF_WARP))
    return Blocks(edges, block_heads, warps)


def launch(kernel: Any, grid: tuple[int, int], tensor: Tensor, *arguments: Any, **options: Any) -> None:
    """Runs one program per element of ``grid`` on the device of ``tensor``, unless there are none."""
    if 0 in grid:
        return
    on_device = torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()
    with on_device:
        kernel[grid](*arguments, **options)
