"""The fused kernels as torch operators, for ``torch.compile`` and ``torch.export``.

A compiled program cannot hold the layout of a graph, so the operators take its handle: ``edge_index``, the numbers of nodes
and how self-loops are treated. When they run, they find the layout in the cache, as eager code does. Eager code itself calls the
kernels directly, because dispatching an operator takes several times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef
from torch.library import custom_op

from graphgym_lcat.kernels import calls
from graphgym_lcat.kernels.cache import find_graph_in_operator
from graphgym_lcat.kernels.graph import Graph

Handle = tuple[Tensor, int, int, bool, bool]
_HANDLE = "Tensor edge_index, SymInt num_src, SymInt num_dst, bool add_self_loops, bool shared_nodes"
_SIZE = 5  # of the handle


def handle(graph: Graph) -> Handle:
    """The first arguments of every operator."""
    return graph.edge_index, graph.num_src, graph.num_dst, graph.add_self_loops, graph.shared_nodes


def operator(
    name: str,
    inputs: str,
    results: int,
    call: Callable,
    fake: Callable,
    device_types: str | None = "cpu",
    tags: Sequence[torch.Tag] = (),
) -> CustomOpDef:
    """``lcat::name(handle, inputs)``, which returns ``results`` tensors.

    ``call`` computes them from the graph and the inputs; ``fake`` creates tensors of their shapes from the handle and the inputs.
    """
    tensors = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"

    def compute(*arguments: Any) -> Tensor | tuple[Tensor, ...]:
        graph = find_graph_in_operator(*arguments[:_SIZE])
        return call(graph, *(a.contiguous() if isinstance(a, Tensor) else a for a in arguments[_SIZE:]))

    schema = f"({_HANDLE}, {inputs}) -> {tensors}"
    operator = custom_op(f"lcat::{name}", compute, mutates_args=(), device_types=device_types, schema=schema, tags=tags)
    operator.register_fake(lambda *arguments: fake(arguments[:_SIZE], *arguments[_SIZE:]))
    return operator


def _operator(name: str, inputs: str, results: int, call: Callable, fake: Callable) -> CustomOpDef:
    """:func:`operator`, but ``call`` takes the layout for the fused kernels."""
    return operator(name, inputs, results, lambda graph, *arguments: call(graph.compact, *arguments), fake)


def differentiate(
    forward: CustomOpDef, backward: CustomOpDef, keep: Sequence[int], keep_results: Sequence[int]
) -> None:
    """Makes ``backward`` the derivative of ``forward``.

    It takes the handle, the inputs ``keep`` and the results ``keep_results`` of ``forward``, and the gradient of the first result.
    It returns the gradients of the first inputs of ``forward``.
    """

    def save(ctx, inputs, output) -> None:
        results = output if isinstance(output, tuple) else (output,)
        kept = [*inputs[:_SIZE], *(inputs[_SIZE + i] for i in keep), *(results[i] for i in keep_results)]
        ctx.are_tensors = [isinstance(value, Tensor) for value in kept]
        ctx.save_for_backward(*(value for value in kept if isinstance(value, Tensor)))
        ctx.others = [value for value in kept if not isinstance(value, Tensor)]
        ctx.num_inputs = len(inputs) - _SIZE

    def compute_grads(ctx, grad, *other_grads) -> tuple[Tensor | None, ...]:
        tensors, others = iter(ctx.saved_tensors), iter(ctx.others)
        kept = [next(tensors) if is_tensor else next(others) for is_tensor in ctx.are_tensors]
        grads = backward(*kept, grad)
        grads = grads if isinstance(grads, (tuple, list)) else (grads,)
        return (None,) * _SIZE + tuple(grads) + (None,) * (ctx.num_inputs - len(grads))

    forward.register_autograd(compute_grads, setup_context=save)


def like(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(t.new_empty(t.shape) for t in tensors)


neighbor_mean = _operator(
    "neighbor_mean",
    "Tensor value",
    1,
    calls.mean_forward,
    lambda handle, value: value.new_empty(handle[2], value.size(1)),
)
_neighbor_mean_backward = _operator(
    "neighbor_mean_backward",
    "Tensor grad",
    1,
    calls.mean_backward,
    lambda handle, grad: grad.new_empty(handle[1], grad.size(1)),
)
differentiate(neighbor_mean, _neighbor_mean_backward, keep=(), keep_results=())

convolve = _operator(
    "convolve",
    "Tensor target, Tensor source, Tensor lambda2, bool train",
    2,
    calls.convolve_forward,
    lambda handle, target, source, lambda2, train: (*like(target), target.new_empty(target.shape if train else 0)),
)
_convolve_backward = _operator(
    "convolve_backward",
    "Tensor lambda2, Tensor slope, Tensor grad",
    3,
    calls.convolve_backward,
    lambda handle, lambda2, slope, grad: (*like(grad), grad.new_empty(handle[1], grad.size(1)), *like(lambda2)),
)
differentiate(convolve, _convolve_backward, keep=(2,), keep_results=(1,))
