"""The dataset that the configuration selects, split, and the loader through which GraphGym finds it."""

from __future__ import annotations

import functools
from typing import Any

from torch_geometric.data import Data, HeteroData, InMemoryDataset
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import loader_dict

from graphgym_lcat.data.datasets import dataset_names, load_dataset
from graphgym_lcat.data.noise import disturb
from graphgym_lcat.data.ogb import OGB_DATASETS
from graphgym_lcat.data.registry import EMBEDDED, data_directory
from graphgym_lcat.data.splits import apply_split
from graphgym_lcat.gym.registration import register_once
from lcat_core.errors import DatasetError, unknown_name
from lcat_core.stock_graphgym import PYG_WITH_MASKS

# GraphGym's default for `dataset.dir`, which does not override LCAT_DATA_DIR.
_GRAPHGYM_DIR = "./datasets"


@functools.lru_cache(maxsize=2)
def _load(
    name: str, data_dir: str | None, sparse: bool, normalize_rows: bool, parameters: tuple[tuple[str, Any], ...]
) -> Data | HeteroData:
    """Load a dataset and keep it, and with it the layout of its graph: a sweep runs many models on one dataset in turn."""
    return load_dataset(name, data_dir, sparse=sparse, normalize_rows=normalize_rows, **dict(parameters))


def known_datasets() -> list[str] | None:
    """Return the names that can be loaded; None if the loader of another plugin may know more."""
    return None if set(loader_dict) - {"lcat"} else dataset_names()


def load_graph(sparse: bool = True) -> Data | HeteroData:
    """Load the graph of ``cfg.dataset`` with the noise of ``cfg.noise``; it has ``train_mask``, ``val_mask`` and ``test_mask``.

    Raises:
        DatasetError: The dataset, or its split, is unavailable or does not match its parameters.
    """
    dataset = cfg.dataset
    if dataset.name in dataset_names():
        parameters = tuple(sorted(_parameters(dataset.name).items()))
        data = _load(dataset.name, _configured_dir(), sparse, dataset.row_normalize, parameters)
    else:
        data = _load_from_other_plugins()
    data = disturb(data, features=cfg.noise.features, edges=cfg.noise.edges, seed=cfg.seed)
    apply_split(
        labelled_nodes(data),
        dataset.split_mode,
        split_seed=dataset.split_seed,
        ratios=dataset.split,
        index=dataset.split_index or dataset.split_seed,  # several public splits are chosen like random ones
        path=dataset.split_file,
    )
    return data


def _configured_dir() -> str | None:
    return None if cfg.dataset.dir == _GRAPHGYM_DIR else cfg.dataset.dir


def _parameters(name: str) -> dict[str, Any]:
    """Return the parameters of a dataset from its group of the configuration."""
    embedded = EMBEDDED.get(name)
    if embedded is None or not embedded.group:
        return {}
    group = cfg[embedded.group]
    return {parameter: group[parameter] for parameter in embedded.parameters if parameter in group}


def dataset_title() -> str:
    """Return the name of the dataset in tables; generated data are marked, so that nobody mistakes them for OGB's."""
    name = cfg.dataset.label or cfg.dataset.name
    spec = OGB_DATASETS.get(cfg.dataset.name)
    synthetic = spec is not None and spec.is_synthetic(data_directory(_configured_dir()))
    return f"{name} (synthetic)" if synthetic else name


def labelled_nodes(data: Data | HeteroData) -> Any:
    """Return what holds ``x``, ``y`` and the masks: the graph, or the type of nodes to classify."""
    return data[OGB_DATASETS[cfg.dataset.name].target] if isinstance(data, HeteroData) else data


def _load_from_other_plugins() -> Data:
    for name, loader in loader_dict.items():
        dataset = None if name == "lcat" else loader(cfg.dataset.format, cfg.dataset.name, cfg.dataset.dir)
        if dataset is not None:
            return dataset[0]
    raise DatasetError(unknown_name("dataset", cfg.dataset.name, dataset_names()), "dataset.name")


class SingleGraph(InMemoryDataset):
    """One graph as the dataset that GraphGym expects."""

    def __init__(self, data: Data):
        super().__init__()
        self.data, self.slices = self.collate([data])


def load_for_graphgym(format: str, name: str, dataset_dir: str) -> SingleGraph | None:
    """Load a dataset for stock GraphGym.

    ``dataset.format: lcat`` stands for all our datasets with our splits. For ``PyG``, those that stock GraphGym cannot split are
    loaded.
    """
    if format == "lcat" or (format == "PyG" and name in dataset_names() and name not in PYG_WITH_MASKS):
        return SingleGraph(load_graph(sparse=False))
    return None


register_once(loader_dict, "lcat", load_for_graphgym)
