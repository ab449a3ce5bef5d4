"""Attention and its coefficients, with their gradients: calls of their kernels.

A tensor of shape ``[0]`` stands for one that is missing, as in the operators.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from graphgym_lcat.kernels.dropout import keep_threshold
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.torch_path import chunk_numel
from graphgym_lcat.kernels.triton import attention_backward_kernels as backward_kernels
from graphgym_lcat.kernels.triton import attention_kernels as kernels
from graphgym_lcat.kernels.triton.common_kernels import CHUNKS, ROWS
from graphgym_lcat.kernels.triton.launch import choose_blocks, columns_of, launch
from graphgym_lcat.kernels.triton.layout import Compressed
from graphgym_lcat.kernels.triton.sums import combine_sums, sum_rows


class Score(NamedTuple):
    """The inputs of a score as the kernels take them: see :mod:`.score_kernels`."""

    query: Tensor
    key: Tensor
    att: Tensor | None
    term: Tensor | None
    weight: Tensor | None
    slope: float

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of heads and features."""
        edge_dim = 0 if self.weight is None else self.weight.size(-1)
        return {"H": self.key.size(1), "D": 1 if self.att is None else self.att.size(1), "K": edge_dim}

    @property
    def inputs(self) -> tuple[Tensor | None, ...]:
        return self.query, self.key, self.att, self.term, self.weight


class Mask(NamedTuple):
    """Dropout as the kernels take it."""

    seed: Tensor | None
    threshold: int
    factor: float


def missing(like: Tensor) -> Tensor:
    """Stands for a tensor that there is not."""
    return like.new_empty(0)


def _given(tensor: Tensor) -> Tensor | None:
    return None if tensor.dim() == 1 and tensor.size(0) == 0 else tensor


def _score(query: Tensor, key: Tensor, att: Tensor, term: Tensor, weight: Tensor, slope: float) -> Score:
    return Score(query, key, _given(att), _given(term), _given(weight), slope)


def _mask(seed: Tensor, probability: float) -> Mask:
    if _given(seed) is None:
        return Mask(None, 0, 1.0)
    threshold = keep_threshold(probability)
    # As a signed number of 32 bits, so that every probability has the same compiled kernel.
    signed = threshold - 2**32 if threshold >= 2**31 else threshold
    return Mask(seed, signed, 1 / (1 - probability) if probability < 1 else 0.0)


def _grid(programs: int, sizes: dict[str, int], width: int) -> tuple[tuple[int, int], dict[str, int]]:
    """The grid of a kernel, and the options that follow from the sizes of heads and features."""
    heads = sizes["H"]
    blocks = choose_blocks(heads, width)
    options = {"EDGES": blocks.edges, "HEADS": blocks.heads, "num_warps": blocks.warps}
    options["DEPTH"] = columns_of(sizes["D"])
    if "C" in sizes:
        options["CHANNELS"] = columns_of(sizes["C"])
    return (programs, triton.cdiv(heads, blocks.heads)), {**sizes, **options}


def _modes(matrix: Compressed):
    """For each launch over the rows of a matrix: its number of programs, the arguments and options that say what to walk over."""
    edges = matrix.pointers, matrix.other_end, matrix.edge_number
    yield matrix.rows, (*edges, None, None), {"MODE": ROWS.value, "CHUNK": matrix.chunk}
    if (long := matrix.long_rows) is not None:
        walk = *edges, long.chunk_row, long.chunk_start
        yield long.chunk_row.size(0), walk, {"MODE": CHUNKS.value, "CHUNK": matrix.chunk}


