"""A linear layer for inputs that are mostly zero, such as bags of words."""

from __future__ import annotations

import warnings
import weakref

import torch
from torch import Tensor


class _SparseProduct(torch.autograd.Function):
    """``x @ weightᵀ`` for a constant CSR ``x`` with a given transpose: both passes are a CSR product."""

    @staticmethod
    def forward(ctx, x: Tensor, x_transposed: Tensor, weight: Tensor) -> Tensor:
        ctx.x_transposed = x_transposed
        return x @ weight.t().contiguous()

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[None, None, Tensor | None]:
        if not ctx.needs_input_grad[2]:
            return None, None, None
        return None, None, (ctx.x_transposed @ grad_output.contiguous()).t()


class SparseLinear(torch.nn.Linear):
    """:class:`torch.nn.Linear` whose input may also be a ``torch.sparse_csr`` matrix.

    Parameters, initial values and results for dense inputs are those of ``Linear``. A CSR input counts as
    constant: it gets no gradient. Its transpose, which the backward pass needs, is computed in the first
    forward pass and kept as long as the same tensor is passed.

    Shapes:
        - **input:** :math:`(N, F_{in})`, strided or CSR
        - **output:** :math:`(N, F_{out})`
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self._transposed: tuple[weakref.ref, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if x.layout == torch.strided:
            return super().forward(x)
        if x.layout != torch.sparse_csr or x.dim() != 2 or x.size(1) != self.in_features:
            raise ValueError(
                f"SparseLinear expects a dense or CSR input with {self.in_features} columns, "
                f"got {x.layout} of shape {tuple(x.shape)}"
            )
        out = _SparseProduct.apply(x, self._transpose(x), self.weight)
        return out if self.bias is None else out + self.bias

    def _transpose(self, x: Tensor) -> Tensor:
        if self._transposed is None or self._transposed[0]() is not x:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*tensor support is in beta state.*")
                self._transposed = (weakref.ref(x), x.detach().t().to_sparse_csr())
        return self._transposed[1]

    def __getstate__(self) -> dict:
        # A weak reference can be neither copied nor pickled. The transpose is computed again when needed.
        return {**self.__dict__, "_transposed": None}
