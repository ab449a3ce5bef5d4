"""Statistics of messages, which PNA aggregates: the C functions, their derivatives and operators.

A message is ``weight_ij (receiver_i + sender_j)``. The weights ``[E, H]`` have the order of the fused layout: by destination, then
by source (:attr:`.CompactLayout.col`). No tensor grows with edges times channels.

:mod:`graphgym_lcat.kernels.fused` calls this with tensors that the kernels support: the channels of a head are a multiple of 8.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import CustomOpDef

from graphgym_lcat.kernels import ops
from graphgym_lcat.kernels.backend import STATISTICS
from graphgym_lcat.kernels.calls import _call, _threads
from graphgym_lcat.kernels.compact import CompactLayout
from graphgym_lcat.kernels.derivatives import first_derivative

MAX_EDGES = 2**31 - 1

State = tuple[Tensor, Tensor]


def forward(
    layout: CompactLayout,
    kinds: tuple[int, ...],
    train: bool,
    receiver: Tensor,
    sender: Tensor,
    weight: Tensor | None = None,
) -> tuple[Tensor, State]:
    """The statistics ``[num_dst, len(kinds) * F]``, and with ``train`` what the backward pass needs (else empty tensors)."""
    heads = 1 if weight is None else weight.size(1)
    width = sender.size(1)
    out = sender.new_empty(layout.num_dst, len(kinds) * width)
    size = (layout.num_dst, 2 * width) if train else (0,)
    state, places = sender.new_empty(size), sender.new_empty(size, dtype=torch.int32)
    _call(
        "pna_forward",
        sender,
        *layout.by_row,
        heads,
        width // heads,
        receiver.data_ptr(),
        sender.data_ptr(),
        0 if weight is None else weight.data_ptr(),
        len(kinds),
        ctypes.addressof(_places_of(kinds)),
        out.data_ptr(),
        state.data_ptr() if train else 0,
        places.data_ptr() if train else 0,
        _threads(layout, width),
    )
    return out, (state, places)


def backward(
    layout: CompactLayout,
    kinds: tuple[int, ...],
    state: State,
    grad: Tensor,
    receiver: Tensor,
    sender: Tensor,
    weight: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Gradients of receiver, sender and, if there is one, weight."""
    heads = 1 if weight is None else weight.size(1)
    width = sender.size(1)
    grads = [torch.empty_like(receiver), torch.empty_like(sender)]
    if weight is not None:
        grads.append(torch.empty_like(weight))
    _call(
        "pna_backward",
        sender,
        *layout.by_row,
        *layout.by_col,
        0 if weight is None else layout.slots.data_ptr(),
        heads,
        width // heads,
        receiver.data_ptr(),
        sender.data_ptr(),
        0 if weight is None else weight.data_ptr(),
        len(kinds),
        ctypes.addressof(_places_of(kinds)),
        *(part.data_ptr() for part in state),
        grad.data_ptr(),
        grads[0].data_ptr(),
        grads[1].data_ptr(),
        0 if weight is None else grads[2].data_ptr(),
        _threads(layout, width),
    )
    return tuple(grads)


@functools.cache
def _places_of(kinds: tuple[int, ...]) -> ctypes.Array[ctypes.c_int64]:
    """Where each statistic stands among those that are asked for; −1 for the others."""
    return (ctypes.c_int64 * len(STATISTICS))(*(kinds.index(k) if k in kinds else -1 for k in range(len(STATISTICS))))


class Statistics(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layout: CompactLayout, kinds: tuple[int, ...], *inputs: Tensor) -> Tensor:
        ctx.layout, ctx.kinds = layout, kinds
        inputs = tuple(part.contiguous() for part in inputs)
        out, state = forward(layout, kinds, True, *inputs)
        ctx.save_for_backward(*state, *inputs)
        return out

    @staticmethod
    @first_derivative
    def backward(ctx, grad: Tensor):
        state, places, *inputs = ctx.saved_tensors
        return None, None, *backward(ctx.layout, ctx.kinds, (state, places), grad.contiguous(), *inputs)


def _fake_statistics(
    handle: ops.Handle, receiver: Tensor, sender: Tensor, *others: Any
) -> tuple[Tensor, Tensor, Tensor]:
    num_dst, width, kinds = handle[2], sender.size(1), others[-1]
    kept = sender.new_empty(num_dst, 2 * width)
    return sender.new_empty(num_dst, len(kinds) * width), kept, torch.empty_like(kept, dtype=torch.int32)


def _statistics_operator(name: str, inputs: str, count: int) -> CustomOpDef:
    """The operator ``lcat::name`` for ``count`` tensors ``inputs``, with its derivative."""

    def compute(layout: CompactLayout, *arguments: Any) -> tuple[Tensor, ...]:
        out, state = forward(layout, tuple(arguments[-1]), True, *arguments[:-1])
        return out, *state

    def compute_backward(layout: CompactLayout, *arguments: Any) -> tuple[Tensor, ...]:
        tensors, (kinds, state, places, grad) = arguments[:count], arguments[count:]
        return backward(layout, tuple(kinds), (state, places), grad, *tensors)

    operator = ops._operator(name, f"{inputs}, int[] kinds", 3, compute, _fake_statistics)
    derivative = ops._operator(
        f"{name}_backward",
        f"{inputs}, int[] kinds, Tensor state, Tensor places, Tensor grad",
        count,
        compute_backward,
        lambda handle, *arguments: ops.like(*arguments[:count]),
    )
    ops.differentiate(operator, derivative, keep=range(count + 1), keep_results=(1, 2))
    return operator


plain_operator = _statistics_operator("message_statistics", "Tensor receiver, Tensor sender", 2)
weighted_operator = _statistics_operator(
    "weighted_message_statistics", "Tensor receiver, Tensor sender, Tensor weight", 3
)
