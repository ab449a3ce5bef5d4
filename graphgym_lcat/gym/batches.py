"""Sampled mini-batches, for graphs whose full batch does not fit into memory; full batch, the default, needs no loader."""

from __future__ import annotations

import copy

from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.graphgym.config import cfg

from graphgym_lcat.data.neighbor_loader import NeighborLoader

FULL_BATCH, NEIGHBOR = "full_batch", "neighbor"
SAMPLERS = (FULL_BATCH, NEIGHBOR)


def sampled_batches(data: Data | HeteroData, train_nodes: Tensor, target: str | None) -> NeighborLoader:
    """Return batches of ``train.batch_size`` training nodes with ``train.neighbor_sizes`` neighbours per layer.

    ``lcat.convolve_hops`` adds hops of the last size. Order and samples depend on ``seed`` and the epoch.
    """
    sizes = list(cfg.train.neighbor_sizes)
    return NeighborLoader(
        copy.copy(data),  # stays where it is when the graph is moved to another device
        sizes + sizes[-1:] * cfg.lcat.convolve_hops,
        train_nodes if target is None else (target, train_nodes),
        batch_size=cfg.train.batch_size,
        shuffle=True,
        seed=cfg.seed,
    )
