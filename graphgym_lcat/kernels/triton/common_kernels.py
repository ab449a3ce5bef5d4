"""What all kernels share: which edges a program walks over, and the mask of dropout.

Every kernel has one program per row of a compressed matrix (an end point of edges, with the edges that it has) and per block of
columns or heads. Rows of more than ``CHUNK`` edges would keep one program busy long after the others have finished, so they are
cut into chunks of as many edges, which have their own programs in a second launch (``MODE = CHUNKS``) and partial results that a
third one combines. No program writes where another one does, and all of them add in a fixed order: results are repeatable.
"""

from __future__ import annotations

import triton
import triton.language as tl

ROWS = tl.constexpr(0)  # one program per row; long rows are left out
CHUNKS = tl.constexpr(1)  # one program per chunk of the long rows
COMBINE = tl.constexpr(2)  # one program per long row, over the results of its chunks


@triton.jit
def edges_of_program(pointers, chunk_row, chunk_start, MODE: tl.constexpr, CHUNK: tl.constexpr):
    """The program's row, and its first edge and the one after its last."""
    program = tl.program_id(0)
    if MODE == CHUNKS:
        row = tl.load(chunk_row + program)
        start = tl.load(chunk_start + program)
        end = tl.minimum(start + CHUNK, tl.load(pointers + row + 1))
    elif MODE == COMBINE:
        row = tl.load(chunk_row + program)
        start = tl.load(pointers + program)
        end = tl.load(pointers + program + 1)
    else:
        row = program
        start = tl.load(pointers + row)
        end = tl.load(pointers + row + 1)
        end = tl.where(end - start > CHUNK, start, end)
    return row, start, end


@triton.jit
def dropout_factors(seed, edge, head, threshold, factor):
    """0 where dropout drops the coefficient of an edge (``[edges]``) and head (``[heads]``), else ``factor``.

    The same mask as :func:`graphgym_lcat.kernels.dropout.keep_mask`.
    """
    word = tl.load(seed)
    low = word.to(tl.uint32)
    high = (word >> 32).to(tl.uint32)
    step = tl.full([], 0x9E3779B9, tl.uint32)
    edge_key = _mix(low ^ _mix(high + step))
    head_key = _mix(high ^ _mix(edge_key + step))
    of_head = _mix(head_key + head.to(tl.uint32) * step)
    of_edge = _mix(edge.to(tl.uint32) ^ edge_key)
    drawn = _finish(of_edge[:, None] ^ of_head[None, :])
    return tl.where(drawn >= threshold.to(tl.uint32), factor, 0.0)


@triton.jit
def _mix(x):
    x = x ^ (x >> 16)
    x = x * tl.full([], 0x7FEB352D, tl.uint32)
    x = x ^ (x >> 15)
    x = x * tl.full([], 0x846CA68B, tl.uint32)
    return x ^ (x >> 16)


@triton.jit
def _finish(x):
    x = x ^ (x >> 17)
    x = x * tl.full([], 0xED5AD4BB, tl.uint32)
    x = x ^ (x >> 11)
    x = x * tl.full([], 0xAC4C1B51, tl.uint32)
    x = x ^ (x >> 15)
    x = x * tl.full([], 0x31848BAB, tl.uint32)
    return x ^ (x >> 14)
