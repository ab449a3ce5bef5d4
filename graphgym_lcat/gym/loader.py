"""The dataset that the configuration asks for, split, and the loader through which GraphGym finds it."""

from __future__ import annotations

import functools
from typing import Any

from torch_geometric.data import Data, HeteroData, InMemoryDataset
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import loader_dict

from graphgym_lcat.data.datasets import EMBEDDED, FILED, load_dataset
from graphgym_lcat.data.errors import unknown_name
from graphgym_lcat.data.noise import disturb
from graphgym_lcat.data.ogb import OGB_DATASETS
from graphgym_lcat.data.registry import data_directory
from graphgym_lcat.data.splits import apply_split
from graphgym_lcat.gym.registration import register_once

# GraphGym's default is the last choice of ours, so it does not count as a wish.
_GRAPHGYM_DIR = "./datasets"
_STOCK_WITH_MASKS = ("Cora", "CiteSeer", "PubMed")


@functools.lru_cache(maxsize=2)
def _load(name: str, data_dir: str | None, sparse: bool, normalize_rows: bool, parameters: tuple) -> Data | HeteroData:
    """A sweep runs many models on one dataset, one after the other: keep it, and with it the graph's layout."""
    return load_dataset(name, data_dir, sparse=sparse, normalize_rows=normalize_rows, **dict(parameters))


def known_datasets() -> list[str] | None:
    """Names that can be loaded; None where another plugin's loader may know more."""
    return None if set(loader_dict) - {"lcat"} else [*FILED, *EMBEDDED]


def load_graph(sparse: bool = True) -> Data | HeteroData:
    """The graph of ``cfg.dataset`` with the noise of ``cfg.noise``, and ``train_mask``, ``val_mask`` and ``test_mask``."""
    dataset = cfg.dataset
    if dataset.name in FILED or dataset.name in EMBEDDED:
        data_dir = _configured_dir()
        parameters = _parameters(dataset.name)
        data = _load(dataset.name, data_dir, sparse, dataset.row_normalize, tuple(sorted(parameters.items())))
    else:
        data = _load_from_other_plugins()
    data = disturb(data, features=cfg.noise.features, edges=cfg.noise.edges, seed=cfg.seed)
    apply_split(
        labelled_nodes(data),
        dataset.split_mode,
        split_seed=dataset.split_seed,
        ratios=dataset.split,
        index=dataset.split_index,
        path=dataset.split_file,
    )
    return data


def _configured_dir() -> str | None:
    return None if cfg.dataset.dir == _GRAPHGYM_DIR else cfg.dataset.dir


def dataset_title() -> str:
    """The dataset's name in tables. Generated data never pass for OGB's, nor are they compared with published numbers."""
    name = cfg.dataset.label or cfg.dataset.name
    spec = OGB_DATASETS.get(cfg.dataset.name)
    synthetic = spec is not None and spec.is_synthetic(data_directory(_configured_dir()))
    return f"{name} (synthetic)" if synthetic else name


def labelled_nodes(data: Data | HeteroData) -> Any:
    """What holds ``x``, ``y`` and the masks: the graph, or the type of its nodes that are classified."""
    return data[OGB_DATASETS[cfg.dataset.name].target] if isinstance(data, HeteroData) else data


def _parameters(name: str) -> dict[str, Any]:
    """Those of a generated graph."""
    if name == "BlockModel":
        return dict(cfg.block_model)
    if name == "csbm":
        return {key: cfg.csbm[key] for key in ("n", "p", "q", "mu_norm", "sigma", "d", "seed")}
    return {}


def _load_from_other_plugins() -> Data:
    for name, loader in loader_dict.items():
        dataset = None if name == "lcat" else loader(cfg.dataset.format, cfg.dataset.name, cfg.dataset.dir)
        if dataset is not None:
            return dataset[0]
    raise unknown_name("dataset", cfg.dataset.name, [*FILED, *EMBEDDED])


class SingleGraph(InMemoryDataset):
    """One graph as the dataset that GraphGym expects."""

    def __init__(self, data: Data):
        super().__init__()
        self.data, self.slices = self.collate([data])


def load_for_graphgym(format: str, name: str, dataset_dir: str) -> SingleGraph | None:
    """``dataset.format: lcat`` has all our datasets with our splits; ``PyG`` those that stock GraphGym cannot split."""
    ours = name in FILED or name in EMBEDDED
    if format == "lcat" or (format == "PyG" and ours and name not in _STOCK_WITH_MASKS):
        return SingleGraph(load_graph(sparse=False))
    return None


register_once(loader_dict, "lcat", load_for_graphgym)
