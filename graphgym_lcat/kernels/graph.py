"""The layout of a graph: its edges sorted by destination (CSR) and by source (CSC)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgym_lcat.kernels.compact import CompactLayout
from graphgym_lcat.kernels.edge_numbers import EdgeNumbers
from graphgym_lcat.kernels.triton.layout import DeviceLayout


class Graph:
    """A (bipartite) graph, and its edges in the order in which the kernels walk over them.

    Build it once with :meth:`from_edge_index` and pass it to a layer in place of ``edge_index``, or pass ``edge_index``
    and let :func:`graphgym_lcat.kernels.find_graph` cache it. Self-loops that a layer adds are not stored: node
    ``i < self_loops`` has exactly one.

    The edges are sorted when a backend first needs them: :attr:`compact` for the fused kernels, :attr:`device_layout` for the
    Triton kernels, :attr:`sorted_edges` for the torch path. Do not change ``edge_index`` in the meantime.

    Attributes:
        num_src, num_dst: Number of source and destination nodes.
        add_self_loops: The self-loops of the input are dropped, and each shared node has one.
        self_loops: Nodes ``0 … self_loops - 1`` have one implicit self-loop.
        shared_nodes: Source ``j < num_dst`` and destination ``j`` are the same node.
        edge_index: ``[2, E]``, as it was given.
    """

    def __init__(self, edge_index: Tensor, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool):
        self.num_src = num_src
        self.num_dst = num_dst
        self.add_self_loops = add_self_loops
        self.self_loops = min(num_src, num_dst) if add_self_loops else 0
        self.shared_nodes = shared_nodes
        self._sorted: SortedEdges | None = None
        self._compact: CompactLayout | None = None
        self._edge_numbers: EdgeNumbers | None = None
        self._device_layout: DeviceLayout | None = None
        if torch.compiler.is_compiling():
            self.edge_index = edge_index
            self._version = None
        else:
            # An alias: the graph must not keep the caller's tensor alive, since the cache drops an entry when that tensor is
            # garbage-collected.
            self.edge_index = edge_index.detach()
            self._version = None if edge_index.is_inference() else self.edge_index._version

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | tuple[int, int],
        add_self_loops: bool = True,
        shared_nodes: bool | None = None,
    ) -> Graph:
        """The graph of the edges ``edge_index[0] → edge_index[1]``.

        Args:
            edge_index: ``[2, E]``, integers.
            num_nodes: Number of nodes, or of sources and destinations.
            add_self_loops: Drop the self-loops of the input and give each shared node one.
            shared_nodes: Source ``j`` and destination ``j`` are the same node wherever both exist; by default true for
                one number of nodes, and for a pair if self-loops are added (as in PyG's ``GATConv``).
        """
        num_src, num_dst = (num_nodes, num_nodes) if isinstance(num_nodes, int) else num_nodes
        if shared_nodes is None:
            shared_nodes = add_self_loops or isinstance(num_nodes, int)
        if not torch.compiler.is_compiling():
            _check_edge_index(edge_index, num_src, num_dst)
        return cls(edge_index, num_src, num_dst, add_self_loops, shared_nodes)

    @property
    def compact(self) -> CompactLayout:
        """The edges for the fused kernels."""
        if self._compact is None:
            self._check_unchanged()
            loops_count = self.shared_nodes and not self.add_self_loops
            self._compact = CompactLayout(self.edge_index, self.num_src, self.num_dst, self.add_self_loops, loops_count)
        return self._compact

    @property
    def edge_numbers(self) -> EdgeNumbers:
        """The numbers of the edges of :attr:`compact`, for kernels that need to know which edge is which."""
        if self._edge_numbers is None:
            layout = self.compact
            self._check_unchanged()
            self._edge_numbers = EdgeNumbers(self.edge_index, layout)
        return self._edge_numbers

    @property
    def device_layout(self) -> DeviceLayout:
        """The edges for the Triton kernels."""
        if self._device_layout is None:
            self._check_unchanged()
            with torch.inference_mode(False):  # training may use the layout of an evaluation
                self._device_layout = DeviceLayout(
                    self.edge_index, self.num_src, self.num_dst, self.add_self_loops, self.shared_nodes
                )
        return self._device_layout

    @property
    def sorted_edges(self) -> SortedEdges:
        """The edges for the torch path."""
        if self._sorted is None:
            self._check_unchanged()
            arguments = (self.edge_index, self.num_src, self.num_dst, self.add_self_loops, self.shared_nodes)
            if torch.compiler.is_compiling():
                self._sorted = _sort_edges(*arguments)
            else:
                with torch.inference_mode(False):  # training may use the layout of an evaluation
                    self._sorted = _sort_edges(*arguments)
        return self._sorted

    @property
    def neighborhood_sizes(self) -> Tensor:
        """``[num_dst]``, the number of edges that a softmax runs over: the stored in-edges and the added self-loop."""
        layout = self.sorted_edges if self._compact is None else self._compact
        count = layout.rowptr.diff()
        return count + (torch.arange(self.num_dst, device=count.device) < self.self_loops)

    @property
    def num_edges(self) -> int:
        """Number of stored edges."""
        if self._sorted is None and self._compact is not None:
            return self._compact.col.size(0)
        if self._sorted is None and self._device_layout is not None:
            return self._device_layout.by_dst.other_end.size(0) - self.self_loops
        return self.sorted_edges.src.size(0)

    @property
    def drops_loops(self) -> bool:
        """Whether self-loops of the input are dropped. Not in compiled code, where no shape may depend on data."""
        return self.add_self_loops and self.num_edges < self.edge_index.size(1)

    @property
    def device(self) -> torch.device:
        return self.edge_index.device

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device."""
        self._check_unchanged()
        return Graph(self.edge_index.to(device), self.num_src, self.num_dst, self.add_self_loops, self.shared_nodes)

    def __reduce__(self) -> tuple:
        # A copy sorts its edges again: a layout holds the addresses of its own tensors.
        self._check_unchanged()
        return Graph, (self.edge_index, self.num_src, self.num_dst, self.add_self_loops, self.shared_nodes)

    def _check_unchanged(self) -> None:
        if self._version is not None and self.edge_index._version != self._version:
            raise RuntimeError("`edge_index` was changed after this Graph was created; create a new one")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_src={self.num_src}, num_dst={self.num_dst}, num_edges={self.num_edges}, "
            f"self_loops={self.self_loops})"
        )


