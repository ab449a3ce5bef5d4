"""The operators of :class:`~graphgym_lcat.kernels.backend.Backend`, computed by the backend that suits the call.

``backend`` is the name of a registered backend, or ``'auto'`` for the fastest one that can compute the call. The environment
variable ``LCAT_BACKEND`` takes the place of ``'auto'``. A backend chosen by name computes, or refuses with an error: no other
one steps in.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack

from graphgym_lcat.kernels import fused, scatter_path, torch_path
from graphgym_lcat.kernels.backend import (
    Backend,
    Coefficients,
    Dropout,
    EqualScore,
    Operator,
    PairScore,
    Request,
    why_not,
)
from graphgym_lcat.kernels.graph import Graph

ENVIRONMENT_VARIABLE = "LCAT_BACKEND"

_BACKENDS: dict[str, Backend] = {}


def register_backend(backend: Backend) -> None:
    """Makes a backend known by its name; ``'auto'`` tries the last registered one first."""
    if backend.name == "auto" or backend.name in _BACKENDS:
        raise ValueError(f"there is already a backend {backend.name!r}; register this one by another name")
    _BACKENDS[backend.name] = backend


register_backend(torch_path)
register_backend(fused)


def backend_names() -> tuple[str, ...]:
    """What ``backend='…'`` and ``LCAT_BACKEND`` may be."""
    return "auto", *_BACKENDS


def neighbor_mean(backend: str, graph: Graph, value: Tensor) -> Tensor:
    """See :meth:`.Backend.neighbor_mean`."""
    return choose(backend, _request("neighbor_mean", graph, value)).neighbor_mean(graph, value)


def convolve(backend: str, graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
    """See :meth:`.Backend.convolve`."""
    more = (lambda2,) if isinstance(lambda2, Tensor) else ()
    return choose(backend, _request("convolve", graph, source, target, *more)).convolve(graph, target, source, lambda2)


def attend(backend: str, graph: Graph, score: PairScore, value: Tensor, dropout: Dropout | None = None) -> Tensor:
    """See :meth:`.Backend.attend`. Equal scores are a mean."""
    if isinstance(score, EqualScore) and dropout is None:
        return neighbor_mean(backend, graph, value.flatten(1)).view(-1, *value.shape[1:])
    request = _score_request("attend", graph, score, dropout, value)
    return choose(backend, request).attend(graph, score, value, dropout)


def coefficients(backend: str, graph: Graph, score: PairScore, dropout: Dropout | None = None) -> Coefficients:
    """See :meth:`.Backend.coefficients`."""
    return choose(backend, _score_request("coefficients", graph, score, dropout)).coefficients(graph, score, dropout)


def statistics(
    backend: str, graph: Graph, score: PairScore, receiver: Tensor, sender: Tensor, names: Sequence[str]
) -> Tensor:
    """See :meth:`.Backend.statistics`."""
    if graph.add_self_loops:
        raise ValueError("statistics of messages need a graph without added self-loops")
    request = _score_request("statistics", graph, score, None, receiver, sender)
    if isinstance(score, EqualScore):
        request = request._replace(score=None)
    return choose(backend, request).statistics(graph, score, receiver, sender, names)


def choose(backend: str, request: Request) -> Backend:
    """The backend that serves ``request``."""
    name = _resolve(backend)
    if name != "auto":
        chosen = _BACKENDS[name]
        reason = why_not(chosen, request)
        if reason is None:
            return _variant(chosen, request)
        able = [other.name for other in _BACKENDS.values() if why_not(other, request) is None]
        advice = " or ".join(repr(other) for other in ("auto", *able))
        raise RuntimeError(f"backend={name!r} was asked for, but {reason}; use {advice}")
    for candidate in reversed(_BACKENDS.values()):
        if why_not(candidate, request) is None:
            return _variant(candidate, request)
    reasons = "; ".join(f"{other.name}: {why_not(other, request)}" for other in _BACKENDS.values())
    raise RuntimeError(f"no backend can compute this: {reasons}")


def describe_backend() -> str:
    """What ``'auto'`` uses for float32 on the CPU, and why."""
    request = Request("attend", "cpu", (torch.float32,), (1, 1), score="gat")
    try:
        chosen = choose("auto", request)
    except (RuntimeError, ValueError) as error:
        return f"none ({error})"
    if chosen is not torch_path:
        return chosen.describe()
    reason = f"{ENVIRONMENT_VARIABLE}=torch" if _resolve("auto") == "torch" else why_not(fused, request)
    return f"{chosen.describe()} ({reason})"


def _resolve(backend: str) -> str:
    if backend != "auto":
        return backend
    name = os.environ.get(ENVIRONMENT_VARIABLE, "auto")
    if name != "auto" and name not in _BACKENDS:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} must be one of {', '.join(backend_names())}, got {name!r}")
    return name


def _request(operator: Operator, graph: Graph, *tensors: Tensor) -> Request:
    dtypes = tuple([tensor.dtype for tensor in tensors])
    nodes = (graph.num_src, graph.num_dst)
    return Request(operator, tensors[0].device.type, dtypes, nodes, transforms=_in_transform())


def _score_request(
    operator: Operator, graph: Graph, score: PairScore, dropout: Dropout | None, *tensors: Tensor
) -> Request:
    return Request(
        operator,
        score.key.device.type,
        tuple([part.dtype for part in (*score, *(score.edge or ()), *tensors) if isinstance(part, Tensor)]),
        (graph.num_src, graph.num_dst),
        score.key.size(1),
        score.kind,
        score.edge is not None,
        dropout is not None,
        transforms=_in_transform(),
    )


def _variant(backend: Backend, request: Request) -> Backend:
    return scatter_path if request.transforms and backend is torch_path else backend


def _in_transform() -> bool:
    """Whether something other than backward-mode derivatives and ``torch.compile`` looks at the operations."""
    if torch.compiler.is_compiling():
        return torch.onnx.is_in_onnx_export()
    return peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0
