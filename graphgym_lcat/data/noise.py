"""Noise: Gaussian noise on the features of a graph, and fake edges.

The noise depends only on the graph, the level and the seed, never on a global random state, so models with the same seed see the
same noise. One seed draws the same directions at every level, so that levels differ only in size.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from lcat_core.errors import DatasetError

# Separate streams of one seed. NumPy guarantees that RandomState never changes what it draws.
_FEATURE_STREAM = 1
_EDGE_STREAM = 2


def disturb(data: Data | HeteroData, *, features: float = 0.0, edges: float = 0.0, seed: int = 0) -> Data | HeteroData:
    """Return a shallow copy of ``data`` with noise on its features and fake edges; at level 0 it shares the tensors of ``data``.

    Args:
        data: An undirected graph.
        features: σ of the noise that is added to every entry of ``x``; sparse features become dense.
        edges: p; ``round(p · |E|)`` fake edges are added, where |E| is the number of undirected edges without self-loops.
        seed: Seed of both kinds of noise.
    """
    for name, level in (("features", features), ("edges", edges)):
        if not (math.isfinite(level) and level >= 0):
            raise DatasetError(f"noise of {name}: expected a number of at least 0, got {level}")
    data = data.__copy__()
    if (features or edges) and isinstance(data, HeteroData):
        raise DatasetError("noise needs a graph with one type of nodes, and this one has several")
    if features:
        data.x = noisy_features(data.x, features, seed)
    if edges:
        _refuse_edge_features(data)
        data.edge_index = with_fake_edges(data.edge_index, data.num_nodes, edges, seed)
    return data


def noisy_features(x: Tensor, sigma: float, seed: int = 0) -> Tensor:
    """Return ``x + σ z`` with standard normal ``z``, dense."""
    dense = x if x.layout == torch.strided else x.to_dense()
    generator = np.random.RandomState([seed, _FEATURE_STREAM])
    noise = torch.from_numpy(generator.standard_normal(tuple(dense.shape))).to(dense.dtype)
    return dense + sigma * noise


def with_fake_edges(edge_index: Tensor, num_nodes: int, p: float, seed: int = 0) -> Tensor:
    """Append both directions of ``round(p · |E|)`` distinct random pairs that are neither edges nor self-loops."""
    low, high = edge_index.sort(dim=0).values.numpy()
    present = np.unique((low.astype(np.int64) * num_nodes + high)[low != high])
    wanted = round(p * len(present))
    available = num_nodes * (num_nodes - 1) // 2 - len(present)
    if wanted > available:
        raise DatasetError(
            f"noise of edges: p = {p} needs {wanted} fake edges, but only {available} pairs of nodes have no edge"
        )
    fake = _absent_pairs(present, num_nodes, wanted, np.random.RandomState([seed, _EDGE_STREAM]))
    pairs = torch.from_numpy(np.stack(np.divmod(fake, num_nodes)))
    return torch.cat([edge_index, pairs, pairs.flip(0)], dim=1)


def _absent_pairs(present: np.ndarray, num_nodes: int, wanted: int, generator: np.random.RandomState) -> np.ndarray:
    """Draw ``wanted`` keys u · num_nodes + v with u < v, uniformly from those that are not in the sorted ``present``."""
    chosen = np.empty(0, dtype=np.int64)
    draws = len(present) + 1024  # independent of p, so that every higher level begins with the same pairs
    while len(chosen) < wanted:
        u, v = np.sort(generator.randint(num_nodes, size=(draws, 2), dtype=np.int64), axis=1).T
        keys = (u * num_nodes + v)[u != v]
        if len(present):
            place = np.minimum(np.searchsorted(present, keys), len(present) - 1)
            keys = keys[present[place] != keys]
        candidates = np.concatenate([chosen, keys])
        _, first = np.unique(candidates, return_index=True)
        chosen = candidates[np.sort(first)]
    return chosen[:wanted]


def _refuse_edge_features(data: Data) -> None:
    if data.get("edge_attr") is not None:
        raise DatasetError("noise of edges: fake edges have no features, but the edges of this graph have `edge_attr`")