def _softmax(
    matrix: Compressed, score: Score, value: Tensor | None, mask: Mask
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Sums (None without ``value``), shift and scale of every row."""
    key, sizes = score.key, score.sizes
    sizes["C"] = 1 if value is None else value.size(2)
    results: list[tuple[Tensor | None, Tensor, Tensor]] = []
    for programs, walk, mode in _modes(matrix):
        shape = (programs, sizes["H"], sizes["C"])
        out = None if value is None else value.new_empty(shape, dtype=torch.float32)
        shift, scale = (key.new_empty(shape[:2], dtype=torch.float32) for _ in range(2))
        grid, options = _grid(programs, sizes, max(sizes["C"], sizes["D"]))
        arguments = *score.inputs, value, *mask, score.slope, out, shift, scale
        launch(kernels.attend, grid, key, *walk, *arguments, **mode, **options)
        results.append((out, shift, scale))
    if (long := matrix.long_rows) is not None:
        grid, options = _grid(long.rows.size(0), sizes, sizes["C"])
        del options["D"], options["K"], options["DEPTH"], options["EDGES"]
        launch(kernels.combine_chunks, grid, key, long.pointers, long.rows, *results[1], *results[0], **options)
    return results[0]


def attend(
    graph: Graph,
    query: Tensor,
    key: Tensor,
    att: Tensor,
    value: Tensor,
    term: Tensor,
    weight: Tensor,
    seed: Tensor,
    probability: float,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weighted sums ``[num_dst, H, C]``, shift and scale of the softmax, and the sums in float32 if they are rounded.

    The backward pass subtracts their product with the gradient from all gradients of scores, where rounding would not cancel.
    """
    score = _score(query, key, att, term, weight, slope)
    out, shift, scale = _softmax(graph.device_layout.by_dst, score, value, _mask(seed, probability))
    assert out is not None  # there is a value
    if value.dtype == torch.float32:
        return out, shift, scale, missing(out)
    return out.to(value.dtype), shift, scale, out


def attend_backward(
    graph: Graph,
    query: Tensor,
    key: Tensor,
    att: Tensor,
    value: Tensor,
    term: Tensor,
    weight: Tensor,
    seed: Tensor,
    probability: float,
    slope: float,
    out: Tensor,
    shift: Tensor,
    scale: Tensor,
    exact: Tensor,
    grad: Tensor,
) -> tuple[Tensor, ...]:
    """Gradients of query, key, att, value, term and weight."""
    layout = graph.device_layout
    score = _score(query, key, att, term, weight, slope)
    mask = _mask(seed, probability)
    sizes = {**score.sizes, "C": value.size(2)}
    grad_dot_out = (grad * (out if _given(exact) is None else exact)).sum(-1, dtype=torch.float32)
    of_pair = _per_edge(graph, key)
    results: list[tuple[Tensor, Tensor]] = []
    for programs, walk, mode in _modes(layout.by_src):
        is_partial = mode["MODE"] == CHUNKS.value
        of_key, of_value = (
            t.new_empty(programs, *t.shape[1:], dtype=torch.float32 if is_partial else t.dtype) for t in (key, value)
        )
        grid, options = _grid(programs, sizes, max(sizes["C"], sizes["D"]))
        state = shift, scale, grad, grad_dot_out, of_key, of_value, of_pair
        launch(
            backward_kernels.attend_backward,
            grid,
            key,
            *walk,
            *score.inputs,
            value,
            *mask,
            slope,
            *state,
            **mode,
            **options,
        )
        results.append((of_key, of_value))
    of_key, of_value = results[0]
    if (long := layout.by_src.long_rows) is not None:
        for total, partial in zip(*results, strict=True):
            combine_sums(long, partial, total)
    of_query, of_att, of_term, of_weight = _score_gradients(graph, score, of_pair)
    return of_query, of_key, of_att, of_value, of_term, of_weight


def coefficients(
    graph: Graph, query: Tensor, key: Tensor, att: Tensor, term: Tensor, weight: Tensor, slope: float
) -> Tensor:
    """γ by edge number, ``[num_edges, H]``; 0 for dropped self-loops."""
    layout = graph.device_layout
    score = _score(query, key, att, term, weight, slope)
    _, shift, scale = _softmax(layout.by_dst, score, None, Mask(None, 0, 1.0))
    gamma = _per_edge(graph, key, key.dtype)
    for programs, walk, mode in _modes(layout.by_dst):
        grid, options = _grid(programs, score.sizes, score.sizes["D"])
        arguments = *score.inputs, slope, shift, scale, gamma
        launch(kernels.coefficients, grid, key, *walk, *arguments, **mode, **options)
    return gamma


def coefficients_backward(
    graph: Graph,
    query: Tensor,
    key: Tensor,
    att: Tensor,
    term: Tensor,
    weight: Tensor,
    slope: float,
    gamma: Tensor,
    grad: Tensor,
) -> tuple[Tensor, ...]:
    """Gradients of query, key, att, term and weight."""
    layout = graph.device_layout
    score = _score(query, key, att, term, weight, slope)
    src, dst = _ends(graph)
    weighted = gamma.float() * grad
    mean = weighted.new_empty(graph.num_dst, gamma.size(1))
    sum_rows(layout.by_dst, weighted, member=layout.by_dst.edge_number, out=mean)
    of_pair = weighted - gamma * mean.index_select(0, dst)
    if score.att is None:
        x = query.float().index_select(0, dst) + key.index_select(0, src)
        if score.term is not None:
            x = x + score.term
        of_pair = torch.where(x > 0, of_pair, slope * of_pair)
        of_key = sum_rows(layout.by_src, of_pair, member=layout.by_src.edge_number, out=torch.empty_like(key))
    else:
        of_key, _ = _gatv2_gradient(layout.by_src, score, of_pair, key, query, False)
    of_query, of_att, of_term, of_weight = _score_gradients(graph, score, of_pair)
    return of_query, of_key, of_att, of_term, of_weight


def _score_gradients(graph: Graph, score: Score, of_pair: Tensor) -> tuple[Tensor, ...]:
    """Gradients of query, att, term and weight, from what :func:`.attend_backward` writes for each edge."""
    by_dst = graph.device_layout.by_dst
    key = score.key
    if score.att is None:
        of_query = sum_rows(by_dst, of_pair, member=by_dst.edge_number, out=torch.empty_like(score.query))
        of_term = missing(key) if score.term is None else of_pair.to(score.term.dtype)
        return of_query, missing(key), of_term, missing(key)
    of_query, of_att = _gatv2_gradient(by_dst, score, of_pair, score.query, key, True)
    if score.term is None:
        return of_query, of_att, missing(key), missing(key)
    return of_query, of_att, *_edge_gradients(graph, score, of_pair)


def _gatv2_gradient(matrix: Compressed, score: Score, of_score: Tensor, own: Tensor, other: Tensor, with_att: bool):
    """Gradients of ``own``, which is query or key, and of ``att``."""
    sizes, att = score.sizes, score.att
    assert att is not None
    results, of_att = [], torch.zeros_like(att, dtype=torch.float32)
    for programs, walk, mode in _modes(matrix):
        is_partial = mode["MODE"] == CHUNKS.value
        shape = (programs, *att.shape)
        of_own = own.new_empty(shape, dtype=torch.float32 if is_partial else own.dtype)
        share = own.new_empty(shape, dtype=torch.float32) if with_att else None
        grid, options = _grid(programs, sizes, sizes["D"])
        arguments = own, other, att, score.term, score.weight, score.slope, of_score, of_own, share
        launch(backward_kernels.gatv2_score_backward, grid, own, *walk, *arguments, **mode, **options)
        results.append(of_own)
        if share is not None:
            of_att += share.sum(0)
    if (long := matrix.long_rows) is not None:
        combine_sums(long, results[1], results[0])
    return results[0], of_att.to(att.dtype)


def _edge_gradients(graph: Graph, score: Score, of_score: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of edge features and of their projection, for GATv2: matrix products over chunks of edges."""
    query, key, att, term, weight = (None if t is None else t.float() for t in score.inputs)
    assert query is not None and key is not None and att is not None and term is not None and weight is not None
    flat = weight.flatten(0, 1)
    of_term, of_weight = torch.empty_like(term), torch.zeros_like(flat)
    src, dst = _ends(graph)
    size = max(1, chunk_numel(key.device) // max(1, att.numel()))
    for start in range(0, term.size(0), size):
        part = slice(start, start + size)
        x = query.index_select(0, dst[part]) + key.index_select(0, src[part])
        x += (term[part] @ flat.t()).view_as(x)
        of_x = torch.where(x > 0, 1.0, score.slope) * (of_score[part].unsqueeze(-1) * att)
        of_term[part] = of_x.flatten(1) @ flat
        of_weight += of_x.flatten(1).t() @ term[part]
    assert score.term is not None and score.weight is not None
    return of_term.to(score.term.dtype), of_weight.view_as(weight).to(score.weight.dtype)


def _per_edge(graph: Graph, like: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Numbers for every edge and head, of which dropped self-loops keep 0."""
    layout = graph.device_layout
    create: Any = torch.empty if layout.complete else torch.zeros
    return create(layout.num_edges, like.size(1), dtype=dtype, device=like.device)


def _ends(graph: Graph) -> tuple[Tensor, Tensor]:
    """Source and destination of every edge number."""
    loops = torch.arange(graph.self_loops, device=graph.device)
    src, dst = torch.cat([graph.edge_index.long(), loops.expand(2, -1)], dim=1)
    return src, dst
