"""A generated graph with classes: small, available at once, and not equally difficult for all models."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from lcat_core.errors import DatasetError


def block_model(
    num_nodes: int = 1000,
    num_classes: int = 5,
    num_features: int = 32,
    avg_degree: float = 10.0,
    homophily: float = 0.4,
    signal: float = 1.5,
    seed: int = 0,
) -> Data:
    """Sample a stochastic block model with exactly the given average degree and edge homophily.

    The classes have equal sizes. Edges are drawn without replacement: a share ``homophily`` of them within classes, the
    others between classes, and all such pairs are equally likely. There are no self-loops. The features of a node are the
    mean of its class, a vector of length ``signal`` in a random direction, plus standard normal noise.

    Args:
        avg_degree: Directed edges per node, as PyG counts them.
        homophily: Share of the edges that join two nodes of the same class; 1 / num_classes is uninformative.
        signal: Distance of a class mean from the origin, in units of the noise of one feature.
        seed: Determines everything: equal arguments give equal graphs.
    """
    _check(num_nodes, num_classes, num_features, avg_degree, homophily, signal)
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(num_nodes) % num_classes)

    wanted = round(num_nodes * avg_degree / 2)
    inside = round(wanted * homophily)
    edges = np.concatenate(
        [_pairs(rng, labels, inside, same_class=True), _pairs(rng, labels, wanted - inside, same_class=False)]
    )
    directions = np.concatenate([edges, edges[:, ::-1]])
    directions = directions[np.lexsort((directions[:, 1], directions[:, 0]))]

    means = rng.standard_normal((num_classes, num_features))
    means *= signal / np.linalg.norm(means, axis=1, keepdims=True)
    x = means[labels] + rng.standard_normal((num_nodes, num_features))
    return Data(
        x=torch.from_numpy(x.astype(np.float32)),
        edge_index=torch.from_numpy(np.ascontiguousarray(directions.T)),
        y=torch.from_numpy(labels),
    )


def _pairs(rng: np.random.Generator, labels: np.ndarray, count: int, same_class: bool) -> np.ndarray:
    """Draw ``count`` distinct pairs u < v with equal (or unequal) labels, uniformly."""
    n = len(labels)
    sizes = np.bincount(labels)
    inside = int((sizes * (sizes - 1)).sum()) // 2
    available = inside if same_class else n * (n - 1) // 2 - inside
    if count > available:
        kind = "within classes" if same_class else "between classes"
        raise DatasetError(
            f"BlockModel needs {count} edges {kind}, but {n} nodes have only {available} such pairs; "
            "lower avg_degree or change homophily"
        )
    if 2 * count > available:  # dense: choose from a list of all pairs, since rejection would take very long
        u, v = np.triu_indices(n, k=1)
        allowed = np.flatnonzero((labels[u] == labels[v]) == same_class)
        chosen = rng.choice(allowed, size=count, replace=False)
        return np.stack([u[chosen], v[chosen]], axis=1)
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < count:
        u, v = np.sort(rng.integers(n, size=(2, 4 * count + 16)), axis=0)
        fits = (u != v) & ((labels[u] == labels[v]) == same_class)
        candidates = np.concatenate([keys, (u * n + v)[fits]])
        _, first = np.unique(candidates, return_index=True)
        keys = candidates[np.sort(first)]  # in the order drawn, so that truncation below favours no pair
    return np.stack(np.divmod(keys[:count], n), axis=1)


def _check(
    num_nodes: int, num_classes: int, num_features: int, avg_degree: float, homophily: float, signal: float
) -> None:
    problems = {
        "num_classes of at least 2": num_classes >= 2,
        "num_nodes of at least num_classes": num_nodes >= num_classes,
        "num_features of at least 1": num_features >= 1,
        "avg_degree of at least 0": avg_degree >= 0,
        "homophily in [0, 1]": 0 <= homophily <= 1,
        "signal of at least 0": signal >= 0,
    }
    wrong = [expected for expected, holds in problems.items() if not holds]
    if wrong:
        raise DatasetError(
            f"BlockModel expects {', '.join(wrong)}; got {num_nodes=}, {num_classes=}, {num_features=}, "
            f"{avg_degree=}, {homophily=}, {signal=}"
        )
