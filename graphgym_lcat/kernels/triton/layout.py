"""The layout of a graph for the Triton kernels, sorted by torch on the graph's own device."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

MAX_EDGES = 2**31 - 1

#: Rows with more edges are cut into chunks of as many, which different programs work on.
CHUNK = 512


class LongRows(NamedTuple):
    """The rows with more than ``CHUNK`` edges, and their chunks.

    Attributes:
        rows: ``[long rows]``.
        pointers: ``[long rows + 1]``; the chunks of the k-th of them are ``pointers[k] … pointers[k + 1] - 1``.
        chunk_row, chunk_start: ``[chunks]``; row and first edge of each chunk.
    """

    rows: Tensor
    pointers: Tensor
    chunk_row: Tensor
    chunk_start: Tensor


class Compressed(NamedTuple):
    """The edges of each destination, or of each source. All tensors hold 32-bit integers.

    Attributes:
        pointers: ``[rows + 1]``; the edges of row i are ``pointers[i] … pointers[i + 1] - 1``.
        other_end: ``[edges]``; the node at the other end of each edge.
        edge_number: ``[edges]``; position of each edge in ``edge_index``. The added self-loop of node i has the number E + i.
        chunk: The number of edges of a chunk.
        long_rows: The rows with more edges than that, or None.
    """

    pointers: Tensor
    other_end: Tensor
    edge_number: Tensor
    chunk: int
    long_rows: LongRows | None

    @property
    def rows(self) -> int:
        return self.pointers.size(0) - 1


class DeviceLayout:
    """Edges by destination and by source, added self-loops included.

    Building it waits for the device, because the numbers of dropped self-loops and of chunks depend on the data; nothing that uses
    it does.

    Attributes:
        by_dst, by_src: The edges of each destination and of each source.
        num_edges: Number of edge numbers: edges of the input, and added self-loops.
        complete: Every edge number occurs: no self-loop of the input is dropped.
        skips_loops: Self-loops do not count as neighbours.
        inverse_sizes: ``[num_dst]``, float32; 1 / number of in-edges and added self-loop, or 1 if there are none.
        neighbors: ``[num_dst]``, float32; number of in-edges without self-loops, if they do not count.
    """

    def __init__(self, edge_index: Tensor, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool):
        device, count = edge_index.device, edge_index.size(1)
        self.num_src, self.num_dst, self.edges = num_src, num_dst, count
        self.self_loops = min(num_src, num_dst) if add_self_loops else 0
        self.num_edges = count + self.self_loops
        if self.num_edges > MAX_EDGES:
            raise RuntimeError(
                f"the Triton kernels count up to {MAX_EDGES} edges with self-loops, the graph has {self.num_edges}; "
                "use backend='torch'"
            )
        src, dst = edge_index.long()
        numbers = torch.arange(self.num_edges, device=device)
        self.complete = True
        if add_self_loops:
            kept = src != dst
            self.complete = bool(kept.all())
            loops = numbers[: self.self_loops]
            if not self.complete:
                src, dst = src[kept], dst[kept]
                numbers = torch.cat([numbers[:count][kept], numbers[count:]])
            src, dst = torch.cat([src, loops]), torch.cat([dst, loops])
        self.by_dst = _compress(dst, src, numbers, num_dst)
        self.by_src = _compress(src, dst, numbers, num_src)
        self.skips_loops = add_self_loops or shared_nodes
        sizes = self.by_dst.pointers.diff()
        self.inverse_sizes = 1 / sizes.clamp(min=1).float()
        if self.skips_loops:
            sizes = sizes - torch.bincount(dst[src == dst], minlength=num_dst)
        self.neighbors = sizes.float()


def _compress(rows: Tensor, other_end: Tensor, numbers: Tensor, num_rows: int) -> Compressed:
    order = torch.argsort(rows, stable=True)
    pointers = torch.searchsorted(rows[order], torch.arange(num_rows + 1, device=rows.device)).int()
    return Compressed(pointers, other_end[order].int(), numbers[order].int(), CHUNK, _find_long_rows(pointers, CHUNK))


def _find_long_rows(pointers: Tensor, chunk: int) -> LongRows | None:
    rows = (pointers.diff() > chunk).nonzero().squeeze(1)
    if not rows.numel():
        return None
    starts = pointers[rows].long()
    chunks = (pointers[rows + 1] - starts + chunk - 1) // chunk
    ends = chunks.cumsum(0)
    of_chunk = torch.repeat_interleave(torch.arange(rows.numel(), device=rows.device), chunks)
    place = torch.arange(of_chunk.numel(), device=rows.device) - (ends - chunks)[of_chunk]
    return LongRows(
        rows.int(),
        torch.nn.functional.pad(ends, (1, 0)).int(),
        rows[of_chunk].int(),
        (starts[of_chunk] + place * chunk).int(),
    )