@dataclass(eq=False)
class SortedEdges:
    """Edges by destination (slots) and by source, for the torch path. ``E`` is their number.

    Attributes:
        rowptr: ``[num_dst + 1]``; the in-edges of destination ``i`` are the slots ``rowptr[i] … rowptr[i + 1] - 1``.
        src, dst: ``[E]``; end points of the edge in each slot.
        edge_id: ``[E]``; position of each slot's edge in the input.
        colptr: ``[num_src + 1]``; the out-edges of source ``j``, as positions in the next two arrays.
        dst_by_src: ``[E]``; destination of each edge, sorted by source.
        slot_by_src: ``[E]``; slot of the same edge.
        neighbors: ``[num_dst]``; :math:`|N_i|`, the number of in-edges without self-loops.
        explicit_loops: ``[num_dst]``; number of self-loops among the stored edges, or None if there are none.
        parked: Whether the slots from ``rowptr[-1]`` on hold dropped self-loops. Their ``dst`` is ``num_dst``, and
            ``dst_by_src`` from ``colptr[-1]`` on is arbitrary. Only in compiled code, where no shape may depend on data.
    """

    rowptr: Tensor
    src: Tensor
    dst: Tensor
    edge_id: Tensor
    colptr: Tensor
    dst_by_src: Tensor
    slot_by_src: Tensor
    neighbors: Tensor
    explicit_loops: Tensor | None
    parked: bool = False


def _check_edge_index(edge_index: Tensor, num_src: int, num_dst: int) -> None:
    if edge_index.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        raise TypeError(f"`edge_index` must hold integers, got {edge_index.dtype}")
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"`edge_index` must have shape [2, E], got {list(edge_index.shape)}")
    if edge_index.numel() == 0:
        return
    for row, (name, count) in enumerate((("source", num_src), ("destination", num_dst))):
        smallest, largest = (int(bound) for bound in torch.aminmax(edge_index[row]))
        if smallest < 0 or largest >= count:
            culprit = smallest if smallest < 0 else largest
            raise ValueError(
                f"`edge_index[{row}]` must hold {name} nodes in [0, {count - 1}] (the graph has {count}), got {culprit}"
            )


def _sort_edges(
    edge_index: Tensor, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool
) -> SortedEdges:
    src, dst = edge_index[0].long(), edge_index[1].long()
    compiling = torch.compiler.is_compiling()
    if add_self_loops:
        # Dropped self-loops are parked after the last row, so that no shape depends on the data.
        dst = torch.where(src == dst, num_dst, dst)
    edge_id = torch.argsort(dst, stable=True)
    dst, src = dst[edge_id], src[edge_id]
    rowptr = _pointers(dst, num_dst)
    if add_self_loops and not compiling:
        kept = int(rowptr[-1])
        src, dst, edge_id = src[:kept], dst[:kept], edge_id[:kept]
    parked = add_self_loops and compiling
    source_order = torch.where(dst == num_dst, num_src, src) if parked else src
    slot_by_src = torch.argsort(source_order, stable=True)
    neighbors = rowptr.diff()
    explicit_loops = None
    if shared_nodes and not add_self_loops:
        is_loop = (src == dst).long()
        explicit_loops = torch.zeros_like(neighbors).scatter_add(0, dst, is_loop)
        neighbors = neighbors - explicit_loops
    return SortedEdges(
        rowptr=rowptr,
        src=src,
        dst=dst,
        edge_id=edge_id,
        colptr=_pointers(source_order[slot_by_src], num_src),
        dst_by_src=(dst.clamp(max=num_dst - 1) if parked else dst)[slot_by_src],
        slot_by_src=slot_by_src,
        neighbors=neighbors,
        explicit_loops=explicit_loops,
        parked=parked,
    )


def _pointers(sorted_nodes: Tensor, num_nodes: int) -> Tensor:
    return torch.searchsorted(sorted_nodes, torch.arange(num_nodes + 1, device=sorted_nodes.device))
