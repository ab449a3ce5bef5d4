"""Node features: bag-of-words matrices are kept as CSR, since almost all of their entries are zero."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

#: Features with at most this share of nonzero entries are kept sparse. Measured on a first layer of 32
#: columns, forward and backward: at 10 % (PubMed) CSR is twice as fast as dense, at 35 % (Amazon) equal.
MAX_SPARSE_DENSITY = 0.15


def csr_matrix(crow: Tensor, col: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    """A checked ``torch.sparse_csr`` matrix, without the notice that PyTorch prints for every first one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Sparse CSR tensor support is in beta state.*")
        # MKL's products are fastest, and the matrix smallest, with 32-bit indices.
        index_type = torch.int32 if max(*size, values.numel()) < 2**31 else torch.int64
        return torch.sparse_csr_tensor(crow.to(index_type), col.to(index_type), values, size, check_invariants=True)


def sparse_features(x: Tensor) -> Tensor:
    """``x`` as CSR when few enough of its entries are nonzero, otherwise ``x`` itself."""
    if x.layout != torch.strided or x.dim() != 2 or x.numel() == 0:
        return x
    if torch.count_nonzero(x).item() > MAX_SPARSE_DENSITY * x.numel():
        return x
    row, col = x.nonzero(as_tuple=True)
    crow = torch.zeros(x.size(0) + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(row, minlength=x.size(0)), 0, out=crow[1:])
    return csr_matrix(crow, col, x[row, col], tuple(x.shape))


def row_normalize(x: Tensor) -> Tensor:
    """Rows scaled to sum 1, as PyG's ``NormalizeFeatures``: shifted to be non-negative, sums below 1 left."""
    if x.layout == torch.strided:
        x = x - x.min() if x.numel() else x
        return x / x.sum(dim=-1, keepdim=True).clamp(min=1.0)
    if x.values().numel() and x.values().min() < 0:  # the shift would fill the matrix
        return row_normalize(x.to_dense())
    counts = x.crow_indices().diff().long()
    rows = torch.repeat_interleave(torch.arange(x.size(0)), counts)
    sums = x.values().new_zeros(x.size(0)).index_add_(0, rows, x.values()).clamp_(min=1.0)
    return csr_matrix(x.crow_indices(), x.col_indices(), x.values() / sums[rows], tuple(x.shape))
