import pytest
import torch

from graphgym_lcat.kernels.triton import backend


@pytest.fixture(autouse=True)
def need_triton():
    if backend.UNAVAILABLE is not None:
        pytest.skip(f"{backend.UNAVAILABLE}: pip install -r requirements-triton.txt")


@pytest.fixture
def device():
    """A GPU if there is one, else the CPU, on which Triton interprets the kernels."""
    return torch.device("cpu" if backend.INTERPRETED else "cuda")


@pytest.fixture
def short_chunks(monkeypatch):
    """Rows of more than 4 edges are long, so that graphs stay tiny: the interpreter takes a millisecond per program."""
    from graphgym_lcat.kernels.triton import layout

    monkeypatch.setattr(layout, "CHUNK", 4)
