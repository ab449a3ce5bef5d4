"""Disturbed copies of a graph: Gaussian noise on the features, and edges that were never there.

What is added depends only on the graph, the level and the seed, never on a global random state, so models with equal seeds see
equal noise; and one seed draws the same directions at every level, so that levels differ by their size alone.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from graphgym_lcat.data.errors import DatasetError

# Separate streams of one seed. NumPy promises never to change what RandomState draws.
_FEATURE_STREAM = 1
_EDGE_STREAM = 2


def disturb(data: Data | HeteroData, *, features: float = 0.0, edges: float = 0.0, seed: int = 0) -> Data | HeteroData:
    """``data`` with noise on its features and fake edges, as a shallow copy; levels of 0 leave the very same tensors.

    Args:
        data: one undirected graph.
        features: σ of the noise that is added to every entry of ``x``; sparse features become dense.
        edges: p; ``round(p · |E|)`` fake edges are added, |E| being the number of undirected edges without self-loops.
        seed: of both kinds of noise.
    """
    for name, level in (("features", features), ("edges", edges)):
        if not (math.isfinite(level) and level >= 0):
            raise DatasetError(f"noise of {name}: expected a number of at least 0, got {level}")
    data = data.__copy__()
    if (features or edges) and isinstance(data, HeteroData):
        raise DatasetError("noise is defined for graphs of one type of node, and this one has several")
    if features:
        data.x = noisy_features(data.x, features, seed)
    if edges:
        _refuse_edge_features(data)
        data.edge_index = with_fake_edges(data.edge_index, data.num_nodes, edges, seed)
    return data


def noisy_features(x: Tensor, sigma: float, seed: int = 0) -> Tensor:
    """``x + σ z`` with standard normal ``z``, dense."""
    dense = x if x.layout == torch.strided else x.to_dense()
    generator = np.random.RandomState([seed, _FEATURE_STREAM])
    noise = torch.from_numpy(generator.standard_normal(tuple(dense.shape))).to(dense.dtype)
    return dense + sigma * noise


def with_fake_edges(edge_index: Tensor, num_nodes: int, p: float, seed: int = 0) -> Tensor:
    """The edges, and both directions of ``round(p · |E|)`` different random pairs that are neither edges nor self-loops."""
    low, high = edge_index.sort(dim=0).values.numpy()
    present = np.unique((low.astype(np.int64) * num_nodes + high)[low != high])
    wanted = round(p * len(present))
    available = num_nodes * (num_nodes - 1) // 2 - len(present)
    if wanted > available:
        raise DatasetError(
            f"noise of edges: {wanted} fake edges are asked for (p = {p}), but only {available} pairs of nodes have none"
        )
    fake = _absent_pairs(present, num_nodes, wanted, np.random.RandomState([seed, _EDGE_STREAM]))
    pairs = torch.from_numpy(np.stack(np.divmod(fake, num_nodes)))
    return torch.cat([edge_index, pairs, pairs.flip(0)], dim=1)


def _absent_pairs(present: np.ndarray, num_nodes: int, wanted: int, generator: np.random.RandomState) -> np.ndarray:
    """``wanted`` keys u · num_nodes + v with u < v, uniformly from those that are not among the sorted ``present``."""
    chosen = np.empty(0, dtype=np.int64)
    draws = len(present) + 1024  # whatever p is, so that the first pairs of a level are those of every higher level
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
