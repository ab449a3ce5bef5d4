"""``prepared.pt``: a dataset as tensors, with sparse features, checked whenever it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from graphgym_lcat.data.features import csr_matrix
from graphgym_lcat.data.tensor_file import DamagedFile, load_tensors

_CSR_PARTS = ("x_crow", "x_col", "x_values", "x_size")
_MASKS = ("train_mask", "val_mask", "test_mask")
_PER_NODE = ("x", "y", *_MASKS)


def write_prepared(data: Data | HeteroData, path: Path) -> None:
    """Write a graph; features in CSR format stay sparse."""
    if isinstance(data, HeteroData):
        torch.save({"stores": data.to_dict()}, path)
        return
    content = {key: value for key, value in data.to_dict().items() if isinstance(value, Tensor)}
    x = content.pop("x")
    if x.layout == torch.strided:
        content["x"] = x
    else:
        parts = (x.crow_indices(), x.col_indices(), x.values(), torch.tensor(x.shape))
        content |= dict(zip(_CSR_PARTS, parts, strict=True))
    torch.save(content, path)


def read_prepared(path: Path) -> Data | HeteroData:
    """Read a graph.

    Raises:
        DamagedFile: The file is damaged, or does not hold a graph.
    """
    content = load_tensors(path)
    try:
        data = _graph(content)
        _check(data)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError) as error:
        raise DamagedFile(f"{path} does not hold a graph ({str(error).splitlines()[0]:.200})") from error
    return data


def _graph(content: Any) -> Data | HeteroData:
    if not isinstance(content, dict):
        raise TypeError(f"expected tensors by name, got {type(content).__name__}")
    if "stores" in content:
        stores = content["stores"]
        _check_storages(value for store in stores.values() if isinstance(store, dict) for value in store.values())
        return HeteroData.from_dict(stores)
    if not all(isinstance(value, Tensor) for value in content.values()):
        raise TypeError("expected only tensors")
    _check_storages(content.values())
    if "x_crow" in content:
        crow, col, values, size = (content.pop(part) for part in _CSR_PARTS)
        content["x"] = csr_matrix(crow, col, values, size.tolist())
    return Data.from_dict(content)


def _check_storages(values: Any) -> None:
    """Refuse tensors that pretend to be larger than what the file holds, as strides of 0 allow."""
    for value in values:
        if isinstance(value, Tensor) and (
            value.layout != torch.strided or value.numel() * value.element_size() > value.untyped_storage().nbytes()
        ):
            raise ValueError(f"a tensor of shape {tuple(value.shape)} is larger than its data")


def _check(data: Data | HeteroData) -> None:
    """Check shapes, types and ranges of indices."""
    for store in data.node_stores:
        if isinstance(data, Data) and not {"x", "y"} <= set(store.keys()):
            raise ValueError("`x` or `y` is missing")
        for key in filter(store.__contains__, _PER_NODE):
            rows = store[key].size(0)
            if rows != store.num_nodes:
                raise ValueError(f"`{key}` has {rows} rows for {store.num_nodes} nodes")
            if (key == "x" and not store.x.is_floating_point()) or (key in _MASKS and store[key].dtype != torch.bool):
                raise ValueError(f"`{key}` has the type {store[key].dtype}")
    for store in data.edge_stores:
        _check_edges(store.edge_index, store.size())


def _check_edges(edge_index: Tensor, sizes: tuple[int | None, int | None]) -> None:
    if edge_index.dtype != torch.int64 or edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"`edge_index` must be int64 of shape (2, edges), got {edge_index.dtype} {edge_index.shape}")
    for ends, size in zip(edge_index, sizes, strict=True):
        if size is not None and ends.numel() and (int(ends.min()) < 0 or int(ends.max()) >= size):
            raise ValueError(f"an edge leads to node {int(ends.max())}, but there are {size} nodes")
