"""A small dataset on disk in the layout of PyG's `Twitch`: file handling can be tested without real data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


def _write(folder: Path, nodes: int = 20, shift: float = 0.0) -> None:
    """A ring of ``nodes`` nodes, each edge in one direction only, and one self-loop, twice."""
    raw = folder / "TwitchEN" / "EN" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    features = np.random.default_rng(0).standard_normal((nodes, 6)).astype(np.float32) + np.float32(shift)
    ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes], axis=1)
    edges = np.concatenate([ring, [[3, 3], [3, 3]]])
    np.savez(raw / "EN.npz", features=features, target=np.arange(nodes) % 2, edges=edges)


@pytest.fixture
def write_twitch() -> Callable[..., None]:
    return _write


@pytest.fixture
def twitch_dir(tmp_path) -> Path:
    _write(tmp_path)
    return tmp_path
