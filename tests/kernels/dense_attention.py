"""Attention computed densely, edge by edge of a list, in double precision: the oracle for the kernels with extras."""

import torch
import torch.nn.functional as F

from graphgym_lcat.kernels.dropout import keep_mask


def edge_list(edge_index, num_src, num_dst, add_self_loops):
    """Sources, destinations and numbers of the edges of a graph, added self-loops last."""
    src, dst = edge_index
    number = torch.arange(edge_index.size(1))
    if not add_self_loops:
        return src, dst, number
    kept = src != dst
    loops = torch.arange(min(num_src, num_dst))
    return (
        torch.cat([src[kept], loops]),
        torch.cat([dst[kept], loops]),
        torch.cat([number[kept], edge_index.size(1) + loops]),
    )


def gat_scores(src, dst, number, query, key, term, slope):
    x = query[dst] + key[src]
    return F.leaky_relu(x if term is None else x + term[number], slope)


def gatv2_scores(src, dst, number, query, key, att, features, weight, slope):
    x = query[dst] + key[src]
    if features is not None:
        x = x + (features[number] @ weight.t()).view_as(x)
    return (F.leaky_relu(x, slope) * att).sum(-1)


def softmax(scores, dst, num_dst):
    """By a dense [num_dst, edges] table per head."""
    table = torch.full((num_dst, scores.size(0), scores.size(1)), -torch.inf, dtype=scores.dtype)
    edge = torch.arange(scores.size(0))
    table = table.index_put((dst, edge), scores)
    return torch.softmax(table, dim=1)[dst, edge]


def dropped(gamma, number, seed, probability):
    if probability == 0:
        return gamma
    kept = keep_mask(seed, number, gamma.size(1), probability)
    return torch.where(kept, gamma / (1 - probability), torch.zeros_like(gamma))


def aggregate(gamma, src, dst, value, num_dst):
    messages = gamma.unsqueeze(-1) * value[src]
    return messages.new_zeros(num_dst, *value.shape[1:]).index_add(0, dst, messages)
