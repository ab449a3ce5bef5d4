"""Neighbour sampling: in-edges drawn without replacement, and the numbers of nodes within a batch.

The C library does the work; without it torch computes the same, number by number. What is drawn for a node is a function of the
seed and the node alone, so the number of threads changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from graphgym_lcat.kernels import hashing, library
from graphgym_lcat.kernels.compact import MAX_NODES

MAX_EDGES = 2**32 - 1


def empty(*size: int, dtype: torch.dtype) -> Tensor:
    """``torch.empty``, in large pages where the system has them."""
    tensor = torch.empty(size, dtype=dtype)
    if isinstance(library.load(), library.Library):
        library.loaded().sampling["prefer_large_pages"](tensor.data_ptr(), tensor.nbytes)
    return tensor


class Edges(NamedTuple):
    """Edges that were drawn, by destination.

    Attributes:
        source: Their sources.
        target: Their destinations, as numbers within the batch.
        number: Their positions in ``edge_index``.
    """

    source: Tensor
    target: Tensor
    number: Tensor


class InEdges:
    """The edges of a graph by destination.

    Args:
        edge_index: ``[2, E]``, edges from sources to destinations.
        num_src, num_dst: Number of nodes.
        native: Whether C does the work; by default if the library was built.

    Attributes:
        begin: ``[num_dst + 1]``; the in-edges of node ``i`` are the rows ``begin[i] … begin[i + 1] - 1`` of the next.
        edges: ``[E, 2]``, unsigned 32-bit numbers: the source of each edge, and its position in ``edge_index``.
    """

    def __init__(self, edge_index: Tensor, num_src: int, num_dst: int, native: bool | None = None):
        if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.is_floating_point():
            raise ValueError(
                f"`edge_index` must hold integers [2, E], got {edge_index.dtype} of shape {list(edge_index.shape)}"
            )
        count = edge_index.size(1)
        if count > MAX_EDGES or num_src > MAX_NODES:
            raise ValueError(
                f"sampling supports up to {MAX_NODES} nodes and {MAX_EDGES} edges, got {num_src} and {count}"
            )
        self.native = isinstance(library.load(), library.Library) if native is None else native
        self.num_src, self.num_dst = num_src, num_dst
        src, dst = edge_index.to("cpu", torch.int64).contiguous()
        self.begin = torch.empty(num_dst + 1, dtype=torch.int64)
        self.edges = empty(count, 2, dtype=torch.int32)
        sort = self._sort_in_c if self.native else self._sort
        if not sort(src, dst):
            raise ValueError(
                f"`edge_index` must hold sources in [0, {num_src - 1}] and destinations in [0, {num_dst - 1}]"
            )

    def draw(
        self, nodes: Tensor, size: int, seed: int, first: int = 0, threads: int = 1, earlier: Edges | None = None
    ) -> Edges:
        """Draw up to ``size`` in-edges of each node without replacement, all of them if ``size`` is negative.

        Args:
            nodes: ``[n]``, destinations.
            size: Number of edges per node.
            seed: 64 bits; equal seeds draw the same edges.
            first: Number of ``nodes[0]`` within the batch; the others follow.
            threads: Threads of the C library.
            earlier: Edges to begin the result with.
        """
        if not self.native:
            drawn = self._draw(nodes, size, seed, first)
            return drawn if earlier is None else Edges(*map(torch.cat, zip(earlier, drawn, strict=True)))
        sampling = library.loaded().sampling
        offset = torch.empty(nodes.numel(), dtype=torch.int64)
        pointers = (nodes.numel(), nodes.data_ptr(), self.begin.data_ptr())
        total = sampling["sample_counts"](*pointers, size, offset.data_ptr())
        # One allocation for all: touching new memory takes longer than drawing.
        start = 0 if earlier is None else earlier.source.numel()
        drawn = Edges(*empty(3, start + total, dtype=torch.int64))
        if earlier is not None:
            for part, known in zip(drawn, earlier, strict=True):
                part[:start] = known
        addresses = (part[start:].data_ptr() for part in drawn)
        sampling["sample_edges"](
            *pointers, self.edges.data_ptr(), size, seed, offset.data_ptr(), first, *addresses, threads
        )
        return drawn

    def _sort_in_c(self, src: Tensor, dst: Tensor) -> bool:
        arguments = (src.numel(), src.data_ptr(), dst.data_ptr(), self.num_src, self.num_dst)
        return not library.loaded().sampling["in_edges"](*arguments, self.begin.data_ptr(), self.edges.data_ptr())

    def _sort(self, src: Tensor, dst: Tensor) -> bool:
        for nodes, count in ((src, self.num_src), (dst, self.num_dst)):
            if nodes.numel() and (nodes.min() < 0 or nodes.max() >= count):
                return False
        number = torch.argsort(dst, stable=True)
        torch.searchsorted(dst[number], torch.arange(self.num_dst + 1), out=self.begin)
        self.edges[:, 0], self.edges[:, 1] = src[number], number
        return True

    def _draw(self, nodes: Tensor, size: int, seed: int, first: int) -> Edges:
        """What ``csrc/sampling.c`` computes, in the same order."""
        begin = self.begin[nodes]
        degree = self.begin[nodes + 1] - begin
        kept = degree if size < 0 else degree.clamp(max=size)
        target = torch.repeat_interleave(torch.arange(nodes.numel()), kept)
        position = torch.arange(target.numel()) - (kept.cumsum(0) - kept)[target]
        chooses = kept < degree
        if bool(chooses.any()):
            position[chooses[target]] = _choose(degree[chooses], size, nodes[chooses], seed).flatten()
        edges = self.edges[begin[target] + position].long() & hashing.WORD
        return Edges(edges[:, 0].contiguous(), target + first, edges[:, 1].contiguous())


def _choose(degree: Tensor, size: int, nodes: Tensor, seed: int) -> Tensor:
    """``size`` of the numbers ``0 … degree - 1`` for each node, by Floyd's algorithm."""
    first, second = hashing.scramble(torch.tensor([seed]))
    node_word = hashing.mix(nodes ^ first)
    chosen = torch.empty(degree.numel(), size, dtype=torch.int64)
    for k in range(size):
        last = degree - size + k
        word = hashing.finish(node_word ^ hashing.mix((second + k * hashing.STEP) & hashing.WORD))
        # A 64-bit product of a word and a number of up to 32 bits may exceed what a signed integer holds: in two halves.
        bound = last + 1
        candidate = (((word >> 16) * bound) + (((word & 0xFFFF) * bound) >> 16)) >> 16
        taken = (chosen[:, :k] == candidate.unsqueeze(1)).any(dim=1)
        chosen[:, k] = torch.where(taken, last, candidate)
    return chosen


