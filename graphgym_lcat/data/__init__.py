"""Datasets, splits, noise, synthetic graphs, and mini-batches."""

from graphgym_lcat.data.freed_memory import keep_freed_memory
from graphgym_lcat.data.neighbor_loader import NeighborLoader
from graphgym_lcat.data.neighbor_sampler import NeighborSampler

__all__ = ["NeighborLoader", "NeighborSampler", "keep_freed_memory"]
