"""Derivatives of kernels, and when to do without kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch._C import _vmapmode_decrement_nesting, _vmapmode_increment_nesting
from torch._C._functorch import is_legacy_batchedtensor, peek_interpreter_stack
from torch.autograd.function import once_differentiable


def in_transform() -> bool:
    """Whether ``torch.func``, forward-mode derivatives or the export to ONNX look at the operations: they need those of torch."""
    if torch.compiler.is_compiling():
        return torch.onnx.is_in_onnx_export()
    return peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0


def first_derivative(backward: Callable) -> Callable:
    """A decorator for ``backward`` of a ``torch.autograd.Function`` that calls kernels, with the gradient of one output.

    There are no second derivatives. Of a batch of gradients (``torch.autograd.grad(…, is_grads_batched=True)``, and so
    ``jacobian(…, vectorize=True)``), each is computed in turn.
    """
    backward = once_differentiable(backward)

    @functools.wraps(backward)
    def compute(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _one_by_one(backward, ctx, grad) if is_legacy_batchedtensor(grad) else backward(ctx, grad)

    return compute


def _one_by_one(backward: Callable, ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
    level = _vmapmode_increment_nesting() - 1
    _vmapmode_decrement_nesting()
    grads = torch._remove_batch_dim(grad, level, 0, 0)  # it knows its number of rows itself
    results = [backward(ctx, row) for row in grads]
    return tuple(
        None if parts[0] is None else torch._add_batch_dim(torch.stack(parts), 0, level)
        for parts in zip(*results, strict=True)
    )
