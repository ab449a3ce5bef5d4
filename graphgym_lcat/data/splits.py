"""Splits into training, validation and test nodes: random, public, or from a file.

A random split depends only on the number of nodes, the ratios and its own seed, never on the model, the seed of the weights or a
global random state. All models are therefore compared on the same nodes of a dataset.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lcat_core.errors import DatasetError, unknown_name
from lcat_core.run_folder import SPLITS

MODES = ("random", "public", "file")
RATIOS = "three positive numbers (train, val, test) with a sum of at most 1"


class Split(NamedTuple):
    """Sorted node indices of the three parts."""

    train: Tensor
    val: Tensor
    test: Tensor


def are_ratios(ratios: Sequence[float]) -> bool:
    """Whether ``ratios`` are as described by ``RATIOS``; NaN is not a positive number."""
    return len(ratios) == 3 and all(ratio > 0 for ratio in ratios) and sum(ratios) <= 1 + 1e-9


def random_split(num_nodes: int, split_seed: int = 0, ratios: Sequence[float] = (0.7, 0.15, 0.15)) -> Split:
    """Draw a plain random (not stratified) split; ratios that sum to less than 1 leave nodes unused."""
    ratios = [float(ratio) for ratio in ratios]
    if not are_ratios(ratios):
        raise DatasetError(f"split ratios: expected {RATIOS}, got {ratios}")
    if not 0 <= split_seed < 2**32:
        raise DatasetError(f"split seed: expected an integer from 0 to 2**32 - 1, got {split_seed}")
    # NumPy guarantees that RandomState never changes what it draws; its newer generators and PyTorch give no such guarantee.
    order = torch.from_numpy(np.random.RandomState(split_seed).permutation(num_nodes)).long()
    bounds = [round(num_nodes * share) for share in np.cumsum(ratios)]
    parts = (order[: bounds[0]], order[bounds[0] : bounds[1]], order[bounds[1] : bounds[2]])
    return validated_split(dict(zip(SPLITS, parts, strict=True)), num_nodes, "random split")


def public_split(data: Data, index: int | None = None) -> Split:
    """Return the split that comes with the dataset; ``index`` selects the column of two-dimensional masks."""
    missing = [f"{part}_mask" for part in SPLITS if data.get(f"{part}_mask") is None]
    if missing:
        raise DatasetError(f"this dataset has no public split ({', '.join(missing)} missing); use a random one")
    masks = {part: data[f"{part}_mask"] for part in SPLITS}
    for part, mask in masks.items():
        if mask.dim() == 1:
            continue
        columns = mask.size(1)
        if index is None or not 0 <= index < columns:
            raise DatasetError(
                f"{part}_mask holds {columns} splits: expected an index from 0 to {columns - 1}, got {index}"
            )
        masks[part] = mask[:, index]
    return validated_split(masks, data.num_nodes, "public split")


def split_from_file(path: str | os.PathLike, num_nodes: int) -> Split:
    """Read ``train``, ``val`` and ``test`` (node indices or masks) from an ``.npz`` or ``.json`` file."""
    path = Path(path)
    try:
        if path.suffix == ".npz":
            # NumPy does not close a damaged file that it has opened itself.
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                content = {key: archive[key] for key in archive.files}
        elif path.suffix == ".json":
            content = json.loads(path.read_text(encoding="utf-8"))
        else:
            raise DatasetError(f"split file {path}: expected a file that ends in .npz or .json")
    except (OSError, zipfile.BadZipFile, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DatasetError(f"split file {path} could not be read: {error}") from error
    if not isinstance(content, dict) or not set(SPLITS) <= set(content):
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise DatasetError(f"split file {path}: expected the keys {', '.join(SPLITS)}, found {found}")
    return validated_split({part: content[part] for part in SPLITS}, num_nodes, f"split file {path}")


def validated_split(parts: Mapping[str, object], num_nodes: int, where: str) -> Split:
    """Convert index arrays or masks to a ``Split``.

    Raises:
        DatasetError: An empty part, an overlap, or an index out of range.
    """
    indices = {part: _indices(parts[part], num_nodes, f"{where}, {part}") for part in SPLITS}
    owner = torch.full((num_nodes,), -1)
    for number, (part, nodes) in enumerate(indices.items()):
        taken = nodes[owner[nodes] >= 0]
        if len(taken):
            other = SPLITS[int(owner[taken[0]])]
            raise DatasetError(f"{where}: node {int(taken[0])} is in both {other} and {part}")
        owner[nodes] = number
    return Split(**indices)


def _indices(nodes: object, num_nodes: int, where: str) -> Tensor:
    try:
        nodes = torch.as_tensor(nodes)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DatasetError(f"{where}: expected node indices or a mask ({error})") from error
    if nodes.dtype == torch.bool and tuple(nodes.shape) == (num_nodes,):
        nodes = nodes.nonzero().view(-1)
    if nodes.dim() != 1 or nodes.numel() == 0 or nodes.is_floating_point() or nodes.dtype == torch.bool:
        raise DatasetError(
            f"{where}: expected at least one node, as integers or a mask of {num_nodes} booleans, "
            f"got {nodes.dtype} of shape {tuple(nodes.shape)}"
        )
    nodes = nodes.long().sort().values
    if nodes[0] < 0 or nodes[-1] >= num_nodes:
        wrong = int(nodes[0] if nodes[0] < 0 else nodes[-1])
        raise DatasetError(f"{where}: node {wrong} is out of range, the graph has {num_nodes} nodes")
    if (nodes[1:] == nodes[:-1]).any():
        raise DatasetError(f"{where}: a node appears twice")
    return nodes


def apply_split(
    data: Data,
    mode: str = "random",
    *,
    split_seed: int = 0,
    ratios: Sequence[float] = (0.7, 0.15, 0.15),
    index: int | None = None,
    path: str | os.PathLike | None = None,
) -> Data:
    """Set ``train_mask``, ``val_mask`` and ``test_mask`` of ``data`` in place, and return it.

    Args:
        mode: ``random`` uses ``ratios`` and ``split_seed``; ``public`` uses the dataset's own masks, and ``index`` if they have
            several columns; ``file`` reads ``path``.
    """
    if mode == "random":
        split = random_split(data.num_nodes, split_seed, ratios)
    elif mode == "public":
        split = public_split(data, index)
    elif mode == "file":
        if not path:
            raise DatasetError("split mode 'file' needs the path of an .npz or .json file")
        split = split_from_file(path, data.num_nodes)
    else:
        raise DatasetError(unknown_name("split mode", mode, MODES))
    for part, nodes in split._asdict().items():
        mask = torch.zeros(data.num_nodes, dtype=torch.bool)
        mask[nodes] = True
        data[f"{part}_mask"] = mask
    return data
