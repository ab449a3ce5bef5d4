import pytest
import torch
from graphs import random_edges


@pytest.fixture
def edge_index() -> torch.Tensor:
    return random_edges(12, 12, 40, seed=1)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(12, 5, generator=torch.Generator().manual_seed(2), dtype=torch.double)
