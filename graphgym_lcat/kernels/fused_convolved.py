"""A whole layer of the backend ``'fused'`` after its projection: score, convolution, attention and bias in one autograd function.

On a small graph, the operators of torch around the kernels would take longer than the kernels.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgym_lcat.kernels import calls, calls_gat, calls_gatv2
from graphgym_lcat.kernels.backend import ConvolvedScore, Dropout, Lambda
from graphgym_lcat.kernels.calls import Call
from graphgym_lcat.kernels.compact import CompactLayout
from graphgym_lcat.kernels.derivatives import first_derivative
from graphgym_lcat.kernels.fused_attention import needs_grad, sum_call
from graphgym_lcat.kernels.fused_inputs import padding
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.library import real_dtype
from graphgym_lcat.kernels.threads import limited_threads


def attend_convolved(
    graph: Graph, score: ConvolvedScore, value: Tensor, bias: Tensor | None, dropout: Dropout | None
) -> Tensor:
    """See :meth:`.ConvolvingBackend.attend_convolved`."""
    shared = value is score.key
    dtype = torch.promote_types(score.key.dtype, value.dtype)
    key = score.key.to(dtype)
    value = key if shared else value.to(dtype)
    vectors = tuple(vector.to(real_dtype(dtype)) for vector in score.vectors)
    heads, channels = key.shape[1:]
    more_heads, more_channels = padding(heads, channels)
    if more_heads or more_channels:
        more = (0, more_channels, 0, more_heads)
        key, vectors = F.pad(key, more), tuple(F.pad(vector, more) for vector in vectors)
        value = key if shared else F.pad(value, more)
        bias = None if bias is None else F.pad(bias.view(heads, channels), more).flatten()
    layer = _GATLayer if score.kind == "gat" else _GATv2Layer
    parameters = score.lambda1.parameter, score.lambda2.parameter
    tensors = *parameters, key, None if shared else value, bias, *vectors
    out: Tensor = layer.apply(sum_call(graph, dropout), score, needs_grad(*tensors), *tensors)
    if more_heads or more_channels:
        out = out.view_as(key)[:, :heads, :channels].flatten(1)
    return out


class _GATLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        call: Call,
        score: ConvolvedScore,
        train: bool,
        parameter1: Tensor | None,
        parameter2: Tensor | None,
        key: Tensor,
        value: Tensor | None,
        bias: Tensor | None,
        att_src: Tensor,
        att_dst: Tensor,
    ) -> Tensor:
        layout, (_, heads, channels) = call.layout, key.shape
        threads = calls._threads(layout, heads * channels)
        with limited_threads(threads):
            key, att_dst, att_src = key.contiguous(), att_dst.contiguous(), att_src.contiguous()
            values = key if value is None else value.contiguous()
            lambda1, lambda2 = _numbers(score.lambda1, key), _numbers(score.lambda2, key, copies=2)
            # λ1 multiplies the products, not the scores: these are positively homogeneous.
            products = calls.scores_forward(key, att_dst, att_src, lambda1, threads)
            products, tangent = _convolve(layout, products, score.lambda2, lambda2, train)
            keep = train and values.numel() * values.element_size() <= calls.MAX_KEPT_BYTES
            pair = products[:, :heads], products[:, heads:]
            out, state = calls_gat.forward(call, *pair, values, None, score.negative_slope, keep)
            if train:
                ctx.save_for_backward(key, values, att_dst, att_src, lambda1, lambda2, tangent, *pair, out, *state)
                ctx.call, ctx.threads, ctx.score, ctx.shared = call, threads, score, value is None
            return _finish(out, bias)

    @staticmethod
    @first_derivative
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        key, values, att_dst, att_src, lambda1, lambda2, tangent, query, source, out, *state = ctx.saved_tensors
        call, score, threads = ctx.call, ctx.score, ctx.threads
        with limited_threads(threads):
            grad_sums = grad.to(values.dtype).contiguous()  # a bias may have another type
            grad_query, grad_source, grad_value, _ = calls_gat.backward(
                call, query, source, values, None, score.negative_slope, out, tuple(state), grad_sums
            )
            grad_pair = torch.cat([grad_query, grad_source], dim=1)
            grad_pair, more, grad_lambda2 = _convolve_backward(call.layout, lambda2, tangent, grad_pair)
            grad_key = grad_value if ctx.shared else torch.zeros_like(key)
            grad_dst, grad_src, grad_lambda1 = calls.scores_backward(
                key, att_dst, att_src, lambda1, (grad_pair, more), grad_key, threads
            )
            return (
                *(None, None, None),
                _grad_of_parameter(score.lambda1, grad_lambda1),
                _grad_of_parameter(score.lambda2, grad_lambda2, copies=2),
                *(grad_key, None if ctx.shared else grad_value),
                grad.sum(0) if ctx.needs_input_grad[7] else None,
                *(grad_src, grad_dst),
            )


class _GATv2Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        call: Call,
        score: ConvolvedScore,
        train: bool,
        parameter1: Tensor | None,
        parameter2: Tensor | None,
        key: Tensor,
        value: Tensor | None,
        bias: Tensor | None,
        att: Tensor,
    ) -> Tensor:
        layout, (_, heads, channels) = call.layout, key.shape
        threads = calls._threads(layout, heads * channels)
        with limited_threads(threads):
            key, att = key.contiguous(), att.contiguous()
            values = key if value is None else value.contiguous()
            lambda1, lambda2 = _numbers(score.lambda1, key).unsqueeze(-1), _numbers(score.lambda2, key)
            scaled = att * lambda1
            features, tangent = _convolve(layout, key.flatten(1), score.lambda2, lambda2, train)
            features = features.view_as(key)
            out, *state = calls_gatv2.forward(call, features, features, values, scaled, None, score.negative_slope)
            if train:
                ctx.save_for_backward(values, att, lambda1, lambda2, scaled, tangent, features, out, *state)
                ctx.call, ctx.threads, ctx.score, ctx.shared = call, threads, score, value is None
            return _finish(out, bias)

    @staticmethod
    @first_derivative
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        values, att, lambda1, lambda2, scaled, tangent, features, out, shift, scale = ctx.saved_tensors
        call, score = ctx.call, ctx.score
        with limited_threads(ctx.threads):
            grad_sums = grad.to(values.dtype).contiguous()  # a bias may have another type
            if call.layout.symmetric:
                grad_features, grad_value, grad_scaled = calls_gatv2.backward_symmetric(
                    call, features, values, scaled, score.negative_slope, out, shift, scale, grad_sums
                )
            else:
                inputs = features, features, values, scaled, None, score.negative_slope, out, shift, scale, grad_sums
                grads = cast("tuple[Tensor, ...]", calls_gatv2.backward(call, *inputs))
                grad_query, grad_features, grad_value, grad_scaled = grads[:4]
                grad_features.add_(grad_query)
            grad_key, more, grad_lambda2 = _convolve_backward(call.layout, lambda2, tangent, grad_features.flatten(1))
            grad_key = (grad_key if more is None else grad_key.add_(more)).view_as(grad_value)
            return (
                *(None, None, None),
                _grad_of_parameter(score.lambda1, (grad_scaled * att).sum_to_size(1, *lambda1.shape).view(-1)),
                _grad_of_parameter(score.lambda2, grad_lambda2),
                *((grad_key.add_(grad_value), None) if ctx.shared else (grad_key, grad_value)),
                grad.sum(0) if ctx.needs_input_grad[7] else None,
                grad_scaled * lambda1,
            )


def _numbers(value: Lambda, like: Tensor, copies: int = 1) -> Tensor:
    """λ as a tensor: one number, or one per head ``like`` has, also for those that were added to fill vectors."""
    numbers = value.values
    if len(numbers) > 1:
        numbers = (numbers + (0.0,) * (like.size(1) - len(numbers))) * copies
    return like.new_tensor(numbers, dtype=real_dtype(like.dtype))


def _grad_of_parameter(value: Lambda, grad: Tensor | None, copies: int = 1) -> Tensor | None:
    """The gradient of the parameter behind a λ, from that of :func:`_numbers`."""
    if value.parameter is None or grad is None:
        return None
    if len(value.values) == 1:
        return grad * value.derivatives[0]
    return grad.view(copies, -1).sum(0)[: len(value.values)] * grad.new_tensor(value.derivatives)


def _convolve(
    layout: CompactLayout, features: Tensor, lambda2: Lambda, numbers: Tensor, train: bool
) -> tuple[Tensor, Tensor | None]:
    """The convolved features, and what the backward pass needs; None if λ2 is 0 forever."""
    if lambda2.parameter is None and lambda2.values == (0.0,):
        return features, None
    return calls.convolve_forward(layout, features, features, numbers, train and lambda2.parameter is not None)


def _convolve_backward(
    layout: CompactLayout, numbers: Tensor, tangent: Tensor | None, grad: Tensor
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Gradients of the features, in two parts, and of the numbers."""
    return (grad, None, None) if tangent is None else calls.convolve_backward(layout, numbers, tangent, grad)


def _finish(out: Tensor, bias: Tensor | None) -> Tensor:
    """``[nodes, H * C]``, in memory of its own: users may change the result in place."""
    return out.flatten(1).clone() if bias is None else out.flatten(1) + bias
