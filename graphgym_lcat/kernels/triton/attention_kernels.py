"""Attention: softmax and weighted sum in one pass over the edges, and the coefficients themselves.

Scores are those of :mod:`.score_kernels`. ``seed`` is None without dropout.
"""

from __future__ import annotations

import triton
import triton.language as tl

from graphgym_lcat.kernels.triton.common_kernels import CHUNKS, dropout_factors, edges_of_program
from graphgym_lcat.kernels.triton.score_kernels import (
    load_att,
    load_features,
    load_node_features,
    load_node_numbers,
    load_own,
    score_input,
    score_of,
    store_features,
    store_numbers,
)

# Keeps empty sums from becoming 1 / 0; Triton would take the smallest normal number, as decimals, for a double.
TINY = tl.constexpr(1.2e-38)


@triton.jit(do_not_specialize=["threshold"])
def attend(
    pointers,
    col,
    edge_number,
    chunk_row,
    chunk_start,
    query,
    key,
    att,
    term,
    weight,
    value,
    seed,
    threshold,
    factor,
    negative_slope,
    out,
    shift,
    scale,
    H: tl.constexpr,
    C: tl.constexpr,
    D: tl.constexpr,
    K: tl.constexpr,
    MODE: tl.constexpr,
    CHUNK: tl.constexpr,
    EDGES: tl.constexpr,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """``out`` ``[rows, H, C]``, and γ = exp(score - shift) scale.

    In chunks, ``scale`` is the sum of exp(score - shift), and ``out`` is not divided by it. Without ``value`` there is no ``out``.
    """
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    channel = tl.arange(0, CHANNELS)
    depth = tl.arange(0, DEPTH)
    row, start, end = edges_of_program(pointers, chunk_row, chunk_start, MODE, CHUNK)
    own = load_own(query, row, head, depth, att, H, D)
    att_block = load_att(att, head, depth, H, D)
    largest = tl.full([HEADS], -float("inf"), tl.float32)
    total = tl.zeros([HEADS], tl.float32)
    weighted = tl.zeros([HEADS, CHANNELS], tl.float32)
    for first in range(start, end, EDGES):
        position = first + tl.arange(0, EDGES)
        inside = position < end
        mask = inside[:, None] & (head < H)[None, :]
        index = tl.load(col + position, mask=inside, other=0)
        edge = index
        if (term is not None) or (seed is not None):
            edge = tl.load(edge_number + position, mask=inside, other=0)
        x = score_input(own, key, index, edge, term, weight, att, head, depth, mask, H, D, K)
        score = tl.where(mask, score_of(x, att, att_block, negative_slope), -float("inf"))
        new_largest = tl.maximum(largest, tl.max(score, axis=0))
        # As long as all scores are -inf: exp(-inf - 0) = 0 instead of exp(nan).
        safe = tl.where(new_largest == -float("inf"), 0.0, new_largest)
        power = tl.exp(score - safe[None, :])
        shrink = tl.exp(largest - safe)
        total = total * shrink + tl.sum(power, axis=0)
        if value is not None:
            if seed is not None:
                power = power * dropout_factors(seed, edge, head, threshold, factor)
            features = load_features(value, index, head, channel, mask, H, C)
            weighted = weighted * shrink[:, None] + tl.sum(power[:, :, None] * features, axis=0)
        largest = new_largest
    safe = tl.where(largest == -float("inf"), 0.0, largest)
    if MODE == CHUNKS:
        place = tl.program_id(0)
        store_numbers(shift, place, head, largest, H)
        store_numbers(scale, place, head, total, H)
        if value is not None:
            store_features(out, place, head, channel, weighted, H, C)
    else:
        inverse = 1.0 / tl.maximum(total, TINY)
        store_numbers(shift, row, head, safe, H)
        store_numbers(scale, row, head, inverse, H)
        if value is not None:
            store_features(out, row, head, channel, weighted * inverse[:, None], H, C)


@triton.jit
def combine_chunks(
    pointers,
    long_row,
    chunk_out,
    chunk_shift,
    chunk_total,
    out,
    shift,
    scale,
    H: tl.constexpr,
    C: tl.constexpr,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """The results of :func:`attend` for long rows, from those of their chunks."""
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    channel = tl.arange(0, CHANNELS)
    row = tl.load(long_row + tl.program_id(0))
    start = tl.load(pointers + tl.program_id(0))
    end = tl.load(pointers + tl.program_id(0) + 1)
    largest = tl.full([HEADS], -float("inf"), tl.float32)
    total = tl.zeros([HEADS], tl.float32)
    weighted = tl.zeros([HEADS, CHANNELS], tl.float32)
    for position in range(start, end):
        chunk = tl.to_tensor(position)
        other = load_node_numbers(chunk_shift, chunk, head, H)
        new_largest = tl.maximum(largest, other)
        safe = tl.where(new_largest == -float("inf"), 0.0, new_largest)
        shrink = tl.exp(largest - safe)
        share = tl.exp(other - safe)
        part = load_node_numbers(chunk_total, chunk, head, H)
        total = total * shrink + part * share
        if chunk_out is not None:
            features = load_node_features(chunk_out, chunk, head, channel, H, C)
            weighted = weighted * shrink[:, None] + features * share[:, None]
        largest = new_largest
    inverse = 1.0 / tl.maximum(total, TINY)
    store_numbers(shift, row, head, tl.where(largest == -float("inf"), 0.0, largest), H)
    store_numbers(scale, row, head, inverse, H)
    if chunk_out is not None:
        store_features(out, row, head, channel, weighted * inverse[:, None], H, C)


@triton.jit
def coefficients(
    pointers,
    col,
    edge_number,
    chunk_row,
    chunk_start,
    query,
    key,
    att,
    term,
    weight,
    negative_slope,
    shift,
    scale,
    gamma,
    H: tl.constexpr,
    D: tl.constexpr,
    K: tl.constexpr,
    MODE: tl.constexpr,
    CHUNK: tl.constexpr,
    EDGES: tl.constexpr,
    HEADS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """γ by edge number, ``[numbers, H]``, from the shift and scale that :func:`attend` computes."""
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    depth = tl.arange(0, DEPTH)
    row, start, end = edges_of_program(pointers, chunk_row, chunk_start, MODE, CHUNK)
    own = load_own(query, row, head, depth, att, H, D)
    att_block = load_att(att, head, depth, H, D)
    row_shift = load_node_numbers(shift, row, head, H)
    row_scale = load_node_numbers(scale, row, head, H)
    for first in range(start, end, EDGES):
        position = first + tl.arange(0, EDGES)
        inside = position < end
        mask = inside[:, None] & (head < H)[None, :]
        index = tl.load(col + position, mask=inside, other=0)
        edge = tl.load(edge_number + position, mask=inside, other=0)
        x = score_input(own, key, index, edge, term, weight, att, head, depth, mask, H, D, K)
        score = score_of(x, att, att_block, negative_slope)
        share = tl.exp(score - row_shift[None, :]) * row_scale[None, :]
        tl.store(gamma + edge.to(tl.int64)[:, None] * H + head[None, :], share, mask=mask)
