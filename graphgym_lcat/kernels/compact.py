"""The layout of a graph for the fused kernels, sorted by counting in C."""

from __future__ import annotations

import ctypes
import functools

import torch
from torch import Tensor

from graphgym_lcat.kernels import library

MAX_NODES = 2**31 - 1


class CompactLayout:
    """Edges by destination and by source; 32-bit node numbers, 64-bit offsets.

    Attributes:
        rowptr, col: Sources of destination ``i`` are ``col[rowptr[i]:rowptr[i + 1]]``, in ascending order.
        colptr, row: Destinations of source ``j`` are ``row[colptr[j]:colptr[j + 1]]``.
        num_edges: Number of stored edges.
        loops: ``[num_dst]``; number of self-loops among the edges, or None if there are none or they do not matter.
        self_loops: Nodes ``0 … self_loops - 1`` have one self-loop that is not stored.
        symmetric: Every edge goes both ways; ``colptr, row`` are then the same tensors as ``rowptr, col``.
    """

    def __init__(self, edge_index: Tensor, num_src: int, num_dst: int, add_self_loops: bool, count_loops: bool):
        edges = edge_index.size(1)
        src, dst = edge_index.to(torch.int64).contiguous()
        self.num_src, self.num_dst = num_src, num_dst
        self.self_loops = min(num_src, num_dst) if add_self_loops else 0
        self.rowptr = torch.empty(num_dst + 1, dtype=torch.int64)
        self.colptr = torch.empty(num_src + 1, dtype=torch.int64)
        self.col = torch.empty(edges, dtype=torch.int32)
        self.row = torch.empty(edges, dtype=torch.int32)
        loops = torch.empty(num_dst, dtype=torch.int32) if count_loops else None
        symmetric = ctypes.c_int()
        kept = library.loaded().layout(
            edges,
            src.data_ptr(),
            dst.data_ptr(),
            num_src,
            num_dst,
            int(add_self_loops),
            self.rowptr.data_ptr(),
            self.col.data_ptr(),
            self.colptr.data_ptr(),
            self.row.data_ptr(),
            0 if loops is None else loops.data_ptr(),
            ctypes.addressof(symmetric),
        )
        if kept < 0:
            raise ValueError(
                f"`edge_index` must hold sources in [0, {num_src - 1}] and destinations in [0, {num_dst - 1}]"
            )
        self.symmetric = bool(symmetric.value)
        if kept < edges:
            self.col, self.row = self.col[:kept], self.row[:kept]
        if self.symmetric:
            self.colptr, self.row = self.rowptr, self.col
        self.num_edges = kept
        self.loops = loops if loops is not None and bool(loops.any()) else None

        # The addresses are read once: on a small graph, reading them for every call would take a notable part of the time.
        self.by_row = (num_dst, self.rowptr.data_ptr(), self.col.data_ptr())
        self.by_col = (num_src, self.colptr.data_ptr(), self.row.data_ptr())
        self.loops_ptr = 0 if self.loops is None else self.loops.data_ptr()

    @functools.cached_property
    def slots(self) -> Tensor:
        """``[E]``; where the edges in the order of :attr:`row` stand in the order of :attr:`col`."""
        slots = torch.empty(self.row.numel(), dtype=torch.int32)
        following = torch.empty(self.num_dst, dtype=torch.int64)
        library.loaded().slots(*self.by_col, *self.by_row[:2], following.data_ptr(), slots.data_ptr())
        return slots
