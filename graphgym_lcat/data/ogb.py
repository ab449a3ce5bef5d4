"""The four node datasets of the Open Graph Benchmark, read by the ``ogb`` package from files that are already there.

The files lie as ``ogb`` itself puts them: ``<data_dir>/ogbn_arxiv/`` with ``raw``, ``split`` and ``RELEASE_v1.txt``. ``ogb`` asks
on standard input before it downloads or updates; that would stop a sweep, so what it needs is looked for before it is called.
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

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.transforms import ToUndirected
from torch_geometric.utils import to_undirected

from graphgym_lcat.data.errors import DatasetError
from graphgym_lcat.data.registry import Statistics

#: In the folder of a dataset that `lcat datasets --generate` has written.
SYNTHETIC_MARK = "SYNTHETIC.txt"
_PARTS = {"train": "train", "val": "valid", "test": "test"}
_SAFE = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]


@dataclass(frozen=True)
class OgbSpec:
    """One dataset of OGB.

    Attributes:
        published: its size as the paper gives it.
        split: the folder of its split.
        content: the files that must be in ``raw``.
        release: the version that ``ogb`` 1.3.6 asks for.
        undirected: ``ogb`` adds the other direction of every edge by itself.
        target: the type of the nodes that are classified, where there are several types.
        tasks: more than one: so many binary labels a node, scored by the mean ROC-AUC.
    """

    name: str
    published: Statistics
    split: str
    content: tuple[str, ...]
    release: int = 1
    undirected: bool = False
    target: str = ""
    tasks: int = 1

    def folder(self, data_dir: str | os.PathLike) -> Path:
        """Where ``ogb`` looks; older versions of it added ``_pyg``."""
        plain = Path(data_dir) / self.name.replace("-", "_")
        older = plain.with_name(f"{plain.name}_pyg")
        return older if older.is_dir() else plain

    def raw_dir(self, data_dir: str | os.PathLike) -> Path:
        return self.folder(data_dir) / "raw"

    @property
    def raw_files(self) -> tuple[str, ...]:
        """Relative to ``raw_dir``; those of the split among them."""
        home = f"../split/{self.split}"
        splits = [f"{home}/{self.target or '.'}/{part}.csv.gz" for part in _PARTS.values()]
        if self.target:
            splits.append(f"{home}/nodetype-has-split.csv.gz")
        return (*self.content, *splits, f"../RELEASE_v{self.release}.txt")

    def missing_files(self, data_dir: str | os.PathLike) -> list[str]:
        """What is not in the dataset's folder, as paths below it."""
        raw_dir = self.raw_dir(data_dir)
        return [os.path.normpath(f"raw/{name}") for name in self.raw_files if not (raw_dir / name).is_file()]

    def size_on_disk(self, data_dir: str | os.PathLike) -> Statistics:
        """Nodes and edges by the small files that count them, without reading the graph."""
        raw = self.raw_dir(data_dir)
        if self.target:
            nodes = sum(_numbers(raw / "num-node-dict.csv.gz", skip=1))
            edges = sum(sum(_numbers(file)) for file in sorted(raw.glob("relations/*/num-edge-list.csv.gz")))
        else:
            nodes = sum(_numbers(raw / "num-node-list.csv.gz"))
            edges = sum(_numbers(raw / "num-edge-list.csv.gz")) * (2 if self.undirected else 1)
        return Statistics(nodes, edges, self.published.features, self.published.classes)

    def is_synthetic(self, data_dir: str | os.PathLike) -> bool:
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
        Statistics(169_343, 1_166_243, 128, 40),
        "time",
        (*_HOMOGENEOUS, "node-feat.csv.gz", "node_year.csv.gz"),
    ),
    OgbSpec(
        "ogbn-products",
        Statistics(2_449_029, 123_718_280, 100, 47),
        "sales_ranking",
        (*_HOMOGENEOUS, "node-feat.csv.gz"),
        undirected=True,
    ),
    OgbSpec("ogbn-mag", Statistics(1_939_743, 21_111_007, 128, 349), "time", _MAG, release=2, target="paper"),
    OgbSpec(
        "ogbn-proteins",
        Statistics(132_534, 79_122_504, 8, 112),
        "species",
        (*_HOMOGENEOUS, "edge-feat.csv.gz"),
        undirected=True,
        tasks=112,
    ),
)

#: By name, as ``dataset.name`` gives it.
OGB_DATASETS: dict[str, OgbSpec] = {spec.name: spec for spec in _SPECS}


def read_ogb(spec: OgbSpec, data_dir: Path, scratch: Path) -> Data | HeteroData:
    """The graph with OGB's split as masks: undirected, labels of one task flat, features of -proteins from its edges.

    ``scratch`` is a folder for what ``ogb`` writes beside it. All of ``spec.missing_files`` must be there.
    """
    node_datasets = import_ogb()

    class Located(node_datasets.PygNodePropPredDataset):
        @property
        def processed_dir(self) -> str:
            return str(scratch / "processed")

        def download(self) -> None:
            raise DatasetError(missing_message(spec, data_dir))

    # torch.load refuses classes that it does not know to be harmless; ogb saves and loads these. Those that PyG has allowed for
    # good are left out, since the context would take them away at its end.
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
                f"({type(error).__name__}: {error}); if damaged, delete and fetch them again"
            ) from error
    return _heterogeneous(data, split, spec) if spec.target else _homogeneous(data, split, spec)


def missing_message(spec: OgbSpec, data_dir: Path) -> str:
    """What is not there, and what to do."""
    folder, missing = spec.folder(data_dir).absolute(), spec.missing_files(data_dir)
    shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
    return (
        f"{spec.name} is not in {folder}: {shown} missing. Fetch it with the ogb package "
        f"(NodePropPredDataset({spec.name!r}, root={str(Path(data_dir).absolute())!r})), put its unpacked archive there, or "
        f"write data of its shape with `lcat datasets {spec.name} --generate --scale 1000`"
    )


def import_ogb():
    """The module ``ogb.nodeproppred``."""
    # On import ogb asks PyPI for its newest version, in a thread that keeps a process without network from ending.
    absent = object()
    earlier = sys.modules.get("outdated", absent)
    sys.modules["outdated"] = None
    try:
        import ogb.nodeproppred
    except ModuleNotFoundError as error:
        raise DatasetError(
            f"ogbn datasets are read by the ogb package, and {error.name} is not installed: pip install 'graphgym-lcat[ogb]'"
        ) from error
    finally:
        if earlier is absent:
            del sys.modules["outdated"]
        else:
            sys.modules["outdated"] = earlier
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
    """Features of nodes that have none: the mean of those of their edges; zero for a node without edges."""
    target = data.edge_index[1]
    sums = torch.zeros(data.num_nodes, data.edge_attr.size(1)).index_add_(0, target, data.edge_attr)
    return sums / torch.bincount(target, minlength=data.num_nodes).clamp(min=1).view(-1, 1)


def _labels(y: Tensor, spec: OgbSpec) -> Tensor:
    return y.float() if spec.tasks > 1 else y.view(-1).long()


def _set_masks(store, split: dict[str, Tensor], num_nodes: int) -> None:
    for part, folder in _PARTS.items():
        mask = torch.zeros(num_nodes, dtype=torch.bool)
        mask[split[folder]] = True
        store[f"{part}_mask"] = mask


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """ogb prints what it does, draws a bar for the one graph that it reads, and makes tensors of pandas' read-only arrays."""
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
