"""Sums over the edges of each node: mean, convolution, and features of added self-loops, with their gradients."""

from __future__ import annotations

import torch
import torch.nn.functional as F
import triton
from torch import Tensor

from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.triton import sum_kernels
from graphgym_lcat.kernels.triton.common_kernels import CHUNKS, COMBINE, ROWS
from graphgym_lcat.kernels.triton.launch import choose_blocks, launch
from graphgym_lcat.kernels.triton.layout import Compressed, LongRows


def sum_rows(
    matrix: Compressed,
    rows: Tensor,
    *,
    member: Tensor | None = None,
    skip_loops: bool = False,
    member_scale: Tensor | None = None,
    row_scale: Tensor | None = None,
    lambda2: Tensor | None = None,
    target: Tensor | None = None,
    neighbors: Tensor | None = None,
    out: Tensor,
    slope: Tensor | None = None,
) -> Tensor:
    """See :func:`.sum_kernels.sum_rows`; ``member`` is by default the other end of each edge."""
    width = rows.size(1)
    finish = (row_scale, lambda2, target, neighbors, out, slope)
    long = matrix.long_rows
    end = matrix.other_end if skip_loops else None
    edges = (matrix.other_end if member is None else member, end)
    _launch(matrix.rows, ROWS, (matrix.pointers, *edges, None, None), rows, member_scale, finish, matrix.chunk)
    if long is not None:
        partial = rows.new_empty(long.chunk_row.size(0), width, dtype=torch.float32)
        chunks = (matrix.pointers, *edges, long.chunk_row, long.chunk_start)
        nothing = (None, None, None, None, partial, None)
        _launch(partial.size(0), CHUNKS, chunks, rows, member_scale, nothing, matrix.chunk)
        _launch(long.rows.size(0), COMBINE, (long.pointers, None, None, long.rows, None), partial, None, finish, 0)
    return out


def combine_sums(long: LongRows, partial: Tensor, out: Tensor) -> None:
    """Writes the sums of each long row's chunks into ``out``."""
    finish = (None, None, None, None, out, None)
    chunks = (long.pointers, None, None, long.rows, None)
    _launch(long.rows.size(0), COMBINE, chunks, partial.flatten(1), None, finish, 0)


def _launch(programs: int, mode, edges: tuple, rows: Tensor, member_scale: Tensor | None, finish: tuple, chunk: int):
    width = rows.size(1)
    lambda2 = finish[1]
    blocks = choose_blocks(1, min(width, 256))
    columns = triton.next_power_of_2(min(width, 256))
    launch(
        sum_kernels.sum_rows,
        (programs, triton.cdiv(width, columns)),
        rows,
        *edges,
        rows,
        member_scale,
        *finish,
        F=width,
        LAMBDA_STRIDE=int(lambda2 is not None and lambda2.numel() > 1),
        MODE=mode.value,
        CHUNK=chunk,
        EDGES=blocks.edges,
        COLUMNS=columns,
        num_warps=blocks.warps,
    )


def mean(graph: Graph, value: Tensor) -> Tensor:
    layout = graph.device_layout
    out = value.new_empty(graph.num_dst, value.size(1))
    return sum_rows(layout.by_dst, value, row_scale=layout.inverse_sizes, out=out)


def mean_backward(graph: Graph, grad: Tensor) -> Tensor:
    layout = graph.device_layout
    out = grad.new_empty(graph.num_src, grad.size(1))
    return sum_rows(layout.by_src, grad, member_scale=layout.inverse_sizes, out=out)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor, train: bool) -> tuple[Tensor, Tensor]:
    """The convolution, and its derivative with respect to ``lambda2`` if the call is part of ``train``-ing it."""
    layout = graph.device_layout
    dtype = torch.promote_types(target.dtype, source.dtype)
    out = target.new_empty(target.shape, dtype=dtype)
    slope = target.new_empty(target.shape if train else 0, dtype=torch.float32)
    sum_rows(
        layout.by_dst,
        source,
        skip_loops=layout.skips_loops,
        lambda2=lambda2,
        target=target,
        neighbors=layout.neighbors,
        out=out,
        slope=slope if train else None,
    )
    return out, slope


def convolve_backward(
    graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor, slope: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of target, source and ``lambda2``, of which the first two give only their types."""
    layout = graph.device_layout
    of_target = (grad / (1 + lambda2 * layout.neighbors.unsqueeze(-1))).to(grad.dtype)
    of_source = source.new_empty(graph.num_src, grad.size(1))
    sum_rows(layout.by_src, of_target, skip_loops=layout.skips_loops, lambda2=lambda2, out=of_source)
    if slope.dim() == 1:
        return of_target.to(target.dtype), of_source, torch.zeros_like(lambda2)
    of_columns = (grad * slope).sum(0)
    of_lambda2 = of_columns.sum(0, keepdim=True) if lambda2.numel() == 1 else of_columns
    return of_target.to(target.dtype), of_source, of_lambda2.to(lambda2.dtype)


def fill_loops(graph: Graph, features: Tensor, mean: bool) -> Tensor:
    """Mean or sum of the rows of each node's in-edges without self-loops: ``[self_loops, columns]``."""
    layout = graph.device_layout
    out = features.new_empty(graph.num_dst, features.size(1))
    scale = 1 / layout.neighbors.clamp(min=1) if mean else None
    numbers = layout.by_dst.edge_number
    sum_rows(layout.by_dst, features, member=numbers, skip_loops=True, row_scale=scale, out=out)
    return out[: graph.self_loops].clone()


def fill_loops_backward(graph: Graph, mean: bool, grad: Tensor) -> Tensor:
    if mean:
        grad = grad / graph.device_layout.neighbors[: graph.self_loops].clamp(min=1).unsqueeze(-1)
    src, dst = graph.edge_index.long()
    # Edges without influence take the last row, which is 0.
    row = torch.where((src == dst) | (dst >= graph.self_loops), graph.self_loops, dst)
    return F.pad(grad, (0, 0, 0, 1)).index_select(0, row)
