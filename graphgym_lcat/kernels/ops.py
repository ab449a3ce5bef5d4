"""The fused kernels as torch operators, for ``torch.compile`` and ``torch.export``.

A compiled program cannot hold a graph's layout, so the operators take its handle: ``edge_index``, the numbers of nodes
and how self-loops are treated. When they run they find the layout where eager code finds it, in the cache. Eager code
itself calls the kernels directly, which takes a fraction of the time that an operator needs to be dispatched.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.library import custom_op

from graphgym_lcat.kernels import calls
from graphgym_lcat.kernels.graph import Graph

Handle = tuple[Tensor, int, int, bool, bool]


def handle(graph: Graph) -> Handle:
    """The first arguments of every operator."""
    return graph.edge_index, graph.num_src, graph.num_dst, graph.add_self_loops, graph.shared_nodes


def _layout(*parts):
    from graphgym_lcat.kernels.cache import find_graph

    return find_graph(*parts).compact


@custom_op("lcat::neighbor_mean", mutates_args=(), device_types="cpu")
def neighbor_mean(
    edge_index: Tensor, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool, value: Tensor
) -> Tensor:
    layout = _layout(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
    return calls.mean_forward(layout, value.contiguous())


@neighbor_mean.register_fake
def _(edge_index, num_src, num_dst, add_self_loops, shared_nodes, value):
    return value.new_empty(num_dst, value.size(1))


@custom_op("lcat::neighbor_mean_backward", mutates_args=(), device_types="cpu")
def neighbor_mean_backward(
    edge_index: Tensor, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool, grad: Tensor
) -> Tensor:
    layout = _layout(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
    return calls.mean_backward(layout, grad.contiguous())


@neighbor_mean_backward.register_fake
def _(edge_index, num_src, num_dst, add_self_loops, shared_nodes, grad):
    return grad.new_empty(num_src, grad.size(1))


def _mean_setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.sizes = inputs[1:5]


def _mean_backward(ctx, grad):
    return None, None, None, None, None, neighbor_mean_backward(*ctx.saved_tensors, *ctx.sizes, grad)


neighbor_mean.register_autograd(_mean_backward, setup_context=_mean_setup)


@custom_op("lcat::convolve", mutates_args=(), device_types="cpu")
def convolve(
    edge_index: Tensor,
    num_src: int,
    num_dst: int,
    add_self_loops: bool,
    shared_nodes: bool,
    target: Tensor,
    source: Tensor,
    lambda2: Tensor,
    train: bool,
) -> tuple[Tensor, Tensor]:
    layout = _layout(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
    return calls.convolve_forward(layout, *(t.contiguous() for t in (target, source, lambda2)), train)


@convolve.register_fake
def _(edge_index, num_src, num_dst, add_self_loops, shared_nodes, target, source, lambda2, train):
    return target.new_empty(target.shape), target.new_empty(target.shape if train else 0)


@custom_op("lcat::convolve_backward", mutates_args=(), device_types="cpu")
def convolve_backward(
    edge_index: Tensor,
    num_src: int,
    num_dst: int,
    add_self_loops: bool,
    shared_nodes: bool,
    lambda2: Tensor,
    slope: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    layout = _layout(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
    return calls.convolve_backward(layout, *(t.contiguous() for t in (lambda2, slope, grad)))


@convolve_backward.register_fake
def _(edge_index, num_src, num_dst, add_self_loops, shared_nodes, lambda2, slope, grad):
    return grad.new_empty(grad.shape), grad.new_empty(num_src, grad.size(1)), lambda2.new_empty(lambda2.shape)


def _convolve_setup(ctx, inputs, output):
    edge_index, *sizes, _, _, lambda2, _ = inputs
    ctx.save_for_backward(edge_index, lambda2, output[1])
    ctx.sizes = sizes


def _convolve_backward(ctx, grad, _):
    edge_index, lambda2, slope = ctx.saved_tensors
    grads = convolve_backward(edge_index, *ctx.sizes, lambda2, slope, grad)
    return None, None, None, None, None, *grads, None


convolve.register_autograd(_convolve_backward, setup_context=_convolve_setup)


@custom_op("lcat::attend_gat", mutates_args=(), device_types="cpu")
def attend_gat(
    edge_index: Tensor,
    num_src: int,
    num_dst: int,
    add_self_loops: bool,
    shared_nodes: bool,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    slope: float,
    train: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    layout = _layout(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
    inputs = (t.contiguous() for t in (query, key, value))
    out, state = calls.gat_forward(layout, *inputs, slope, train)
    return out, *state


@attend_gat.register_fake
def _(edge_index, num_src, num_dst, add_self_loops, shared_nodes, query, key, value, slope, train):
    _, heads, channels = value.shape
    per_head = [value.new_empty(num_dst, heads) for _ in range(3)]
    out = value.new_empty(num_dst, heads, channels)
    if not train:
        return out, *per_head[:2], value.new_empty(0), value.new_empty(0)
    return out, *per_head[:2], torch.empty_like(out), per_head[2]


@custom_op("lcat::attend_gat_backward", mutates_args=(), device_types="cpu")
def attend_gat_backward(
    edge_index: Tensor,
    num_src: int,
    num_dst: int,
    add_self_loops: bool,
    shared_nodes: bool,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    slope: float,
    out: Tensor,
    shift: Tensor,
    scale: Tensor,
    positive_out: Tensor,
    positive_sum: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    layout = _layout(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
    inputs = (t.contiguous() for t in (query, key, value))
    state = tuple(t.contiguous() for t in (shift, scale, positive_out, positive_sum))
    return calls.gat_backward(layout, *inputs, slope, out.contiguous(), state, grad.contiguous())


@attend_gat_backward.register_fake
def _(edge_index, num_src, num_dst, add_self_loops, shared_nodes, query, key, value, *rest):
    return query.new_empty(query.shape), key.new_empty(key.shape), value.new_empty(value.shape)


def _gat_setup(ctx, inputs, output):
    edge_index, *sizes, query, key, value, slope, _ = inputs
    ctx.save_for_backward(edge_index, query, key, value, *output)
    ctx.sizes, ctx.slope = sizes, slope


def _gat_backward(ctx, grad, *of_state):
    edge_index, query, key, value, *output = ctx.saved_tensors
    grads = attend_gat_backward(edge_index, *ctx.sizes, query, key, value, ctx.slope, *output, grad)
    return None, None, None, None, None, *grads, None, None


attend_gat.register_autograd(_gat_backward, setup_context=_gat_setup)


@custom_op("lcat::attend_gatv2", mutates_args=(), device_types="cpu")
def attend_gatv2(
    edge_index: Tensor,
    num_src: int,
    num_dst: int,
    add_self_loops: bool,
    shared_nodes: bool,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    att: Tensor,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    layout = _layout(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
    return calls.gatv2_forward(layout, *(t.contiguous() for t in (query, key, value, att)), slope)


@attend_gatv2.register_fake
def _(edge_index, num_src, num_dst, add_self_loops, shared_nodes, query, key, value, att, slope):
    _, heads, channels = value.shape
    out = value.new_empty(num_dst, heads, channels)
    return out, value.new_empty(num_dst, heads), value.new_empty(num_dst, heads)


@custom_op("lcat::attend_gatv2_backward", mutates_args=(), device_types="cpu")
def attend_gatv2_backward(
    edge_index: Tensor,
    num_src: int,
    num_dst: int,
    add_self_loops: bool,
    shared_nodes: bool,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    att: Tensor,
    slope: float,
    out: Tensor,
    shift: Tensor,
    scale: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    layout = _layout(edge_index, num_src, num_dst, add_self_loops, shared_nodes)
    inputs = (t.contiguous() for t in (query, key, value, att))
    return calls.gatv2_backward(layout, *inputs, slope, *(t.contiguous() for t in (out, shift, scale, grad)))


@attend_gatv2_backward.register_fake
def _(edge_index, num_src, num_dst, add_self_loops, shared_nodes, query, key, value, att, *rest):
    return tuple(t.new_empty(t.shape) for t in (query, key, value, att))


def _gatv2_setup(ctx, inputs, output):
    edge_index, *sizes, query, key, value, att, slope = inputs
    ctx.save_for_backward(edge_index, query, key, value, att, *output)
    ctx.sizes, ctx.slope = sizes, slope


def _gatv2_backward(ctx, grad, *of_state):
    edge_index, query, key, value, att, *output = ctx.saved_tensors
    grads = attend_gatv2_backward(edge_index, *ctx.sizes, query, key, value, att, ctx.slope, *output, grad)
    return None, None, None, None, None, *grads, None


attend_gatv2.register_autograd(_gatv2_backward, setup_context=_gatv2_setup)
