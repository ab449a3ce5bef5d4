"""The gradients of attention: one pass over the edges by source, and for GATv2 another one by destination.

Scores are those of :mod:`.score_kernels`. ``seed`` is None without dropout.
"""

from __future__ import annotations

import triton
import triton.language as tl

from graphgym_lcat.kernels.triton.common_kernels import CHUNKS, dropout_factors, edges_of_program
from graphgym_lcat.kernels.triton.score_kernels import (
    leaky,
    leaky_slope,
    load_att,
    load_features,
    load_node_features,
    load_numbers,
    load_own,
    score_input,
    score_of,
    store_features,
    store_numbers,
)


@triton.jit(do_not_specialize=["threshold"])
def attend_backward(
    pointers,
    row_of_edge,
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
    shift,
    scale,
    grad,
    grad_dot_out,
    grad_key,
    grad_value,
    grad_pair,
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
    """By source: gradients of key and value, and of each edge by its number, ``[numbers, H]``.

    The latter is that of the LeakyReLU's argument for GAT, and that of the score for GATv2.
    """
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    channel = tl.arange(0, CHANNELS)
    depth = tl.arange(0, DEPTH)
    source, start, end = edges_of_program(pointers, chunk_row, chunk_start, MODE, CHUNK)
    own = load_own(key, source, head, depth, att, H, D)
    own_value = load_node_features(value, source, head, channel, H, C)
    att_block = load_att(att, head, depth, H, D)
    value_total = tl.zeros([HEADS, CHANNELS], tl.float32)
    if att is None:
        key_total = tl.zeros([HEADS], tl.float32)
    else:
        key_total = tl.zeros([HEADS, DEPTH], tl.float32)
    for first in range(start, end, EDGES):
        position = first + tl.arange(0, EDGES)
        inside = position < end
        mask = inside[:, None] & (head < H)[None, :]
        index = tl.load(row_of_edge + position, mask=inside, other=0)
        edge = tl.load(edge_number + position, mask=inside, other=0)
        x = score_input(own, query, index, edge, term, weight, att, head, depth, mask, H, D, K)
        score = score_of(x, att, att_block, negative_slope)
        gamma = tl.exp(score - load_numbers(shift, index, head, mask, H)) * load_numbers(scale, index, head, mask, H)
        gamma = tl.where(mask, gamma, 0.0)
        received = load_features(grad, index, head, channel, mask, H, C)
        grad_gamma = tl.sum(received * own_value[None, :, :], axis=2)
        kept = gamma
        if seed is not None:
            factors = dropout_factors(seed, edge, head, threshold, factor)
            kept = gamma * factors
            grad_gamma = grad_gamma * factors
        value_total += tl.sum(kept[:, :, None] * received, axis=0)
        of_score = gamma * (grad_gamma - load_numbers(grad_dot_out, index, head, mask, H))
        if att is None:
            of_score = of_score * leaky_slope(x, negative_slope)
            key_total += tl.sum(of_score, axis=0)
        else:
            key_total += tl.sum(of_score[:, :, None] * leaky_slope(x, negative_slope), axis=0)
        tl.store(grad_pair + edge.to(tl.int64)[:, None] * H + head[None, :], of_score, mask=mask)
    place = source
    if MODE == CHUNKS:
        place = tl.program_id(0)
    store_features(grad_value, place, head, channel, value_total, H, C)
    if att is None:
        store_numbers(grad_key, place, head, key_total, H)
    else:
        store_features(grad_key, place, head, depth, key_total * att_block, H, D)


@triton.jit
def gatv2_score_backward(
    pointers,
    other_end,
    edge_number,
    chunk_row,
    chunk_start,
    own_features,
    other_features,
    att,
    term,
    weight,
    negative_slope,
    grad_score,
    grad_own,
    grad_att,
    H: tl.constexpr,
    D: tl.constexpr,
    K: tl.constexpr,
    MODE: tl.constexpr,
    CHUNK: tl.constexpr,
    EDGES: tl.constexpr,
    HEADS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """From the gradients of the scores by edge number: those of query (by destination) or key (by source), which is ``own``.

    ``grad_att`` gets each program's share of the gradient of ``att``, unless it is None.
    """
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    depth = tl.arange(0, DEPTH)
    row, start, end = edges_of_program(pointers, chunk_row, chunk_start, MODE, CHUNK)
    own = load_own(own_features, row, head, depth, att, H, D)
    total = tl.zeros([HEADS, DEPTH], tl.float32)
    att_total = tl.zeros([HEADS, DEPTH], tl.float32)
    for first in range(start, end, EDGES):
        position = first + tl.arange(0, EDGES)
        inside = position < end
        mask = inside[:, None] & (head < H)[None, :]
        index = tl.load(other_end + position, mask=inside, other=0)
        edge = tl.load(edge_number + position, mask=inside, other=0)
        x = score_input(own, other_features, index, edge, term, weight, att, head, depth, mask, H, D, K)
        of_score = load_numbers(grad_score, edge, head, mask, H)[:, :, None]
        total += tl.sum(of_score * leaky_slope(x, negative_slope), axis=0)
        if grad_att is not None:
            att_total += tl.sum(of_score * leaky(x, negative_slope), axis=0)
    place = row
    if MODE == CHUNKS:
        place = tl.program_id(0)
    store_features(grad_own, place, head, depth, total * load_att(att, head, depth, H, D), H, D)
    if grad_att is not None:
        store_features(grad_att, tl.program_id(0), head, depth, att_total, H, D)
