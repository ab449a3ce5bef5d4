"""The operators of :mod:`graphgym_lcat.kernels.ops` that compute attention.

An empty tensor of one dimension stands for one that is missing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphgym_lcat.kernels import calls_gat, calls_gatv2
from graphgym_lcat.kernels.calls import Call
from graphgym_lcat.kernels.calls_gatv2 import EdgeFeatures
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.library import real_dtype
from graphgym_lcat.kernels.ops import Handle, differentiate, like, operator

_GAT = "Tensor query, Tensor key, Tensor value, Tensor term"
_GATV2 = "Tensor query, Tensor key, Tensor value, Tensor att, Tensor features, Tensor loops, Tensor weight"
_DROPOUT = "Tensor seed, float probability, float slope"
_STATE = "Tensor shift, Tensor scale"


def _sum_call(graph: Graph, edges: Tensor, seed: Tensor, probability: float) -> Call:
    numbers = graph.edge_numbers if edges.dim() > 1 or probability > 0 else None
    return Call(graph.compact, numbers, int(seed), probability)


def _edge_call(graph: Graph, seed: Tensor, probability: float) -> Call:
    return Call(graph.compact, graph.edge_numbers, int(seed), probability)


def _optional(tensor: Tensor) -> Tensor | None:
    return None if tensor.dim() == 1 else tensor


def _edge(features: Tensor, loops: Tensor, weight: Tensor) -> EdgeFeatures | None:
    return None if features.dim() == 1 else EdgeFeatures(features, loops, weight)


def _present(grads: tuple[Tensor | None, ...], like: Tensor) -> tuple[Tensor, ...]:
    return tuple(like.new_empty(0) if grad is None else grad for grad in grads)


def _fake_sums(handle: Handle, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The sums, and shift and scale of the softmax."""
    num_dst, (heads, channels) = handle[2], value.shape[1:]
    shift = value.new_empty(num_dst, heads, dtype=real_dtype(value.dtype))
    return value.new_empty(num_dst, heads, channels), shift, torch.empty_like(shift)


def _fake_coefficients(handle: Handle, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    edge_index, num_src, num_dst, add_self_loops, _ = handle
    loops = torch.sym_min(num_src, num_dst) if add_self_loops else 0
    gamma = key.new_empty(edge_index.size(1) + loops, key.size(1), dtype=real_dtype(key.dtype))
    shift = gamma.new_empty(num_dst, key.size(1))
    return gamma, shift, torch.empty_like(shift)


def _attend_gat(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, value, term, seed, probability, slope, train = inputs
    call = _sum_call(graph, term, seed, probability)
    out, state = calls_gat.forward(call, query, key, value, _optional(term), slope, train)
    return out, *state


def _fake_attend_gat(handle: Handle, query: Tensor, key: Tensor, value: Tensor, term: Tensor, *rest: Any):
    out, shift, scale = _fake_sums(handle, value)
    kept = rest[-1] and term.dim() == 1
    return out, shift, scale, *(like(out, shift) if kept else (out.new_empty(0), shift.new_empty(0)))


def _attend_gat_backward(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, value, term, seed, probability, slope, out, *state, grad = inputs
    call = _sum_call(graph, term, seed, probability)
    return _present(calls_gat.backward(call, query, key, value, _optional(term), slope, out, tuple(state), grad), value)


attend_gat = operator("attend_gat", f"{_GAT}, {_DROPOUT}, bool train", 5, _attend_gat, _fake_attend_gat)
differentiate(
    attend_gat,
    operator(
        "attend_gat_backward",
        f"{_GAT}, {_DROPOUT}, Tensor out, {_STATE}, Tensor positive_out, Tensor positive_sum, Tensor grad",
        4,
        _attend_gat_backward,
        lambda handle, *inputs: like(*inputs[:4]),
    ),
    keep=range(7),
    keep_results=range(5),
)


def _gat_coefficients(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, term, seed, probability, slope = inputs
    return calls_gat.coefficients(_edge_call(graph, seed, probability), query, key, _optional(term), slope)


def _gat_coefficients_backward(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, term, seed, probability, slope, *state_and_grad = inputs
    call = _edge_call(graph, seed, probability)
    grads = calls_gat.coefficients_backward(call, query, key, _optional(term), slope, *state_and_grad)
    return grads if term.dim() > 1 else (*grads[:2], term.new_empty(0))


gat_coefficients = operator(
    "gat_coefficients",
    f"Tensor query, Tensor key, Tensor term, {_DROPOUT}",
    3,
    _gat_coefficients,
    lambda handle, query, key, *rest: _fake_coefficients(handle, key),
)
differentiate(
    gat_coefficients,
    operator(
        "gat_coefficients_backward",
        f"Tensor query, Tensor key, Tensor term, {_DROPOUT}, Tensor gamma, {_STATE}, Tensor grad",
        3,
        _gat_coefficients_backward,
        lambda handle, *inputs: like(*inputs[:3]),
    ),
    keep=range(6),
    keep_results=range(3),
)


def _attend_gatv2(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    *nodes, features, loops, weight, seed, probability, slope = inputs
    arguments: tuple[Any, ...] = (*nodes, _edge(features, loops, weight), slope)
    return calls_gatv2.forward(_sum_call(graph, features, seed, probability), *arguments)


def _attend_gatv2_backward(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    nodes, (features, loops, weight, seed, probability, slope, *state_and_grad) = inputs[:4], inputs[4:]
    arguments: tuple[Any, ...] = (*nodes, _edge(features, loops, weight), slope, *state_and_grad)
    return _present(calls_gatv2.backward(_sum_call(graph, features, seed, probability), *arguments), nodes[0])


attend_gatv2 = operator(
    "attend_gatv2",
    f"{_GATV2}, {_DROPOUT}",
    3,
    _attend_gatv2,
    lambda handle, query, key, value, *rest: _fake_sums(handle, value),
)
differentiate(
    attend_gatv2,
    operator(
        "attend_gatv2_backward",
        f"{_GATV2}, {_DROPOUT}, Tensor out, {_STATE}, Tensor grad",
        7,
        _attend_gatv2_backward,
        lambda handle, *inputs: like(*inputs[:7]),
    ),
    keep=range(10),
    keep_results=range(3),
)


def _gatv2_coefficients(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    *nodes, features, loops, weight, seed, probability, slope = inputs
    arguments: tuple[Any, ...] = (*nodes, _edge(features, loops, weight), slope)
    return calls_gatv2.coefficients(_edge_call(graph, seed, probability), *arguments)


def _gatv2_coefficients_backward(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    nodes, (features, loops, weight, seed, probability, slope, *state_and_grad) = inputs[:3], inputs[3:]
    arguments: tuple[Any, ...] = (*nodes, _edge(features, loops, weight), slope, *state_and_grad)
    return _present(calls_gatv2.coefficients_backward(_edge_call(graph, seed, probability), *arguments), nodes[0])


gatv2_coefficients = operator(
    "gatv2_coefficients",
    f"{_GATV2.replace('Tensor value, ', '')}, {_DROPOUT}",
    3,
    _gatv2_coefficients,
    lambda handle, query, key, *rest: _fake_coefficients(handle, key),
)
differentiate(
    gatv2_coefficients,
    operator(
        "gatv2_coefficients_backward",
        f"{_GATV2.replace('Tensor value, ', '')}, {_DROPOUT}, Tensor gamma, {_STATE}, Tensor grad",
        6,
        _gatv2_coefficients_backward,
        lambda handle, *inputs: like(*inputs[:6]),
    ),
    keep=range(9),
    keep_results=range(3),
)
