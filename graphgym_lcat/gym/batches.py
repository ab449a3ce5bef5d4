"""Sampled mini-batches, for graphs whose full batch does not fit into memory; full batch, the default, needs no loader."""

from __future__ import annotations

from torch import Tensor
from torch_geometric import typing as pyg_typing
from torch_geometric.data import Data, HeteroData
from torch_geometric.graphgym.config import cfg
from torch_geometric.loader import NeighborLoader

from lcat_core.errors import MissingPackage

SAMPLERS = ("full_batch", "neighbor")


def sampled_batches(data: Data | HeteroData, train_nodes: Tensor, target: str | None) -> NeighborLoader | None:
    """Return batches of ``train.batch_size`` training nodes with ``train.neighbor_sizes`` neighbours per layer.

    For ``train.sampler: full_batch`` return None.

    Raises:
        MissingPackage: PyG has no sampler here.
    """
    if cfg.train.sampler == "full_batch":
        return None
    if not (pyg_typing.WITH_PYG_LIB or pyg_typing.WITH_TORCH_SPARSE):
        raise MissingPackage(
            "`train.sampler: neighbor` needs pyg-lib or torch-sparse, and neither is installed; install one (see PyG's "
            "installation page), or set `train.sampler: full_batch`, which the kernels of this package make affordable",
            "train.sampler",
        )
    return NeighborLoader(
        data,
        num_neighbors=list(cfg.train.neighbor_sizes),
        input_nodes=train_nodes if target is None else (target, train_nodes),
        batch_size=cfg.train.batch_size,
        shuffle=True,
    )
