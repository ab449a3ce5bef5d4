"""The heterophily benchmark: files of one format, ten official splits."""

import os

import numpy as np
import pytest
import torch

from graphgym_lcat.data.datasets import load_dataset, statistics
from graphgym_lcat.data.registry import DATASETS
from graphgym_lcat.data.splits import apply_split
from lcat_core.datasets import SIZES

PRESENT = ("Tolokers", "SquirrelFiltered", "ChameleonFiltered", "Minesweeper", "Actor")


def write_small(folder, nodes=12):
    rng = np.random.default_rng(0)
    splits = np.stack([rng.permutation(nodes) for _ in range(10)])
    spec = DATASETS["ChameleonFiltered"]
    spec.raw_dir(folder).mkdir(parents=True)
    np.savez(
        spec.raw_dir(folder) / spec.raw_files[0],
        node_features=rng.normal(size=(nodes, 3)).astype(np.float32),
        node_labels=np.arange(nodes) % 2,
        edges=np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1),
        train_masks=splits < 6,
        val_masks=(splits >= 6) & (splits < 9),
        test_masks=splits >= 9,
    )
    return splits


def test_a_dataset_that_pyg_does_not_know_is_read_from_the_same_format(tmp_path):
    splits = write_small(tmp_path)
    data = load_dataset("ChameleonFiltered", tmp_path)
    assert data.num_edges == 22 and data.is_undirected()
    for number in (0, 7):
        chosen = apply_split(data.clone(), "public", index=number)
        np.testing.assert_array_equal(chosen.test_mask.numpy(), splits[number] >= 9)


@pytest.mark.parametrize("number", [0, 4])
def test_the_split_seed_chooses_the_official_split(tmp_path, number):
    from torch_geometric.graphgym.config import cfg

    from graphgym_lcat.gym.loader import load_graph
    from graphgym_lcat.gym.settings import apply_settings

    splits = write_small(tmp_path)
    settings = {"dataset.format": "lcat", "dataset.name": "ChameleonFiltered", "dataset.dir": str(tmp_path)}
    apply_settings({**settings, "dataset.split_mode": "public", "dataset.split_seed": number})
    assert cfg.dataset.split_index == 0
    assert torch.equal(load_graph().test_mask, torch.from_numpy(splits[number] >= 9))


@pytest.mark.skipif("LCAT_DATA_DIR" not in os.environ, reason="LCAT_DATA_DIR is not set: no real data")
@pytest.mark.parametrize("name", PRESENT)
def test_the_real_files_have_their_published_size_and_ten_splits(name):
    data = load_dataset(name, sparse=True)
    assert statistics(data) == SIZES[name]
    assert data.train_mask.shape == (data.num_nodes, 10)