class Numbering:
    """Numbers the nodes of one type within a batch, in the order in which they come.

    Args:
        num_nodes: Nodes of this type in the graph.
        native: Whether C does the work.

    Attributes:
        count: Number of nodes in the batch.
    """

    def __init__(self, num_nodes: int, native: bool):
        self.native = native
        self.count = 0
        self._place = torch.full((num_nodes,), -1, dtype=torch.int32)
        self._nodes: list[Tensor] = []
        self._new: list[Tensor] = []

    def number_(self, nodes: Tensor) -> None:
        """Replace nodes by their numbers; those that have none get the next ones."""
        new = self._number_in_c(nodes) if self.native else self._number(nodes)
        self.count += new.numel()
        self._new.append(new)

    def take_new(self) -> tuple[int, Tensor]:
        """Return the nodes that got their numbers since the last call, and the first of these numbers."""
        new = torch.cat(self._new) if self._new else torch.empty(0, dtype=torch.int64)
        self._nodes.append(new)
        self._new = []
        return self.count - new.numel(), new

    def finish(self) -> Tensor:
        """Return all nodes of the batch in their order, and forget them."""
        self.take_new()
        nodes = torch.cat(self._nodes)
        self._place[nodes] = -1
        self._nodes, self.count = [], 0
        return nodes

    def _number_in_c(self, nodes: Tensor) -> Tensor:
        new = empty(nodes.numel(), dtype=torch.int64)
        added = library.loaded().sampling["number_nodes"](
            nodes.numel(), nodes.data_ptr(), self._place.data_ptr(), self.count, new.data_ptr()
        )
        return new[:added]

    def _number(self, nodes: Tensor) -> Tensor:
        unknown = nodes[self._place[nodes] < 0]
        values, inverse = torch.unique(unknown, return_inverse=True)
        position = torch.full_like(values, unknown.numel())
        position.scatter_reduce_(0, inverse, torch.arange(unknown.numel()), "amin")
        new = values[position.argsort()]
        self._place[new] = torch.arange(self.count, self.count + new.numel(), dtype=torch.int32)
        nodes.copy_(self._place[nodes])
        return new
