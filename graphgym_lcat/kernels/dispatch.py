"""The operators of :class:`~graphgym_lcat.kernels.backend.Backend`, computed by the backend that suits the call.

``backend`` is the name of a registered backend, or ``'auto'`` for the fastest one that can compute the call. The environment
variable ``LCAT_BACKEND`` takes the place of ``'auto'``. A backend chosen by name computes, or refuses with an error: no other
one steps in.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor

from graphgym_lcat.kernels import fused, scatter_path, torch_path
from graphgym_lcat.kernels.backend import (
    Backend,
    Coefficients,
    ConvolvingBackend,
    Dropout,
    EqualScore,
    Operator,
    PairScore,
    Request,
    why_not,
)
from graphgym_lcat.kernels.derivatives import in_transform
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.triton import backend as triton_backend
from graphgym_lcat.kernels.triton import self_test

ENVIRONMENT_VARIABLE = "LCAT_BACKEND"

#: Says why ``'auto'`` must not use a backend on a device, as a clause about "it"; None if it may.
SelfTest = Callable[[torch.device], str | None]

_BACKENDS: dict[str, Backend] = {}
_SELF_TESTS: dict[str, SelfTest] = {}
_SELF_TEST_RESULTS: dict[tuple[str, str, int | None], bool] = {}


def register_backend(backend: Backend, self_test: SelfTest | None = None) -> None:
    """Makes a backend known by its name; ``'auto'`` tries the last registered one first.

    Before ``'auto'`` uses it on a device for the first time, ``self_test`` is asked.
    """
    if backend.name == "auto" or backend.name in _BACKENDS:
        raise ValueError(f"there is already a backend {backend.name!r}; register this one by another name")
    _BACKENDS[backend.name] = backend
    if self_test is not None:
        _SELF_TESTS[backend.name] = self_test


register_backend(torch_path)
register_backend(fused)
register_backend(triton_backend, self_test.find_failure)


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


def find_convolving(
    backend: str, graph: Graph, score: str, dropout: bool, key: Tensor, *more: Tensor | None
) -> ConvolvingBackend | None:
    """The backend for :meth:`.ConvolvingBackend.attend_convolved`, if there is one; None in compiled code and transforms."""
    if torch.compiler.is_compiling() or in_transform():
        return None
    dtypes = tuple([tensor.dtype for tensor in (key, *more) if tensor is not None])
    nodes = graph.num_src, graph.num_dst
    request = Request("attend_convolved", key.device.type, dtypes, nodes, key.size(1), score, dropout=dropout)
    name = _resolve(backend)
    for candidate in reversed(_BACKENDS.values()):
        if name in ("auto", candidate.name) and why_not(candidate, request) is None:
            return cast(ConvolvingBackend, candidate)
    return None


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
        if why_not(candidate, request) is None and (
            candidate.name not in _SELF_TESTS or _passes_self_test(candidate.name, request.device, request.device_index)
        ):
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


@torch.compiler.assume_constant_result
def _passes_self_test(name: str, device_type: str, index: int | None) -> bool:
    key = name, device_type, index
    if key not in _SELF_TEST_RESULTS:  # not functools.cache, about which compiled code warns
        _SELF_TEST_RESULTS[key] = _run_self_test(name, device_type, index)
    return _SELF_TEST_RESULTS[key]


def _run_self_test(name: str, device_type: str, index: int | None) -> bool:
    device = torch.device(device_type if index is None else f"{device_type}:{index}")
    reason = _SELF_TESTS[name](device)
    if reason is not None and device_type != "cpu":
        message = f"backend {name!r} is not used on {device}, because {reason}; another one computes instead"
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    return reason is None


def _resolve(backend: str) -> str:
    if backend != "auto":
        return backend
    name = os.environ.get(ENVIRONMENT_VARIABLE, "auto")
    if name != "auto" and name not in _BACKENDS:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} must be one of {', '.join(backend_names())}, got {name!r}")
    return name


def _request(operator: Operator, graph: Graph, *tensors: Tensor) -> Request:
    dtypes = tuple([tensor.dtype for tensor in tensors])
    device = tensors[0].device
    nodes = (graph.num_src, graph.num_dst)
    return Request(operator, device.type, dtypes, nodes, device_index=device.index, transforms=in_transform())


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
        device_index=score.key.device.index,
        transforms=in_transform(),
    )


def _variant(backend: Backend, request: Request) -> Backend:
    return scatter_path if request.transforms and backend is torch_path else backend
