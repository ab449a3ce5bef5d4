"""Sums of rows over the edges of a node: means, convolution, their gradients, and the combination of partial sums."""

from __future__ import annotations

import triton
import triton.language as tl

from graphgym_lcat.kernels.triton.common_kernels import CHUNKS, COMBINE, edges_of_program


@triton.jit
def sum_rows(
    pointers,
    member,
    other_end,
    chunk_row,
    chunk_start,
    rows,
    member_scale,
    row_scale,
    lambda2,
    target,
    neighbors,
    out,
    slope,
    F: tl.constexpr,
    LAMBDA_STRIDE: tl.constexpr,
    MODE: tl.constexpr,
    CHUNK: tl.constexpr,
    EDGES: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """``out[i] = row_scale[i] Σ_e member_scale[member[e]] rows[member[e]]`` over the edges e of row i, ``[rows, F]``.

    What is None is left out. ``other_end``: self-loops do not count. ``lambda2``: the sum is multiplied with it; with ``target``
    and ``neighbors`` too, the result is the convolution, and ``slope`` its derivative with respect to ``lambda2``.
    """
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    in_columns = column < F
    row, start, end = edges_of_program(pointers, chunk_row, chunk_start, MODE, CHUNK)
    total = tl.zeros([COLUMNS], tl.float32)
    for first in range(start, end, EDGES):
        position = first + tl.arange(0, EDGES)
        inside = position < end
        if MODE == COMBINE:
            index = position
        else:
            index = tl.load(member + position, mask=inside, other=0)
            if other_end is not None:
                inside = inside & (tl.load(other_end + position, mask=inside, other=0) != row)
        address = rows + index.to(tl.int64)[:, None] * F + column[None, :]
        block = tl.load(address, mask=inside[:, None] & in_columns[None, :], other=0.0).to(tl.float32)
        if MODE != COMBINE and member_scale is not None:
            block = block * tl.load(member_scale + index, mask=inside, other=0.0)[:, None]
        total += tl.sum(block, axis=0)
    if MODE == CHUNKS:
        tl.store(out + tl.program_id(0).to(tl.int64) * F + column, total, mask=in_columns)
    else:
        place = row.to(tl.int64) * F + column
        if row_scale is not None:
            total = total * tl.load(row_scale + row)
        if lambda2 is not None:
            factor = tl.load(lambda2 + column * LAMBDA_STRIDE, mask=in_columns, other=0.0).to(tl.float32)
            if target is None:
                total = total * factor
            else:
                count = tl.load(neighbors + row)
                divisor = 1.0 + factor * count
                own = tl.load(target + place, mask=in_columns, other=0.0).to(tl.float32)
                convolved = (own + factor * total) / divisor
                if slope is not None:
                    tl.store(slope + place, (total - count * convolved) / divisor, mask=in_columns)
                total = convolved
        tl.store(out + place, total, mask=in_columns)
