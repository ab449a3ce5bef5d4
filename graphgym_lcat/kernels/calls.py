"""The C functions as functions of tensors: allocates the results and passes addresses.

All tensors are on the CPU and contiguous; for query and key of GAT it is enough that each row is. Rows of features of nodes or
edges have one dtype. λ, GAT's query, key and term, GATv2's att and the projection of edge features have the dtype of its sums
(:func:`.library.real_dtype`), and so has the state of the softmax. Tensors over edges have one row per edge of the input, then one
per added self-loop; edges that the layout does not hold have zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from graphgym_lcat.kernels import library
from graphgym_lcat.kernels.compact import CompactLayout
from graphgym_lcat.kernels.edge_numbers import EdgeNumbers
from graphgym_lcat.kernels.threads import threads_for

# If its output has more bytes than this, GAT's forward pass keeps no second tensor of that size for the backward pass. Forward and
# backward pass together then take about 20 % longer with 128 columns, and 45 % longer with 32.
MAX_KEPT_BYTES = 1 << 28

_NO_NUMBERS = (0, 0, 0)


class Call(NamedTuple):
    """What every kernel of attention is called with.

    Attributes:
        layout: The layout of the graph.
        numbers: The numbers of its edges; None if neither dropout nor tensors over edges need them.
        seed, probability: Of dropout.
    """

    layout: CompactLayout
    numbers: EdgeNumbers | None = None
    seed: int = 0
    probability: float = 0.0

    @property
    def by_row(self) -> tuple[int | float, ...]:
        """The first arguments of kernels that walk over rows."""
        return (*self.layout.by_row, self.layout.self_loops, *self._extras)

    @property
    def both(self) -> tuple[int | float, ...]:
        """Those of kernels that walk over rows and columns."""
        return (*self.layout.by_row, *self.layout.by_col, self.layout.self_loops, *self._extras)

    @property
    def _extras(self) -> tuple[int | float, ...]:
        return (*(_NO_NUMBERS if self.numbers is None else self.numbers.pointers), self.seed, self.probability)

    @property
    def edge_numbers(self) -> EdgeNumbers:
        """The numbers of the edges of a call that needs them."""
        assert self.numbers is not None
        return self.numbers

    def new_edges(self, like: Tensor, width: int) -> Tensor:
        """A tensor over edges, in which only the kernel's rows are missing."""
        create = torch.empty if self.edge_numbers.complete else torch.zeros
        return create(self.edge_numbers.edges + self.layout.self_loops, width, dtype=like.dtype)


def _threads(layout: CompactLayout, width: int) -> int:
    return threads_for((layout.num_edges + layout.num_dst) * width)


def _call(name: str, tensor: Tensor, *arguments: int | float) -> None:
    library.loaded().call(name, tensor.dtype, *arguments)


def pointer(tensor: Tensor | None) -> int:
    """Returns the address of a tensor; 0 stands for none."""
    return 0 if tensor is None else tensor.data_ptr()


def mean_forward(layout: CompactLayout, value: Tensor) -> Tensor:
    width = value.size(1)
    out = value.new_empty(layout.num_dst, width)
    _call(
        "mean_forward",
        value,
        *layout.by_row,
        layout.self_loops,
        value.data_ptr(),
        width,
        out.data_ptr(),
        _threads(layout, width),
    )
    return out


def mean_backward(layout: CompactLayout, grad: Tensor) -> Tensor:
    width = grad.size(1)
    grad_value = grad.new_empty(layout.num_src, width)
    scale = grad.new_empty(layout.num_dst, dtype=library.real_dtype(grad.dtype))
    _call(
        "mean_backward",
        grad,
        *layout.by_row[:2],
        *layout.by_col,
        layout.self_loops,
        grad.data_ptr(),
        width,
        scale.data_ptr(),
        grad_value.data_ptr(),
        _threads(layout, width),
    )
    return grad_value


def convolve_forward(
    layout: CompactLayout, target: Tensor, source: Tensor, lambda2: Tensor, train: bool
) -> tuple[Tensor, Tensor]:
    """The convolved features, and with ``train`` what the gradient of lambda2 needs (otherwise an empty tensor)."""
    width = source.size(1)
    out = torch.empty_like(target)
    slope = torch.empty_like(target) if train else target.new_empty(0)
    _call(
        "convolve_forward",
        source,
        *layout.by_row,
        layout.loops_ptr,
        target.data_ptr(),
        source.data_ptr(),
        width,
        lambda2.data_ptr(),
        lambda2.numel(),
        out.data_ptr(),
        slope.data_ptr() if train else 0,
        _threads(layout, width),
    )
    return out, slope


def convolve_backward(
    layout: CompactLayout, lambda2: Tensor, slope: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of target, source and lambda2 (0 if there is no slope)."""
    width = grad.size(1)
    grads = torch.empty_like(grad), grad.new_empty(layout.num_src, width), torch.zeros_like(lambda2)
    _call(
        "convolve_backward",
        grad,
        *layout.by_row[:2],
        *layout.by_col,
        layout.loops_ptr,
        slope.data_ptr() if slope.numel() else 0,
        grad.data_ptr(),
        width,
        lambda2.data_ptr(),
        lambda2.numel(),
        *(g.data_ptr() for g in grads),
        _threads(layout, width),
    )
    return grads


def scores_forward(features: Tensor, att_dst: Tensor, att_src: Tensor, lambda1: Tensor, threads: int) -> Tensor:
    """Products ``[nodes, 2 * H]`` of features ``[nodes, H, C]`` with attention vectors, times λ1 (``[1]`` or ``[H]``)."""
    products = att_dst.new_empty(features.size(0), 2 * features.size(1))
    _call(
        "scores_forward",
        features,
        *features.shape,
        *(t.data_ptr() for t in (features, att_dst, att_src, lambda1)),
        lambda1.numel(),
        products.data_ptr(),
        threads,
    )
    return products


def scores_backward(
    features: Tensor,
    att_dst: Tensor,
    att_src: Tensor,
    lambda1: Tensor,
    grads: tuple[Tensor, Tensor | None],
    grad_features: Tensor,
    threads: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Adds the gradient of the features to ``grad_features``; returns those of both vectors and of lambda1.

    The gradient of the products is the sum of ``grads``.
    """
    results = torch.empty_like(att_dst), torch.empty_like(att_src), torch.empty_like(lambda1)
    _call(
        "scores_backward",
        features,
        *features.shape,
        *(t.data_ptr() for t in (features, att_dst, att_src, lambda1)),
        lambda1.numel(),
        *(0 if t is None else t.data_ptr() for t in grads),
        *(t.data_ptr() for t in (grad_features, *results)),
        threads,
    )
    return results


def fill_loops(call: Call, rows: Tensor, loops: Tensor, mean: bool) -> None:
    """Writes the mean or the sum of the rows of a node's in-edges to that of its self-loop."""
    _fill_loops("fill_loops_forward", call, rows, loops, mean)


def fill_loops_backward(call: Call, grad_loops: Tensor, grad_rows: Tensor, mean: bool) -> None:
    """Adds the gradients of the self-loops to those of the in-edges."""
    _fill_loops("fill_loops_backward", call, grad_loops, grad_rows, mean)


def _fill_loops(name: str, call: Call, given: Tensor, changed: Tensor, mean: bool) -> None:
    layout, width = call.layout, given.size(1)
    _call(
        name,
        given,
        layout.rowptr.data_ptr(),
        layout.self_loops,
        call.edge_numbers.by_row.data_ptr(),
        int(mean),
        width,
        given.data_ptr(),
        changed.data_ptr(),
        _threads(layout, width),
    )
