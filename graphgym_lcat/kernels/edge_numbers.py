"""Numbers of edges for the fused kernels: which edge of the input stands in each slot of a layout."""

from __future__ import annotations

import torch
from torch import Tensor

from graphgym_lcat.kernels import library
from graphgym_lcat.kernels.compact import CompactLayout

MAX_EDGES = 2**31 - 1


class EdgeNumbers:
    """Positions in ``edge_index`` of the edges of a layout. The added self-loop of node i has the number ``edges + i``.

    Attributes:
        edges: Number of edges in the input.
        by_row, by_col: Number of the edge in each slot of the layout's ``col`` and ``row``.
        complete: The layout holds all edges of the input.
        pointers: What the kernels take.
    """

    def __init__(self, edge_index: Tensor, layout: CompactLayout):
        self.edges = edge_index.size(1)
        if self.edges + layout.self_loops > MAX_EDGES:
            raise ValueError(
                f"dropout, edge features and attention coefficients support up to {MAX_EDGES} edges with self-loops in the fused "
                f"kernels, the graph has {self.edges + layout.self_loops}; use backend='torch'"
            )
        src, dst = edge_index.to(torch.int64).contiguous()
        kept = layout.col.size(0)
        self.complete = kept == self.edges
        self.by_row = torch.empty(kept, dtype=torch.int32)
        self.by_col = torch.empty(kept, dtype=torch.int32)
        failed = library.loaded().edge_numbers(
            self.edges,
            src.data_ptr(),
            dst.data_ptr(),
            layout.num_src,
            layout.num_dst,
            int(not self.complete),
            layout.rowptr.data_ptr(),
            layout.colptr.data_ptr(),
            self.by_row.data_ptr(),
            self.by_col.data_ptr(),
        )
        if failed:
            raise MemoryError("no memory for the numbers of the edges")
        self.pointers = (self.edges, self.by_row.data_ptr(), self.by_col.data_ptr())
