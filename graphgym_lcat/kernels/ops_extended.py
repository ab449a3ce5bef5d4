"""The operators of :mod:`graphgym_lcat.kernels.ops` for dropout, edge features and attention coefficients.

A tensor without dimensions to speak of (``[0]``) stands for one that is missing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphgym_lcat.kernels import extended_calls, extended_calls_gatv2
from graphgym_lcat.kernels.extended_calls import Extras
from graphgym_lcat.kernels.extended_calls_gatv2 import EdgeFeatures
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.ops import Handle, differentiate, fake_attention, operator

_DROPOUT = "Tensor seed, float probability, float slope"
_EDGE = "Tensor features, Tensor loops, Tensor weight"


def _extras(graph: Graph, seed: Tensor, probability: float) -> Extras:
    return Extras(graph.compact, graph.edge_numbers, int(seed), probability)


def _optional(tensor: Tensor) -> Tensor | None:
    return None if tensor.dim() == 1 else tensor


def _edge(features: Tensor, loops: Tensor, weight: Tensor) -> EdgeFeatures | None:
    return None if features.dim() == 1 else EdgeFeatures(features, loops, weight)


def _like(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(t.new_empty(t.shape) for t in tensors)


def _present(grads: tuple[Tensor | None, ...], like: Tensor) -> tuple[Tensor, ...]:
    return tuple(like.new_empty(0) if grad is None else grad for grad in grads)


def _fake_coefficients(handle: Handle, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    edge_index, num_src, num_dst, add_self_loops, _ = handle
    loops = torch.sym_min(num_src, num_dst) if add_self_loops else 0
    shape = (num_dst, key.size(1))
    return key.new_empty(edge_index.size(1) + loops, key.size(1)), key.new_empty(shape), key.new_empty(shape)


def _attend_gat(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, value, term, seed, probability, slope = inputs
    extras = _extras(graph, seed, probability)
    out, state = extended_calls.gat_forward(extras, query, key, value, _optional(term), slope, True)
    return out, *state


def _fake_attend_gat(handle: Handle, query: Tensor, key: Tensor, value: Tensor, term: Tensor, *rest: Any):
    out, shift, scale = fake_attention(handle, value)
    return out, shift, scale, *(_like(out, shift) if term.dim() == 1 else _like(value.new_empty(0), value.new_empty(0)))


def _attend_gat_backward(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, value, term, seed, probability, slope, out, *state, grad = inputs
    extras = _extras(graph, seed, probability)
    grads = extended_calls.gat_backward(extras, query, key, value, _optional(term), slope, out, tuple(state), grad)
    return _present(grads, value)


attend_gat = operator(
    "attend_gat_extended",
    f"Tensor query, Tensor key, Tensor value, Tensor term, {_DROPOUT}",
    5,
    _attend_gat,
    _fake_attend_gat,
)
differentiate(
    attend_gat,
    operator(
        "attend_gat_extended_backward",
        f"Tensor query, Tensor key, Tensor value, Tensor term, {_DROPOUT}, Tensor out, Tensor shift, Tensor scale, "
        "Tensor positive_out, Tensor positive_sum, Tensor grad",
        4,
        _attend_gat_backward,
        lambda handle, query, key, value, term, *rest: _like(query, key, value, term),
    ),
    keep=range(7),
    keep_results=range(5),
)


def _gat_coefficients_backward(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, term, seed, probability, slope, *rest = inputs
    extras = _extras(graph, seed, probability)
    arguments: tuple[Any, ...] = (query, key, _optional(term), slope, *rest)
    grads = extended_calls.gat_coefficients_backward(extras, *arguments)
    return grads if term.dim() > 1 else (*grads[:2], term.new_empty(0))


gat_coefficients = operator(
    "gat_coefficients",
    f"Tensor query, Tensor key, Tensor term, {_DROPOUT}",
    3,
    lambda graph, query, key, term, seed, probability, slope: extended_calls.gat_coefficients(
        _extras(graph, seed, probability), query, key, _optional(term), slope
    ),
    lambda handle, query, key, *rest: _fake_coefficients(handle, key),
)
differentiate(
    gat_coefficients,
    operator(
        "gat_coefficients_backward",
        f"Tensor query, Tensor key, Tensor term, {_DROPOUT}, Tensor gamma, Tensor shift, Tensor scale, Tensor grad",
        3,
        _gat_coefficients_backward,
        lambda handle, query, key, term, *rest: _like(query, key, term),
    ),
    keep=range(6),
    keep_results=range(3),
)


def _attend_gatv2_backward(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, value, att, features, loops, weight, seed, probability, slope, *rest = inputs
    arguments: tuple[Any, ...] = (query, key, value, att, _edge(features, loops, weight), slope, *rest)
    return _present(extended_calls_gatv2.gatv2_backward(_extras(graph, seed, probability), *arguments), value)


attend_gatv2 = operator(
    "attend_gatv2_extended",
    f"Tensor query, Tensor key, Tensor value, Tensor att, {_EDGE}, {_DROPOUT}",
    3,
    lambda graph, query, key, value, att, features, loops, weight, seed, probability, slope: (
        extended_calls_gatv2.gatv2_forward(
            _extras(graph, seed, probability), query, key, value, att, _edge(features, loops, weight), slope
        )
    ),
    lambda handle, query, key, value, *rest: fake_attention(handle, value),
)
differentiate(
    attend_gatv2,
    operator(
        "attend_gatv2_extended_backward",
        f"Tensor query, Tensor key, Tensor value, Tensor att, {_EDGE}, {_DROPOUT}, Tensor out, Tensor shift, Tensor scale, "
        "Tensor grad",
        7,
        _attend_gatv2_backward,
        lambda handle, *inputs: _like(*inputs[:7]),
    ),
    keep=range(10),
    keep_results=range(3),
)


def _gatv2_coefficients_backward(graph: Graph, *inputs: Any) -> tuple[Tensor, ...]:
    query, key, att, features, loops, weight, seed, probability, slope, *rest = inputs
    arguments: tuple[Any, ...] = (query, key, att, _edge(features, loops, weight), slope, *rest)
    return _present(
        extended_calls_gatv2.gatv2_coefficients_backward(_extras(graph, seed, probability), *arguments), key
    )


gatv2_coefficients = operator(
    "gatv2_coefficients",
    f"Tensor query, Tensor key, Tensor att, {_EDGE}, {_DROPOUT}",
    3,
    lambda graph, query, key, att, features, loops, weight, seed, probability, slope: (
        extended_calls_gatv2.gatv2_coefficients(
            _extras(graph, seed, probability), query, key, att, _edge(features, loops, weight), slope
        )
    ),
    lambda handle, query, key, *rest: _fake_coefficients(handle, key),
)
differentiate(
    gatv2_coefficients,
    operator(
        "gatv2_coefficients_backward",
        f"Tensor query, Tensor key, Tensor att, {_EDGE}, {_DROPOUT}, Tensor gamma, Tensor shift, Tensor scale, Tensor grad",
        6,
        _gatv2_coefficients_backward,
        lambda handle, *inputs: _like(*inputs[:6]),
    ),
    keep=range(9),
    keep_results=range(3),
)
