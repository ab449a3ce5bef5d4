"""What is known of each dataset before it is opened: its PyG class, its files, its published size."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch_geometric import datasets as pyg
from torch_geometric.data import InMemoryDataset


@dataclass(frozen=True)
class Statistics:
    """Size of a graph as PyG counts it: every direction of every edge, self-loops included."""

    nodes: int
    edges: int
    features: int
    classes: int

    @property
    def avg_degree(self) -> float:
        return self.edges / self.nodes


@dataclass(frozen=True)
class DatasetSpec:
    """One dataset of the paper, stored as ``<data_dir>/<name>/<subfolder>/raw/<raw_files>``.

    ``site_is_gone`` marks those that PyG can no longer download.
    """

    name: str
    pyg_class: Callable[..., InMemoryDataset]
    raw_files: tuple[str, ...]
    published: Statistics
    subfolder: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    site_is_gone: bool = False

    def folder(self, data_dir: str | os.PathLike) -> Path:
        return Path(data_dir) / self.name

    def raw_dir(self, data_dir: str | os.PathLike) -> Path:
        return self.folder(data_dir) / self.subfolder / "raw"

    def missing_files(self, data_dir: str | os.PathLike) -> list[str]:
        """Raw files that are not in the folder where PyG looks for them."""
        raw_dir = self.raw_dir(data_dir)
        return [name for name in self.raw_files if not (raw_dir / name).is_file()]


def _planetoid(name: str, *statistics: int) -> DatasetSpec:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{name.lower()}.{part}" for part in parts)
    return DatasetSpec(name, pyg.Planetoid, files, Statistics(*statistics), name, {"name": name})


_SPECS = (
    DatasetSpec(
        "AmazonComputers",
        pyg.Amazon,
        ("amazon_electronics_computers.npz",),
        Statistics(13752, 491722, 767, 10),
        "Computers",
        {"name": "Computers"},
    ),
    DatasetSpec(
        "AmazonPhoto",
        pyg.Amazon,
        ("amazon_electronics_photo.npz",),
        Statistics(7650, 238162, 745, 8),
        "Photo",
        {"name": "Photo"},
    ),
    DatasetSpec("GitHub", pyg.GitHub, ("github.npz",), Statistics(37700, 578006, 128, 2), site_is_gone=True),
    DatasetSpec(
        "FacebookPagePage",
        pyg.FacebookPagePage,
        ("facebook.npz",),
        Statistics(22470, 342004, 128, 4),
        site_is_gone=True,
    ),
    DatasetSpec(
        "CoauthorPhysics",
        pyg.Coauthor,
        ("ms_academic_phy.npz",),
        Statistics(34493, 495924, 8415, 5),
        "Physics",
        {"name": "Physics"},
    ),
    DatasetSpec(
        "TwitchEN",
        pyg.Twitch,
        ("EN.npz",),
        Statistics(7126, 77774, 128, 2),
        "EN",
        {"name": "EN"},
        site_is_gone=True,
    ),
    DatasetSpec(
        "CoauthorCS",
        pyg.Coauthor,
        ("ms_academic_cs.npz",),
        Statistics(18333, 163788, 6805, 15),
        "CS",
        {"name": "CS"},
    ),
    DatasetSpec(
        "DBLP",
        pyg.CitationFull,
        ("dblp.npz",),
        Statistics(17716, 105734, 1639, 4),
        "dblp",
        {"name": "DBLP"},
    ),
    _planetoid("PubMed", 19717, 88648, 500, 3),
    _planetoid("Cora", 2708, 10556, 1433, 7),
    _planetoid("CiteSeer", 3327, 9104, 3703, 6),
)

#: The datasets of the paper by name, from the highest to the lowest average degree.
DATASETS: dict[str, DatasetSpec] = {spec.name: spec for spec in _SPECS}


def data_directory(configured: str | os.PathLike | None = None) -> Path:
    """The root of all datasets: the configured folder, else ``LCAT_DATA_DIR``, else ``./datasets``."""
    return Path(configured or os.environ.get("LCAT_DATA_DIR") or "datasets").expanduser()
