"""Opening a dataset by name: PyG downloads and reads those of the paper, ``ogb`` reads those of OGB, and the result is kept.

PyG's own ``processed/`` files store bags of words densely (1.2 GB for CoauthorPhysics) and are not written atomically. Here every
dataset is prepared once, under a lock, and stored as ``<data_dir>/<name>/prepared.pt``: small (sparse features), renamed into place
when complete, readable with ``weights_only=True``. One that is damaged is written again from the raw files. If the data folder is
read-only, prepared files are stored in the user's cache folder instead.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import is_undirected, to_undirected

from graphgym_lcat.data.features import row_normalize, sparse_features
from graphgym_lcat.data.ogb import OGB_DATASETS, OgbSpec, missing_message, read_ogb
from graphgym_lcat.data.prepared import read_prepared, write_prepared
from graphgym_lcat.data.raw_files import check_raw_file
from graphgym_lcat.data.registry import DATASETS, EMBEDDED, DatasetSpec, data_directory
from graphgym_lcat.data.tensor_file import DamagedFile
from lcat_core.datasets import Statistics
from lcat_core.errors import DatasetError, unknown_name
from lcat_core.files import exclusive_lock

_PREPARED = "prepared.pt"
log = logging.getLogger("graphgym_lcat")
Spec = DatasetSpec | OgbSpec
#: Datasets that are read from files, by name.
FILED: dict[str, Spec] = {**DATASETS, **OGB_DATASETS}


def dataset_names() -> list[str]:
    """Return the names that :func:`load_dataset` accepts, registered ones included."""
    return [*FILED, *EMBEDDED]


def load_dataset(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    sparse: bool = False,
    normalize_rows: bool = False,
    **parameters: object,
) -> Data | HeteroData:
    """Open a dataset: one undirected graph, with the self-loops that its files contain; ogbn-mag has several types of nodes.

    Args:
        name: One of :func:`dataset_names`.
        data_dir: The root of all datasets; see ``data_directory`` for the default.
        sparse: Return bag-of-words features as a ``torch.sparse_csr`` matrix; dense features stay dense.
        normalize_rows: Scale the features of each node to sum 1, as PyG's ``NormalizeFeatures`` does.
        parameters: Parameters of a generated graph, for example ``avg_degree`` of ``BlockModel``.

    Raises:
        DatasetError: The files are missing and cannot be downloaded (those of OGB never are), or are damaged; the message names
            the files and their folder.
    """
    if name in FILED:
        if parameters:
            raise DatasetError(f"{name} is read from files and takes no parameters, got {sorted(parameters)}")
        data = _open(FILED[name], data_directory(data_dir))
    elif name in EMBEDDED:
        known = EMBEDDED[name].parameters
        for parameter in parameters:
            if parameter not in known:
                raise DatasetError(unknown_name(f"parameter of {name}", parameter, known))
        data = EMBEDDED[name].load(**parameters)
        data.x = sparse_features(data.x)
    else:
        raise DatasetError(unknown_name("dataset", name, dataset_names()))
    if isinstance(data, HeteroData):
        if normalize_rows:
            raise DatasetError(f"rows can be normalised only in graphs with one type of nodes, and {name} has several")
        return data
    if normalize_rows:
        data.x = row_normalize(data.x)
    if not sparse and data.x.layout != torch.strided:
        data.x = data.x.to_dense()
    return data


def statistics(data: Data) -> Statistics:
    """Count nodes, edges, features and classes of a graph, for comparison with the published size."""
    return Statistics(data.num_nodes, data.num_edges, data.x.size(1), int(data.y.max()) + 1)


def is_present(spec: Spec, data_dir: str | os.PathLike[str]) -> bool:
    """Whether the dataset can be opened without a download."""
    return not spec.missing_files(data_dir) or (spec.folder(data_dir) / _PREPARED).is_file()


def _open(spec: Spec, data_dir: Path) -> Data | HeteroData:
    """Read the prepared file; write it first if it is missing, outdated or damaged."""
    prepared = _prepare(spec, data_dir)
    try:
        return read_prepared(prepared)
    except DamagedFile as damage:
        missing = spec.missing_files(data_dir)
        if missing:
            raise DatasetError(
                f"{damage}, and cannot be written again, because {', '.join(missing)} in {spec.raw_dir(data_dir)} is missing; "
                "delete the damaged file and fetch the dataset again"
            ) from damage
        log.warning("%s; it is written again from the raw files", damage)
    return read_prepared(_prepare(spec, data_dir, again=True))


def _prepare(spec: Spec, data_dir: Path, again: bool = False) -> Path:
    """Return the path of the prepared file; write it first if it is missing or outdated, or ``again``."""
    prepared = _prepared_path(spec, data_dir, again)
    if not again and _is_current(prepared, spec, data_dir):
        return prepared
    if isinstance(spec, OgbSpec) and spec.missing_files(data_dir):  # before an empty folder is created
        raise DatasetError(missing_message(spec, data_dir))
    # flock(2) works across nodes on NFS if the lock service runs. If it does not, two runs may both do the work, but the rename at
    # the end still keeps the file complete.
    folder = prepared.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder / "prepared.lock"):
            if again or not _is_current(prepared, spec, data_dir):
                with tempfile.TemporaryDirectory(prefix=".preparing-", dir=folder) as scratch:
                    partial = Path(scratch) / _PREPARED
                    write_prepared(_read(spec, data_dir, Path(scratch)), partial)
                    os.replace(partial, prepared)
    except OSError as error:
        raise DatasetError(f"{spec.name} could not be prepared in {folder}: {error}") from error
    return prepared


def _read(spec: Spec, data_dir: Path, scratch: Path) -> Data | HeteroData:
    if isinstance(spec, OgbSpec):
        return read_ogb(spec, data_dir, scratch)
    return _read_with_pyg(spec, data_dir, scratch)


def _is_current(prepared: Path, spec: Spec, data_dir: Path) -> bool:
    """Whether the prepared file exists and no raw file is newer; raw files may have been deleted since."""
    if not prepared.is_file():
        return False
    raw = (spec.raw_dir(data_dir) / file for file in spec.raw_files)
    return all(f.stat().st_mtime_ns <= prepared.stat().st_mtime_ns for f in raw if f.is_file())


def _prepared_path(spec: Spec, data_dir: Path, again: bool) -> Path:
    beside_raw = spec.folder(data_dir) / _PREPARED
    if (not again and _is_current(beside_raw, spec, data_dir)) or _can_write(beside_raw.parent):
        return beside_raw
    missing = spec.missing_files(data_dir)
    if missing and isinstance(spec, OgbSpec):
        raise DatasetError(missing_message(spec, data_dir))
    if missing:
        raise DatasetError(
            f"{spec.name} is incomplete: {', '.join(missing)} should be in {spec.raw_dir(data_dir)}, "
            "and cannot be downloaded because the folder is read-only"
        )
    # One cached file per state of the raw files, so that new data are never mistaken for old data.
    key = hashlib.sha256()
    for file in spec.raw_files:
        path = spec.raw_dir(data_dir).resolve() / file
        key.update(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}\n".encode())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphgym-lcat"
    return cache / f"{spec.name}-{key.hexdigest()[:12]}" / _PREPARED


def _can_write(folder: Path) -> bool:
    while not folder.exists():
        folder = folder.absolute().parent
    # Root may write anywhere, but a folder without any write bit should stay unchanged.
    return bool(folder.stat().st_mode & 0o222) and os.access(folder, os.W_OK | os.X_OK)


def _read_with_pyg(spec: DatasetSpec, data_dir: Path, scratch: Path) -> Data:
    """Read a graph with PyG; downloaded files are kept only if PyG can read them."""
    home = spec.raw_dir(data_dir)
    missing = spec.missing_files(data_dir)
    source = scratch / "raw" if missing else home

    pyg_class: Any = spec.pyg_class

    class Located(pyg_class):
        log = property(lambda self: False, lambda self, value: None)  # silences "Processing..." and "Done!"

        @property
        def raw_dir(self) -> str:
            return str(source)

        @property
        def processed_dir(self) -> str:
            return str(scratch / "processed")

        def download(self) -> None:
            try:
                super().download()
            except Exception as error:  # urllib, fsspec and aiohttp raise different types
                raise DatasetError(_cannot_download(spec, home, missing, error)) from error

        def process(self) -> None:
            for file in spec.raw_files:
                check_raw_file(source / file)
            try:
                super().process()
            except Exception as error:  # a damaged npz or pickle can raise anything
                raise DatasetError(
                    f"{spec.name}: {', '.join(spec.raw_files)} in {source} could not be read "
                    f"({type(error).__name__}: {error}); if they are damaged, delete them and fetch them again"
                ) from error

    dataset = Located(root=str(scratch), pre_transform=_compact, **spec.arguments)
    if missing:
        home.mkdir(parents=True, exist_ok=True)
        for file in spec.raw_files:
            os.replace(source / file, home / file)
    return dataset[0]


def _cannot_download(spec: DatasetSpec, raw_dir: Path, missing: list[str], error: Exception) -> str:
    reason = "PyG's site for it is gone" if spec.site_is_gone else f"{type(error).__name__}: {error}"
    return (
        f"{spec.name} is missing and could not be downloaded ({reason}). "
        f"Put {', '.join(missing)} into {raw_dir.absolute()}"
    )


def _compact(data: Data) -> Data:
    """Make the graph undirected and its features sparse, before PyG writes it."""
    if not is_undirected(data.edge_index):
        data.edge_index = to_undirected(data.edge_index, num_nodes=data.num_nodes)
    data.x = sparse_features(data.x)
    return data
