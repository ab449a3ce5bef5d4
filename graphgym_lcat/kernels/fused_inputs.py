"""What the fused kernels of attention take: heads and channels padded, numbers of the right type, terms of edges."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgym_lcat.kernels import calls, torch_path
from graphgym_lcat.kernels.backend import Dropout, EdgeTerm, GATScore, GATv2Score
from graphgym_lcat.kernels.calls import Call
from graphgym_lcat.kernels.derivatives import first_derivative
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.library import LANES, real_dtype

CHUNK_ROWS = 1 << 16  # of edge features that are converted at once

_NO_SEED = torch.zeros(1, dtype=torch.int64)


def padding(heads: int, channels: int) -> tuple[int, int]:
    """Heads and channels to add: the kernels support 1, 2, 4, 8, 16, 24, … heads, and channels in vectors of 8."""
    more_heads = 0 if heads in (1, 2, 4) else 1 if heads == 3 else -heads % LANES
    return more_heads, -channels % LANES


def rows(tensor: Tensor) -> Tensor:
    """``tensor`` with contiguous rows; there may be gaps between the rows, as in a slice of columns."""
    return tensor if tensor.stride(1) == 1 or tensor.size(1) == 1 else tensor.contiguous()


def unpack(dropout: Dropout | None) -> tuple[Tensor, float]:
    """Seed and probability."""
    return (_NO_SEED, 0.0) if dropout is None else (dropout.seed, dropout.probability)


def edge_call(graph: Graph, dropout: Dropout | None = None) -> Call:
    """A call with tensors over edges."""
    seed, probability = unpack(dropout)
    return Call(graph.compact, graph.edge_numbers, int(seed), probability)


def gat_inputs(graph: Graph, score: GATScore) -> tuple[Tensor, Tensor, Tensor | None]:
    """Query, key and the term of every edge, with heads added."""
    more_heads, _ = padding(score.key.size(1), LANES)
    real = real_dtype(score.key.dtype)
    query, key = score.query.to(real), score.key.to(real)
    if more_heads:
        query, key = F.pad(query, (0, more_heads)), F.pad(key, (0, more_heads))
    if score.edge is None:
        return query, key, None
    features, loops, weight = score.edge
    weight = weight.to(real)
    if more_heads:
        weight = F.pad(weight, (0, 0, 0, more_heads))
    if torch.compiler.is_compiling():
        loops = torch_path.loop_features(graph, score.edge)
        return query, key, (torch.cat([features, loops]).to(real) @ weight.t()).to(real)  # autocast lowers the product
    given = loops if isinstance(loops, Tensor) else None
    return query, key, _GATTerm.apply(edge_call(graph), features, given, weight, given is None and loops == "mean")


def gatv2_inputs(
    graph: Graph, score: GATv2Score, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Query, key, att, and features of edges, of self-loops and their projection, with heads and depth added.

    ``dtype`` is that of the values: rows of features have their common type.
    """
    heads, depth = score.key.shape[1:]
    dtype = torch.promote_types(dtype, torch.promote_types(score.query.dtype, score.key.dtype))
    real = real_dtype(dtype)

    def prepare(rows: Tensor) -> Tensor:
        rows = rows.to(dtype)
        return F.pad(rows, pad) if any(pad) else rows

    more_heads, more_depth = padding(heads, depth)
    pad = (0, more_depth, 0, more_heads)
    query = prepare(score.query)
    key = query if score.query is score.key else prepare(score.key)
    att = score.att.to(real)
    if any(pad):
        att = F.pad(att, pad)
    if score.edge is None:
        return query, key, att, None, None, None
    weight = score.edge.weight.to(real)
    if any(pad):
        weight = F.pad(weight, (0, 0, *pad))
    features, loops = score.edge.features.to(dtype), _loop_features(graph, score.edge).to(dtype)
    return query, key, att, features, loops, weight.flatten(0, 1)


def _loop_features(graph: Graph, edge: EdgeTerm) -> Tensor:
    if isinstance(edge.loop_features, Tensor) or torch.compiler.is_compiling():
        return torch_path.loop_features(graph, edge)
    features = edge.features.to(real_dtype(edge.features.dtype))
    return _FillLoops.apply(edge_call(graph), features, edge.loop_features == "mean")


class _FillLoops(torch.autograd.Function):
    """Mean or sum of the rows of a node's in-edges."""

    @staticmethod
    def forward(ctx, call: Call, features: Tensor, mean: bool) -> Tensor:
        ctx.call, ctx.mean, ctx.shape = call, mean, features.shape
        loops = features.new_empty(call.layout.self_loops, features.size(1))
        calls.fill_loops(call, features.contiguous(), loops, mean)
        return loops

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        grad_features = grad.new_zeros(ctx.shape)
        calls.fill_loops_backward(ctx.call, grad.contiguous(), grad_features, ctx.mean)
        return None, grad_features, None


def _parts(rows: Tensor, dtype: torch.dtype) -> list[slice]:
    """Slices of ``rows`` to convert to ``dtype`` one by one, so that no copy of all of them is made."""
    count = rows.size(0)
    size = count if rows.dtype == dtype else CHUNK_ROWS
    return [slice(start, min(start + size, count)) for start in range(0, count, size)] if count else []


class _GATTerm(torch.autograd.Function):
    """``features @ weightᵀ`` of edges and self-loops, ``[E + self_loops, H]``, in the dtype of ``weight``."""

    @staticmethod
    def forward(ctx, call: Call, features: Tensor, loops: Tensor | None, weight: Tensor, mean: bool) -> Tensor:
        ctx.call, ctx.mean = call, mean
        ctx.save_for_backward(features, loops, weight)
        count, dtype = features.size(0), weight.dtype
        term = weight.new_empty(count + call.layout.self_loops, weight.size(0))
        for part in _parts(features, dtype):
            torch.mm(features[part].to(dtype), weight.t(), out=term[part])
        if loops is None:  # the mean of features has the mean of their products
            calls.fill_loops(call, term, term[count:], mean)
        else:
            torch.mm(loops.to(dtype), weight.t(), out=term[count:])
        return term

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        features, loops, weight = ctx.saved_tensors
        count, dtype = features.size(0), weight.dtype
        grad_features = torch.empty_like(features) if ctx.needs_input_grad[1] else None
        grad_loops, grad_weight = None, torch.zeros_like(weight)
        if loops is None:
            grad = grad.clone(memory_format=torch.contiguous_format)
            calls.fill_loops_backward(ctx.call, grad[count:], grad, ctx.mean)
        else:
            grad_weight += grad[count:].t() @ loops.to(dtype)
            if ctx.needs_input_grad[2]:
                grad_loops = (grad[count:] @ weight).to(loops.dtype)
        for part in _parts(features, dtype):
            grad_weight.addmm_(grad[part].t(), features[part].to(dtype))
            if grad_features is not None:
                grad_features[part] = grad[part] @ weight
        return None, grad_features, grad_loops, grad_weight, None
