"""The operators of the backend, each declared once: for eager code, and as torch operators for compiled code.

Like those of :mod:`graphgym_lcat.kernels.ops`, the operators of compiled code take the handle of a graph and find its layout in
the cache. They are kept out of CUDA graphs, whose replay would not look it up again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef
from torch.autograd.function import once_differentiable

from graphgym_lcat.kernels import ops
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.ops import Handle
from graphgym_lcat.kernels.triton import attention, sums


@dataclass(frozen=True)
class Operator:
    """A function of a graph and tensors, with its derivative.

    ``backward`` takes the graph, the inputs ``keep`` and the results ``keep_results`` of ``forward``, and the gradient of the
    first result. It returns the gradients of the first inputs of ``forward``.
    """

    forward: Callable
    backward: Callable
    keep: Sequence[int]
    keep_results: Sequence[int]
    compiled: CustomOpDef

    def __call__(self, graph: Graph, *inputs: Any) -> Any:
        if torch.compiler.is_compiling():
            return self.compiled(*ops.handle(graph), *inputs)
        return _Eager.apply(self, graph, *inputs)


class _Eager(torch.autograd.Function):
    @staticmethod
    def forward(ctx, operator: Operator, graph: Graph, *inputs: Any):
        inputs = tuple(i.contiguous() if isinstance(i, Tensor) else i for i in inputs)
        results = operator.forward(graph, *inputs)
        listed = results if isinstance(results, tuple) else (results,)
        kept = [*(inputs[i] for i in operator.keep), *(listed[i] for i in operator.keep_results)]
        ctx.save_for_backward(*(k if isinstance(k, Tensor) else None for k in kept))
        ctx.others = [None if isinstance(k, Tensor) else k for k in kept]
        ctx.operator, ctx.graph, ctx.count = operator, graph, len(inputs)
        ctx.mark_non_differentiable(*listed[1:])
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor, *_: Tensor):
        kept = [other if saved is None else saved for saved, other in zip(ctx.saved_tensors, ctx.others, strict=True)]
        grads = ctx.operator.backward(ctx.graph, *kept, grad.contiguous())
        grads = grads if isinstance(grads, tuple) else (grads,)
        return None, None, *grads, *(None,) * (ctx.count - len(grads))


def _operator(
    name: str,
    inputs: str,
    results: int,
    functions: tuple[Callable, Callable],
    fakes: tuple[Callable, Callable],
    backward_inputs: str,
    grads: int,
    keep: Sequence[int],
    keep_results: Sequence[int],
) -> Operator:
    options: dict[str, Any] = {"device_types": None, "tags": (torch.Tag.cudagraph_unsafe,)}
    forward = ops.operator(f"triton_{name}", inputs, results, functions[0], fakes[0], **options)
    backward = ops.operator(f"triton_{name}_backward", backward_inputs, grads, functions[1], fakes[1], **options)
    ops.differentiate(forward, backward, keep, keep_results)
    return Operator(*functions, keep, keep_results, forward)


def _like(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.empty_like(t) for t in tensors)


neighbor_mean = _operator(
    "neighbor_mean",
    "Tensor value",
    1,
    (sums.mean, sums.mean_backward),
    (
        lambda handle, value: value.new_empty(handle[2], value.size(1)),
        lambda handle, grad: grad.new_empty(handle[1], grad.size(1)),
    ),
    "Tensor grad",
    1,
    keep=(),
    keep_results=(),
)


def _fake_convolve(handle: Handle, target: Tensor, source: Tensor, lambda2: Tensor, train: bool):
    dtype = torch.promote_types(target.dtype, source.dtype)
    slope = target.new_empty(target.shape if train else 0, dtype=torch.float32)
    return target.new_empty(target.shape, dtype=dtype), slope


convolve = _operator(
    "convolve",
    "Tensor target, Tensor source, Tensor lambda2, bool train",
    2,
    (sums.convolve, sums.convolve_backward),
    (_fake_convolve, lambda handle, target, source, lambda2, *rest: _like(target, source, lambda2)),
    "Tensor target, Tensor source, Tensor lambda2, Tensor slope, Tensor grad",
    3,
    keep=(0, 1, 2),
    keep_results=(1,),
)

fill_loops = _operator(
    "fill_loops",
    "Tensor features, bool mean",
    1,
    (sums.fill_loops, sums.fill_loops_backward),
    (
        lambda handle, features, mean: features.new_empty(_self_loops(handle), features.size(1)),
        lambda handle, mean, grad: grad.new_empty(handle[0].size(1), grad.size(1)),
    ),
    "bool mean, Tensor grad",
    1,
    keep=(1,),
    keep_results=(),
)


def _self_loops(handle: Handle) -> Any:
    _, num_src, num_dst, add_self_loops, _ = handle
    return torch.sym_min(num_src, num_dst) if add_self_loops else 0


def _fake_attend(
    handle: Handle, query: Tensor, key: Tensor, att: Tensor, value: Tensor, term: Tensor, weight: Tensor, *_
):
    num_dst, (heads, channels) = handle[2], value.shape[1:]
    shape = (num_dst, heads)
    state = (value.new_empty(shape, dtype=torch.float32) for _ in range(2))
    is_rounded = value.dtype != torch.float32
    exact = value.new_empty((*shape, channels) if is_rounded else 0, dtype=torch.float32)
    return value.new_empty(*shape, channels), *state, exact


_SCORE = "Tensor query, Tensor key, Tensor att"
_EDGES = "Tensor term, Tensor weight"
_DROPOUT = "Tensor seed, float probability"

attend = _operator(
    "attend",
    f"{_SCORE}, Tensor value, {_EDGES}, {_DROPOUT}, float slope",
    4,
    (attention.attend, attention.attend_backward),
    (_fake_attend, lambda handle, *inputs: _like(*inputs[:6])),
    f"{_SCORE}, Tensor value, {_EDGES}, {_DROPOUT}, float slope, Tensor out, Tensor shift, Tensor scale, "
    "Tensor exact, Tensor grad",
    6,
    keep=range(9),
    keep_results=range(4),
)

coefficients = _operator(
    "coefficients",
    f"{_SCORE}, {_EDGES}, float slope",
    1,
    (attention.coefficients, attention.coefficients_backward),
    (
        lambda handle, query, key, *rest: key.new_empty(handle[0].size(1) + _self_loops(handle), key.size(1)),
        lambda handle, *inputs: _like(*inputs[:5]),
    ),
    f"{_SCORE}, {_EDGES}, float slope, Tensor gamma, Tensor grad",
    5,
    keep=range(6),
    keep_results=(0,),
)
