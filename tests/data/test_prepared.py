"""``prepared.pt``: damage is noticed, and the file is written again from the raw files."""

import errno
import logging
import random
import zipfile

import pytest
import torch
from torch_geometric.data import HeteroData

from graphgym_lcat.data.datasets import load_dataset
from graphgym_lcat.data.prepared import read_prepared, write_prepared
from graphgym_lcat.data.registry import DATASETS
from graphgym_lcat.data.tensor_file import DamagedFile, load_tensors
from lcat_core.errors import DatasetError


@pytest.fixture
def prepared(twitch_dir):
    load_dataset("TwitchEN", twitch_dir)
    return twitch_dir / "TwitchEN" / "prepared.pt"


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first.keys())  # noqa: SIM118


def test_flipped_bits_never_change_the_data(prepared):
    content, expected = prepared.read_bytes(), read_prepared(prepared)
    places = random.Random(0).sample(range(8 * len(content)), 300)
    noticed = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        prepared.write_bytes(damaged)
        try:
            assert same(read_prepared(prepared), expected)
        except DamagedFile:
            noticed += 1
    assert noticed > 50  # the others are in padding, or in fields of zip that nobody reads


def test_a_damaged_file_is_written_again_with_one_line(prepared, twitch_dir, caplog):
    expected = read_prepared(prepared)
    prepared.write_bytes(prepared.read_bytes()[:-100])
    with caplog.at_level(logging.WARNING):
        assert same(load_dataset("TwitchEN", twitch_dir), expected)
    (record,) = caplog.records
    assert "prepared.pt is damaged" in record.message and "written again from the raw files" in record.message
    assert same(read_prepared(prepared), expected)


def test_a_damaged_file_in_a_read_only_folder_is_replaced_by_one_in_the_cache(prepared, twitch_dir, monkeypatch):
    expected = read_prepared(prepared)
    prepared.write_bytes(b"not a file of tensors")
    prepared.parent.chmod(0o555)
    monkeypatch.setenv("XDG_CACHE_HOME", str(twitch_dir / "cache"))
    assert same(load_dataset("TwitchEN", twitch_dir), expected)


def test_a_damaged_file_without_raw_files_is_refused(prepared, twitch_dir):
    prepared.write_bytes(b"not a file of tensors")
    (DATASETS["TwitchEN"].raw_dir(twitch_dir) / "EN.npz").unlink()
    with pytest.raises(DatasetError, match=r"prepared\.pt is damaged .*EN\.npz in .* is missing; delete"):
        load_dataset("TwitchEN", twitch_dir)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["edge_index"].__setitem__((0, 0), 70368744177668), "leads to node 70368744177668"),
        (lambda c: c["edge_index"].__setitem__((1, 0), -1), "an edge leads to"),
        (lambda c: c.update(edge_index=c["edge_index"].float()), "`edge_index` must be int64"),
        (lambda c: c.update(edge_index=c["edge_index"][0]), "`edge_index` must be int64"),
        (lambda c: c.update(y=c["y"][1:]), "`y` has 19 rows for 20 nodes"),
        (lambda c: c.update(x=c["x"].long()), "`x` has the type"),
        (lambda c: c.update(train_mask=torch.zeros(20)), "`train_mask` has the type"),
        (lambda c: c.update(y=torch.zeros(1).expand(10**12)), "larger than its data"),
        (lambda c: c.pop("x"), "`x` or `y` is missing"),
        (lambda c: c.pop("edge_index"), "does not hold a graph"),
        (lambda c: c.update(x="features"), "does not hold a graph"),
    ],
)
def test_what_cannot_be_a_graph_is_named(prepared, change, message):
    content = torch.load(prepared, weights_only=True)
    change(content)
    torch.save(content, prepared)
    with pytest.raises(DamagedFile, match=message):
        read_prepared(prepared)


@pytest.mark.parametrize("content", [None, [1], {"stores": 3}, {"x_crow": torch.zeros(2)}])
def test_other_documents_are_not_a_graph(prepared, content):
    torch.save(content, prepared)
    with pytest.raises(DamagedFile, match="does not hold a graph"):
        read_prepared(prepared)


def test_a_graph_with_several_types_of_nodes_is_checked_too(tmp_path):
    data = HeteroData()
    data["paper"].x, data["paper"].num_nodes, data["author"].num_nodes = torch.zeros(3, 2), 3, 2
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [2, 0]])
    write_prepared(data, tmp_path / "prepared.pt")
    assert read_prepared(tmp_path / "prepared.pt").edge_types == data.edge_types
    data["author", "writes", "paper"].edge_index[0, 0] = 2
    write_prepared(data, tmp_path / "prepared.pt")
    with pytest.raises(DamagedFile, match="leads to node 2, but there are 2 nodes"):
        read_prepared(tmp_path / "prepared.pt")


def test_a_part_that_is_marked_as_a_folder_is_not_read_as_garbage(tmp_path):
    path = tmp_path / "tensors.pt"
    torch.save({"a": torch.ones(8)}, path)
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02", content.index(b"data/0"))
    while content[entry + 46 :].find(b"tensors/data/0") != 0:
        entry = content.index(b"PK\x01\x02", entry + 4)
    content[entry + 38] |= 0x10  # an attribute that zip has for folders
    path.write_bytes(content)
    with pytest.raises(DamagedFile, match="wrong header of tensors/data/0"):
        load_tensors(path)


def test_a_file_of_compressed_parts_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(10**6))
    with pytest.raises(DamagedFile, match="compressed parts"):
        load_tensors(tmp_path / "bomb.pt")


@pytest.mark.parametrize(
    "error", [PermissionError(errno.EACCES, "no"), OSError(errno.EIO, "no"), MemoryError(), torch.OutOfMemoryError()]
)
def test_a_file_that_cannot_be_read_now_is_not_called_damaged(tmp_path, monkeypatch, error):
    def fail(path):
        raise error

    monkeypatch.setattr("graphgym_lcat.data.tensor_file._verify", fail)
    with pytest.raises(type(error)) as raised:
        load_tensors(tmp_path / "a.pt")
    assert raised.value is error
