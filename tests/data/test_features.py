from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from graphgym_lcat.data.features import row_normalize, sparse_features


def bag_of_words(rows: int = 40, columns: int = 60, density: float = 0.05) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(rows, columns, generator=generator) * 3
    return x * (torch.rand(rows, columns, generator=generator) < density)


def test_a_sparse_matrix_has_the_values_of_the_dense_one():
    x = bag_of_words()
    assert sparse_features(x).layout == torch.sparse_csr
    assert torch.equal(sparse_features(x).to_dense(), x)


def test_dense_features_stay_dense():
    x = torch.randn(5, 4)
    assert sparse_features(x) is x


@pytest.mark.parametrize("as_stored", [torch.Tensor.clone, sparse_features])
def test_row_normalisation_is_that_of_pyg(as_stored):
    x = bag_of_words()
    expected = NormalizeFeatures()(Data(x=x.clone())).x
    ours = row_normalize(as_stored(x))
    assert torch.allclose(ours.to_dense() if ours.layout != torch.strided else ours, expected)


def test_row_normalisation_of_negative_features_is_that_of_pyg():
    x = bag_of_words() * -1
    expected = NormalizeFeatures()(Data(x=x.clone())).x
    assert torch.allclose(row_normalize(sparse_features(x)), expected)
