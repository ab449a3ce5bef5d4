"""The scores of GAT and GATv2 for blocks of edges and heads, and how such blocks are loaded and stored.

``att`` is None for the score of GAT, whose query and key are ``[nodes, H]``; for that of GATv2 they are ``[nodes, H, D]``.
``term`` is None, or has a row per edge number: the edge's share of the score, ``[numbers, H]``, for GAT; its features,
``[numbers, K]``, whose projection is ``weight`` ``[H, D, K]``, for GATv2.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_numbers(base, index, head, mask, H: tl.constexpr):
    """One number per head of each node or edge in ``index``: ``[edges, heads]``."""
    return tl.load(base + index.to(tl.int64)[:, None] * H + head[None, :], mask=mask, other=0.0).to(tl.float32)


@triton.jit
def load_node_numbers(base, node, head, H: tl.constexpr):
    """One number per head of one node: ``[heads]``."""
    return tl.load(base + node.to(tl.int64) * H + head, mask=head < H, other=0.0).to(tl.float32)


@triton.jit
def load_features(base, index, head, channel, mask, H: tl.constexpr, C: tl.constexpr):
    """The features of each node in ``index``: ``[edges, heads, channels]``."""
    place = index.to(tl.int64)[:, None, None] * (H * C) + head[None, :, None] * C + channel[None, None, :]
    return tl.load(base + place, mask=mask[:, :, None] & (channel < C)[None, None, :], other=0.0).to(tl.float32)


@triton.jit
def load_node_features(base, node, head, channel, H: tl.constexpr, C: tl.constexpr):
    """The features of one node: ``[heads, channels]``."""
    place = node.to(tl.int64) * (H * C) + head[:, None] * C + channel[None, :]
    return tl.load(base + place, mask=(head < H)[:, None] & (channel < C)[None, :], other=0.0).to(tl.float32)


@triton.jit
def store_features(base, node, head, channel, features, H: tl.constexpr, C: tl.constexpr):
    place = node.to(tl.int64) * (H * C) + head[:, None] * C + channel[None, :]
    tl.store(base + place, features, mask=(head < H)[:, None] & (channel < C)[None, :])


@triton.jit
def store_numbers(base, node, head, numbers, H: tl.constexpr):
    tl.store(base + node.to(tl.int64) * H + head, numbers, mask=head < H)


@triton.jit
def leaky(x, slope):
    return tl.where(x > 0, x, slope * x)


@triton.jit
def leaky_slope(x, slope):
    return tl.where(x > 0, 1.0, slope)


@triton.jit
def load_own(base, node, head, depth, att, H: tl.constexpr, D: tl.constexpr):
    """Query or key of the program's node: ``[1, heads]``, or for GATv2 ``[1, heads, D]``."""
    if att is None:
        return load_node_numbers(base, node, head, H)[None, :]
    else:
        return load_node_features(base, node, head, depth, H, D)[None, :, :]


@triton.jit
def score_input(
    own, other, index, edge, term, weight, att, head, depth, mask, H: tl.constexpr, D: tl.constexpr, K: tl.constexpr
):
    """What the LeakyReLU is applied to: ``[edges, heads]``, or for GATv2 ``[edges, heads, D]``."""
    if att is None:
        x = own + load_numbers(other, index, head, mask, H)
        if term is not None:
            x += load_numbers(term, edge, head, mask, H)
    else:
        x = own + load_features(other, index, head, depth, mask, H, D)
        if term is not None:
            part = (head < H)[:, None] & (depth < D)[None, :]
            for k in range(K):
                feature = tl.load(term + edge.to(tl.int64) * K + k).to(tl.float32)
                column = tl.load(weight + (head[:, None] * D + depth[None, :]) * K + k, mask=part, other=0.0)
                x += feature[:, None, None] * column.to(tl.float32)[None, :, :]
    return x


@triton.jit
def score_of(x, att, att_block, slope):
    if att is None:
        return leaky(x, slope)
    else:
        return tl.sum(leaky(x, slope) * att_block[None, :, :], axis=2)


@triton.jit
def load_att(att, head, depth, H: tl.constexpr, D: tl.constexpr):
    if att is None:
        return 0.0
    else:
        part = (head < H)[:, None] & (depth < D)[None, :]
        return tl.load(att + head[:, None] * D + depth[None, :], mask=part, other=0.0).to(tl.float32)
