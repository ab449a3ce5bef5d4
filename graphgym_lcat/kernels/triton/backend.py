"""The Triton kernels: the backend ``'triton'``, for GPUs.

Attention needs no tensor of the size edges × heads × channels; its backward pass keeps one number per edge and head. There are no
atomic operations, so results are repeatable bit for bit. Numbers are stored in the types of the inputs and added up in float32.

With ``TRITON_INTERPRET=1``, Triton interprets the kernels on the CPU, thousands of times slower: that is how they are tested.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import Tensor

from graphgym_lcat.kernels.backend import Capabilities, Coefficients, Dropout, GATScore, GATv2Score, PairScore
from graphgym_lcat.kernels.dropout import dropout_factors
from graphgym_lcat.kernels.graph import Graph

#: Why there are no Triton kernels, or None.
UNAVAILABLE: str | None
try:
    from graphgym_lcat.kernels.triton import operators
except ImportError as error:
    UNAVAILABLE = f"Triton cannot be imported ({error})"
else:
    UNAVAILABLE = None

NUMBERS = (torch.float32, torch.bfloat16, torch.float16)
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

name = "triton"
can = Capabilities(
    operators=frozenset({"neighbor_mean", "convolve", "attend", "coefficients"}),
    scores=frozenset({"gat", "gatv2"}),
    edge_term=True,
    dropout=True,
    devices=frozenset({"cuda", "cpu"} if INTERPRETED else {"cuda"}),
    dtypes=NUMBERS,
    mixed_dtypes=frozenset(NUMBERS),
    max_nodes=2**31 - 2,
    derivatives=1,
)


def unavailable() -> str | None:
    """Why there are no Triton kernels; None if there are."""
    return UNAVAILABLE


def describe() -> str:
    return "Triton kernels (interpreted)" if INTERPRETED else "Triton kernels"


def neighbor_mean(graph: Graph, value: Tensor) -> Tensor:
    """See :meth:`.Backend.neighbor_mean`."""
    return operators.neighbor_mean(graph, value)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
    """See :meth:`.Backend.convolve`."""
    if not isinstance(lambda2, Tensor):
        lambda2 = source.new_full((1,), lambda2, dtype=torch.float32)
    train = torch.is_grad_enabled() and lambda2.requires_grad
    return operators.convolve(graph, target, source, lambda2, train)[0]


def attend(graph: Graph, score: PairScore, value: Tensor, dropout: Dropout | None = None) -> Tensor:
    """See :meth:`.Backend.attend`."""
    query, key, att, term, weight, slope = _score_inputs(graph, score)
    seed, probability = torch.empty(0, dtype=torch.int64, device=value.device), 0.0
    if dropout is not None:
        seed, probability = dropout.seed.to(value.device, non_blocking=True), dropout.probability
    return operators.attend(graph, query, key, att, value, term, weight, seed, probability, slope)[0]


def coefficients(graph: Graph, score: PairScore, dropout: Dropout | None = None) -> Coefficients:
    """See :meth:`.Backend.coefficients`."""
    gamma = operators.coefficients(graph, *_score_inputs(graph, score))
    if dropout is not None:
        numbers = torch.arange(gamma.size(0), device=gamma.device)
        gamma = gamma * dropout_factors(dropout.seed, numbers, gamma.size(1), dropout.probability, gamma.dtype)
    count = graph.edge_index.size(1)
    return Coefficients(gamma[:count], gamma[count:])


def statistics(graph: Graph, score: PairScore, receiver: Tensor, sender: Tensor, names: Sequence[str]) -> Tensor:
    """Left to other backends: ``can`` does not list it."""
    raise NotImplementedError("the Triton kernels do not compute statistics of messages; use backend='torch'")


def _score_inputs(graph: Graph, score: PairScore) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, float]:
    """Query, key, and the kernels' ``att``, ``term``, ``weight``, ``[0]`` where there is none; the slope of the LeakyReLU."""
    assert isinstance(score, (GATScore, GATv2Score))  # `can` lists no other
    query, key, slope = score.query, score.key, score.negative_slope
    nothing = key.new_empty(0)
    att = score.att if isinstance(score, GATv2Score) else nothing
    if score.edge is None:
        return query, key, att, nothing, nothing, slope
    features, loops, weight = score.edge
    if isinstance(loops, str):
        loops = operators.fill_loops(graph, features, loops == "mean")
    features = torch.cat([features, loops])
    if isinstance(score, GATScore):
        return query, key, att, features @ weight.t(), nothing, slope
    return query, key, att, features, weight, slope
