"""The datasets by name: those that PyG reads from files, one row each, and those that a registered function returns."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch_geometric import datasets as pyg
from torch_geometric.data import Data, InMemoryDataset

from graphgym_lcat.data.block_model import block_model
from graphgym_lcat.data.csbm import csbm
from graphgym_lcat.data.heterophilous import HeterophilousBenchmark
from lcat_core.datasets import HETEROPHILOUS, SIZES, Statistics
from lcat_core.errors import DatasetError
from lcat_core.registration import is_same_definition


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset that PyG reads, stored as ``<data_dir>/<name>/<subfolder>/raw/<raw_files>``; its size is in ``lcat_core.datasets``.

    Attributes:
        pyg_class: What reads it, called with ``arguments``.
        site_is_gone: PyG can no longer download it.
    """

    name: str
    pyg_class: Callable[..., InMemoryDataset]
    raw_files: tuple[str, ...]
    subfolder: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    site_is_gone: bool = False

    @property
    def published(self) -> Statistics:
        """Its size in the paper."""
        return SIZES[self.name]

    def folder(self, data_dir: str | os.PathLike[str]) -> Path:
        return Path(data_dir) / self.name

    def raw_dir(self, data_dir: str | os.PathLike[str]) -> Path:
        return self.folder(data_dir) / self.subfolder / "raw"

    def missing_files(self, data_dir: str | os.PathLike[str]) -> list[str]:
        """Return the raw files that are not in the folder where PyG looks for them."""
        raw_dir = self.raw_dir(data_dir)
        return [name for name in self.raw_files if not (raw_dir / name).is_file()]


def _planetoid(name: str) -> DatasetSpec:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{name.lower()}.{part}" for part in parts)
    return DatasetSpec(name, pyg.Planetoid, files, name, {"name": name})


def _heterophilous(name: str) -> DatasetSpec:
    file = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", name).lower()
    return DatasetSpec(name, HeterophilousBenchmark, (f"{file}.npz",), file, {"name": file})


_SPECS = (
    DatasetSpec(
        "AmazonComputers",
        pyg.Amazon,
        ("amazon_electronics_computers.npz",),
        "Computers",
        {"name": "Computers"},
    ),
    DatasetSpec("AmazonPhoto", pyg.Amazon, ("amazon_electronics_photo.npz",), "Photo", {"name": "Photo"}),
    DatasetSpec("GitHub", pyg.GitHub, ("github.npz",), site_is_gone=True),
    DatasetSpec("FacebookPagePage", pyg.FacebookPagePage, ("facebook.npz",), site_is_gone=True),
    DatasetSpec("CoauthorPhysics", pyg.Coauthor, ("ms_academic_phy.npz",), "Physics", {"name": "Physics"}),
    DatasetSpec("TwitchEN", pyg.Twitch, ("EN.npz",), "EN", {"name": "EN"}, site_is_gone=True),
    DatasetSpec("CoauthorCS", pyg.Coauthor, ("ms_academic_cs.npz",), "CS", {"name": "CS"}),
    DatasetSpec("DBLP", pyg.CitationFull, ("dblp.npz",), "dblp", {"name": "DBLP"}),
    _planetoid("PubMed"),
    _planetoid("Cora"),
    _planetoid("CiteSeer"),
    *(_heterophilous(name) for name in HETEROPHILOUS),
)

#: The datasets of the paper by name, from the highest to the lowest average degree, then those of the heterophily benchmark.
DATASETS: dict[str, DatasetSpec] = {spec.name: spec for spec in _SPECS}


@dataclass(frozen=True)
class EmbeddedDataset:
    """A graph that a function returns.

    Attributes:
        load: Returns the graph; its arguments are the parameters of the dataset.
        group: The group of the configuration that holds these parameters, such as ``block_model``; empty if there are none.
    """

    load: Callable[..., Data]
    group: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.load).parameters)


#: Graphs that a function returns, by name; those of this package need no files.
EMBEDDED: dict[str, EmbeddedDataset] = {
    "KarateClub": EmbeddedDataset(lambda: pyg.KarateClub()[0]),
    "BlockModel": EmbeddedDataset(block_model, "block_model"),
    "csbm": EmbeddedDataset(csbm, "csbm"),
}


def register_dataset(name: str, group: str = "") -> Callable[[Callable[..., Data]], Callable[..., Data]]:
    """Register a function that returns a graph as the dataset ``name``; use it as a decorator.

    The function may read files or generate the graph. Every process that uses the dataset must import the module that registers
    it: name the module in ``lcat.plugins``.

    Args:
        name: What ``dataset.name`` selects it by.
        group: The group of the configuration whose keys are passed to the function by name.

    Raises:
        DatasetError: Another dataset has this name.
    """

    def register(load: Callable[..., Data]) -> Callable[..., Data]:
        known = EMBEDDED.get(name)
        if name in SIZES or (known is not None and not is_same_definition(known.load, load)):
            raise DatasetError(f"a dataset {name!r} exists already; choose another name")
        EMBEDDED[name] = EmbeddedDataset(load, group)
        return load

    return register


def data_directory(configured: str | os.PathLike[str] | None = None) -> Path:
    """Return the root of all datasets: the configured folder, else ``LCAT_DATA_DIR``, else ``./datasets``."""
    return Path(configured or os.environ.get("LCAT_DATA_DIR") or "datasets").expanduser()
