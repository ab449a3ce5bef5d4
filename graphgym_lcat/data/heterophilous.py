"""The datasets of the heterophily benchmark (Platonov et al., ICLR 2023), with its ten official splits.

PyG's ``HeterophilousGraphDataset`` knows five of them. The files of the others have the same format and are read in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from torch_geometric import datasets as pyg
from torch_geometric.data import InMemoryDataset


class HeterophilousBenchmark(pyg.HeterophilousGraphDataset):
    """Any file of the benchmark by its name; PyG's class refuses names that it does not know."""

    def __init__(self, root: str, name: str, pre_transform: Callable | None = None):
        self.name = name.lower().replace("-", "_")
        InMemoryDataset.__init__(self, root, pre_transform=pre_transform)
        self.load(self.processed_paths[0])
