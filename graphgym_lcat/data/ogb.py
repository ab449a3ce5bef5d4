"""The four node datasets of the Open Graph Benchmark, read by the ``ogb`` package from files that are already present.

The folders are those of ``ogb`` itself: ``<data_dir>/ogbn_arxiv/`` with ``raw``, ``split`` and ``RELEASE_v1.txt``. ``ogb`` asks on
standard input before it downloads or updates, which would block a sweep. Missing files are therefore detected before it is called.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.transforms import ToUndirected
from torch_geometric.utils import to_undirected

from lcat_core.datasets import SIZES, Statistics
from lcat_core.errors import DatasetError, MissingPackage

#: Marks the folder of a dataset that `lcat datasets --generate` has written.
SYNTHETIC_MARK = "SYNTHETIC.txt"
_PARTS = {"train": "train", "val": "valid", "test": "test"}
_SAFE = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


@dataclass(frozen=True)
class OgbSpec:
    """One dataset of OGB; its size is in ``lcat_core.datasets``.

    Attributes:
        split: Folder of its split.
        content: Files that must be in ``raw``.
        release: The version that ``ogb`` 1.3.6 expects.
        undirected: ``ogb`` adds the other direction of every edge automatically.
        target: The type of nodes to classify, if there are several types.
        tasks: Number of binary labels per node; if there are several, the metric is the mean ROC-AUC.
    """

    name: str
    split: str
    content: tuple[str, ...]
    release: int = 1
    undirected: bool = False
    target: str = ""
    tasks: int = 1

    @property
    def published(self) -> Statistics:
        """Its size in the paper."""
        return SIZES[self.name]

    def folder(self, data_dir: str | os.PathLike[str]) -> Path:
        """Return the folder that ``ogb`` reads; older versions of ``ogb`` appended ``_pyg`` to its name."""
        plain = Path(data_dir) / self.name.replace("-", "_")
        older = plain.with_name(f"{plain.name}_pyg")
        return older if older.is_dir() else plain

    def raw_dir(self, data_dir: str | os.PathLike[str]) -> Path:
        return self.folder(data_dir) / "raw"

    @property
    def raw_files(self) -> tuple[str, ...]:
        """Its files, relative to ``raw_dir``, including those of the split."""
        home = f"../split/{self.split}"
        splits = [f"{home}/{self.target or '.'}/{part}.csv.gz" for part in _PARTS.values()]
        if self.target:
            splits.append(f"{home}/nodetype-has-split.csv.gz")
        return (*self.content, *splits, f"../RELEASE_v{self.release}.txt")

    def missing_files(self, data_dir: str | os.PathLike[str]) -> list[str]:
        """Return the files that are missing, as paths below the folder of the dataset."""
        raw_dir = self.raw_dir(data_dir)
        return [os.path.normpath(f"raw/{name}") for name in self.raw_files if not (raw_dir / name).is_file()]

    def size_on_disk(self, data_dir: str | os.PathLike[str]) -> Statistics:
        """Return the size according to the small files that store the counts, without reading the graph."""
        raw = self.raw_dir(data_dir)
        if self.target:
            nodes = sum(_numbers(raw / "num-node-dict.csv.gz", skip=1))
            edges = sum(sum(_numbers(file)) for file in sorted(raw.glob("relations/*/num-edge-list.csv.gz")))
        else:
            nodes = sum(_numbers(raw / "num-node-list.csv.gz"))
            edges = sum(_numbers(raw / "num-edge-list.csv.gz")) * (2 if self.undirected else 1)
        return Statistics(nodes, edges, self.published.features, self.published.classes)

    def is_synthetic(self, data_dir: str | os.PathLike[str]) -> bool:
        return (self.folder(data_dir) / SYNTHETIC_MARK).is_file()


_HOMOGENEOUS = ("edge.csv.gz", "num-node-list.csv.gz", "num-edge-list.csv.gz", "node-label.csv.gz")
RELATIONS = (
    ("author", "affiliated_with", "institution"),
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "has_topic", "field_of_study"),
)
_MAG = (
    "num-node-dict.csv.gz",
    "triplet-type-list.csv.gz",
    "nodetype-has-label.csv.gz",
    "node-feat/paper/node-feat.csv.gz",
    "node-label/paper/node-label.csv.gz",
    *(
        f"relations/{'___'.join(relation)}/{file}.csv.gz"
        for relation in RELATIONS
        for file in ("edge", "num-edge-list")
    ),
)

_SPECS = (
    OgbSpec(
        "ogbn-arxiv",
        "time",
        (*_HOMOGENEOUS, "node-feat.csv.gz", "node_year.csv.gz"),
    ),
    OgbSpec(
        "ogbn-products",
        "sales_ranking",
        (*_HOMOGENEOUS, "node-feat.csv.gz"),
        undirected=True,
    ),
    OgbSpec("ogbn-mag", "time", _MAG, release=2, target="paper"),
    OgbSpec(
        "ogbn-proteins",
        "species",
        (*_HOMOGENEOUS, "edge-feat.csv.gz"),
        undirected=True,
        tasks=112,
    ),
)

#: The datasets of OGB by name, as in ``dataset.name``.
OGB_DATASETS: dict[str, OgbSpec] = {spec.name: spec for spec in _SPECS}


def read_ogb(spec: OgbSpec, data_dir: Path, scratch: Path) -> Data | HeteroData:
    """Read a graph and OGB's split as masks; no file may be missing.

    The graph becomes undirected, the labels of a single task flat, and nodes of -proteins get the mean of their edge features.
    ``scratch`` is a folder for the files that ``ogb`` writes.
    """
    pyg_dataset: Any = import_ogb().PygNodePropPredDataset

    class Located(pyg_dataset):
        @property
        def processed_dir(self) -> str:
            return str(scratch / "processed")

        def download(self) -> None:
            raise DatasetError(missing_message(spec, data_dir))

    # torch.load refuses unknown classes, and ogb saves and loads these. Those that PyG has allowed permanently are left out, since
    # the context manager would remove them when it exits.
    allowed = torch.serialization.get_safe_globals()
    with torch.serialization.safe_globals([c for c in _SAFE if c not in allowed]), _quietly():
        try:
            dataset = Located(spec.name, root=str(data_dir))
            data, split = dataset[0], dataset.get_idx_split()
        except (OSError, ValueError, KeyError, IndexError, RuntimeError, EOFError) as error:
            if isinstance(error, DatasetError):
                raise
            raise DatasetError(
                f"{spec.name}: the files in {spec.folder(data_dir).absolute()} could not be read "
                f"({type(error).__name__}: {error}); if they are damaged, delete them and fetch them again"
            ) from error
    return _heterogeneous(data, split, spec) if spec.target else _homogeneous(data, split, spec)


def missing_message(spec: OgbSpec, data_dir: Path) -> str:
    """Say which files are missing and where to get them."""
    folder, missing = spec.folder(data_dir).absolute(), spec.missing_files(data_dir)
    shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
    return (
        f"{spec.name} is incomplete in {folder}: {shown} missing. Download it with the ogb package "
        f"(NodePropPredDataset({spec.name!r}, root={str(Path(data_dir).absolute())!r})), unpack its archive there, or "
        f"generate random data of its shape with `lcat datasets {spec.name} --generate --scale 1000`"
    )


def import_ogb() -> Any:
    """Import the module ``ogb.nodeproppred``.

    Raises:
        MissingPackage: It is not installed.
    """
    # On import, ogb asks PyPI for its newest version, in a thread that prevents a process without network from exiting.
    modules: dict[str, Any] = sys.modules
    absent = object()
    earlier = modules.get("outdated", absent)
    modules["outdated"] = None
    try:
        import ogb.nodeproppred
    except ModuleNotFoundError as error:
        raise MissingPackage(
            f"ogbn datasets need the ogb package, and {error.name} is not installed: pip install ogb"
        ) from error
    finally:
        if earlier is absent:
            del modules["outdated"]
        else:
            modules["outdated"] = earlier
    return ogb.nodeproppred


def _homogeneous(data: Data, split: dict[str, Tensor], spec: OgbSpec) -> Data:
    x = data.x if data.get("x") is not None else mean_of_edge_features(data)
    edge_index = data.edge_index if spec.undirected else to_undirected(data.edge_index, num_nodes=data.num_nodes)
    graph = Data(x=x, edge_index=edge_index.contiguous(), y=_labels(data.y, spec))
    _set_masks(graph, split, data.num_nodes)
    return graph


def _heterogeneous(data: Data, split: dict[str, dict[str, Tensor]], spec: OgbSpec) -> HeteroData:
    graph = HeteroData()
    for kind, count in data.num_nodes_dict.items():
        graph[kind].num_nodes = int(count)
    for kind, x in data.x_dict.items():
        graph[kind].x = x
    for relation, edge_index in data.edge_index_dict.items():
        graph[relation].edge_index = edge_index
    graph[spec.target].y = _labels(data.y_dict[spec.target], spec)
    parts = {part: nodes[spec.target] for part, nodes in split.items()}
    _set_masks(graph[spec.target], parts, graph[spec.target].num_nodes)
    return ToUndirected()(graph)


def mean_of_edge_features(data: Data) -> Tensor:
    """Return features for nodes that have none: the mean over their edges, or zero without edges."""
    target = data.edge_index[1]
    sums = torch.zeros(data.num_nodes, data.edge_attr.size(1)).index_add_(0, target, data.edge_attr)
    return sums / torch.bincount(target, minlength=data.num_nodes).clamp(min=1).view(-1, 1)


def _labels(y: Tensor, spec: OgbSpec) -> Tensor:
    return y.float() if spec.tasks > 1 else y.view(-1).long()


def _set_masks(store: Any, split: dict[str, Tensor], num_nodes: int) -> None:
    for part, folder in _PARTS.items():
        mask = torch.zeros(num_nodes, dtype=torch.bool)
        mask[split[folder]] = True
        store[f"{part}_mask"] = mask


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silence ogb: it prints, shows a progress bar for a single graph, and makes tensors from read-only arrays."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        yield


def _numbers(path: Path, skip: int = 0) -> list[int]:
    with gzip.open(path, "rt", encoding="ascii") as file:
        lines = file.read().splitlines()[skip:]
    return [int(float(cell)) for line in lines for cell in line.split(",")]
