from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphgym_lcat.data.splits import apply_split, public_split, random_split, split_from_file
from lcat_core.errors import DatasetError
from lcat_core.run_folder import SPLITS


def graph(num_nodes: int = 10, **masks) -> Data:
    return Data(x=torch.zeros(num_nodes, 1), edge_index=torch.empty(2, 0, dtype=torch.long), **masks)


def mask(*nodes: int, size: int = 10) -> torch.Tensor:
    out = torch.zeros(size, dtype=torch.bool)
    out[list(nodes)] = True
    return out


def test_a_random_split_never_changes():
    assert [part.tolist() for part in random_split(20, split_seed=0)] == [
        [1, 2, 4, 5, 6, 7, 8, 9, 10, 13, 14, 17, 18, 19],
        [3, 11, 16],
        [0, 12, 15],
    ]
    assert [part[:5].tolist() for part in random_split(2708, split_seed=7)] == [
        [0, 2, 3, 4, 6],
        [1, 10, 14, 16, 31],
        [5, 11, 18, 29, 33],
    ]


def test_a_random_split_uses_every_node_once_in_the_ratios_asked_for():
    split = random_split(2708)
    assert [len(part) for part in split] == [1896, 406, 406]
    assert torch.equal(torch.cat(split).sort().values, torch.arange(2708))


def test_a_random_split_ignores_the_global_seeds():
    torch.manual_seed(1)
    np.random.seed(1)
    first = random_split(100, 5)
    torch.manual_seed(2)
    np.random.seed(2)
    assert all(torch.equal(a, b) for a, b in zip(first, random_split(100, 5), strict=True))


def test_a_random_split_leaves_the_global_random_state_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    random_split(100, 5)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_another_split_seed_gives_another_split():
    assert not torch.equal(random_split(100, 0).test, random_split(100, 1).test)


def test_ratios_below_one_leave_nodes_out():
    assert [len(part) for part in random_split(100, 0, (0.1, 0.2, 0.3))] == [10, 20, 30]


@pytest.mark.parametrize("ratios", [(0.7, 0.3), (0.8, 0.2, 0.2), (0.5, 0.5, 0.0), (0.9, -0.1, 0.2)])
def test_bad_ratios_are_refused(ratios):
    with pytest.raises(DatasetError, match="expected three positive numbers"):
        random_split(100, 0, ratios)


def test_a_negative_split_seed_is_refused():
    with pytest.raises(DatasetError, match="split seed: expected an integer from 0"):
        random_split(100, -1)


def test_a_graph_too_small_for_three_parts_is_refused():
    with pytest.raises(DatasetError, match="random split, test: expected at least one node"):
        random_split(2)


def test_public_masks_are_used_as_they_are():
    data = graph(train_mask=mask(0, 1), val_mask=mask(2), test_mask=mask(7, 9))
    assert [part.tolist() for part in public_split(data)] == [[0, 1], [2], [7, 9]]


def test_a_missing_public_mask_is_named():
    with pytest.raises(DatasetError, match=r"no public split \(val_mask, test_mask"):
        public_split(graph(train_mask=mask(0)))


def test_two_dimensional_masks_are_chosen_by_index():
    masks = {f"{part}_mask": torch.stack([mask(i), mask(i + 5)], dim=1) for i, part in enumerate(SPLITS)}
    data = graph(**masks)
    assert [part.tolist() for part in public_split(data, 1)] == [[5], [6], [7]]
    with pytest.raises(DatasetError, match="holds 2 splits: expected an index from 0 to 1, got None"):
        public_split(data)
    with pytest.raises(DatasetError, match="got 2"):
        public_split(data, 2)


def test_overlapping_masks_are_refused():
    data = graph(train_mask=mask(0, 1), val_mask=mask(1), test_mask=mask(7))
    with pytest.raises(DatasetError, match="node 1 is in both train and val"):
        public_split(data)


def test_an_empty_mask_is_refused():
    data = graph(train_mask=mask(0, 1), val_mask=mask(), test_mask=mask(7))
    with pytest.raises(DatasetError, match="public split, val: expected at least one node"):
        public_split(data)


CONTENT = {"train": [3, 1], "val": [4], "test": [9, 8]}


def test_a_split_is_read_from_npz(tmp_path):
    np.savez(tmp_path / "s.npz", **CONTENT)
    assert [part.tolist() for part in split_from_file(tmp_path / "s.npz", 10)] == [[1, 3], [4], [8, 9]]


def test_masks_are_read_from_npz(tmp_path):
    np.savez(tmp_path / "s.npz", train=mask(1, 3).numpy(), val=mask(4).numpy(), test=mask(8).numpy())
    assert [part.tolist() for part in split_from_file(tmp_path / "s.npz", 10)] == [[1, 3], [4], [8]]


def test_a_split_is_read_from_json(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(CONTENT))
    assert [part.tolist() for part in split_from_file(tmp_path / "s.json", 10)] == [[1, 3], [4], [8, 9]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**CONTENT, "val": [3]}, "node 3 is in both train and val"),
        ({**CONTENT, "val": [10]}, "node 10 is out of range, the graph has 10 nodes"),
        ({**CONTENT, "val": [-1]}, "node -1 is out of range"),
        ({**CONTENT, "val": [4, 4]}, "val: a node appears twice"),
        ({**CONTENT, "val": []}, "val: expected at least one node"),
        ({**CONTENT, "val": [0.5]}, "val: expected at least one node, as integers"),
        ({**CONTENT, "val": ["a"]}, "val: expected node indices or a mask"),
        ({"train": [1], "valid": [2], "test": [3]}, "expected the keys train, val, test, found"),
        ([1, 2], "expected the keys train, val, test, found list"),
    ],
)
def test_a_bad_split_file_gets_one_message_that_names_it(tmp_path, content, message):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DatasetError, match=rf"split file .*s\.json.*{message}"):
        split_from_file(path, 10)


@pytest.mark.parametrize("name", ["broken.npz", "broken.json"])
def test_an_unreadable_split_file_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04\xff")
    with pytest.raises(DatasetError, match="could not be read"):
        split_from_file(tmp_path / name, 10)


def test_a_missing_split_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"gone\.npz could not be read"):
        split_from_file(tmp_path / "gone.npz", 10)


def test_a_split_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"expected a file that ends in \.npz or \.json"):
        split_from_file(tmp_path / "s.csv", 10)


def test_apply_split_sets_the_masks():
    data = apply_split(graph(20), split_seed=3)
    assert [int(data[f"{part}_mask"].sum()) for part in SPLITS] == [14, 3, 3]


def test_apply_split_replaces_two_dimensional_masks_by_the_chosen_column():
    masks = {f"{part}_mask": torch.stack([mask(i), mask(i + 5)], dim=1) for i, part in enumerate(SPLITS)}
    assert apply_split(graph(**masks), "public", index=0).val_mask.nonzero().tolist() == [[1]]


def test_an_unknown_mode_offers_the_nearest():
    with pytest.raises(DatasetError, match="unknown split mode: 'randon'; did you mean 'random'"):
        apply_split(graph(), "randon")


def test_mode_file_needs_a_path():
    with pytest.raises(DatasetError, match="needs the path"):
        apply_split(graph(), "file")
