"""OGB's datasets, read by the ogb package from small generated data in OGB's raw layout."""

from __future__ import annotations

import builtins
import gzip
import shutil
import sys
import urllib.request

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

from graphgym_lcat.data.datasets import load_dataset
from graphgym_lcat.data.ogb import OGB_DATASETS
from graphgym_lcat.data.ogb_generator import generate_ogb
from lcat_core.errors import DatasetError, MissingPackage
from lcat_run.cli import main


@pytest.fixture(autouse=True)
def no_questions_and_no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("nothing may be asked and nothing downloaded")

    monkeypatch.setattr(builtins, "input", refuse)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)


def read(path):
    with gzip.open(path, "rt") as file:
        return np.loadtxt(file, delimiter=",", ndmin=2)


@pytest.mark.parametrize("name", ["ogbn-arxiv", "ogbn-products", "ogbn-proteins"])
def test_a_graph_is_undirected_and_has_the_edges_and_labels_of_its_files(name, ogb_dir):
    data = load_dataset(name, ogb_dir)
    raw = OGB_DATASETS[name].raw_dir(ogb_dir)
    pairs = read(raw / "edge.csv.gz").astype(int)
    expected = {tuple(pair) for pair in pairs} | {tuple(pair[::-1]) for pair in pairs}
    assert {tuple(edge) for edge in data.edge_index.t().tolist()} == expected
    assert data.num_edges == len(expected)
    np.testing.assert_array_equal(data.y.numpy().reshape(data.num_nodes, -1), read(raw / "node-label.csv.gz"))


def test_the_masks_are_ogbs_split(ogb_dir):
    data = load_dataset("ogbn-arxiv", ogb_dir)
    for part, file in (("train", "train"), ("val", "valid"), ("test", "test")):
        nodes = read(ogb_dir / "ogbn_arxiv" / "split" / "time" / f"{file}.csv.gz").astype(int).ravel()
        assert data[f"{part}_mask"].nonzero().view(-1).tolist() == sorted(nodes.tolist())


def test_features_of_proteins_are_the_mean_of_the_features_of_their_edges(ogb_dir):
    data = load_dataset("ogbn-proteins", ogb_dir)
    raw = ogb_dir / "ogbn_proteins" / "raw"
    pairs, features = read(raw / "edge.csv.gz").astype(int), read(raw / "edge-feat.csv.gz")
    node = int(pairs[0, 0])
    touching = (pairs == node).any(axis=1)
    np.testing.assert_allclose(data.x[node].numpy(), features[touching].mean(axis=0), rtol=1e-5)
    assert data.y.shape == (data.num_nodes, 112)
    assert data.y.is_floating_point()
    assert "edge_attr" not in data


def test_mag_has_every_relation_in_both_directions_and_labels_of_papers_only(ogb_dir):
    data = load_dataset("ogbn-mag", ogb_dir)
    assert isinstance(data, HeteroData)
    assert len(data.edge_types) == 7
    writes, written = data["author", "writes", "paper"].edge_index, data["paper", "rev_writes", "author"].edge_index
    assert torch.equal(writes.flip(0), written)
    assert [kind for kind in data.node_types if "x" in data[kind]] == ["paper"]
    assert data["paper"].y.shape == data["paper"].train_mask.shape


def test_a_second_opening_needs_neither_raw_files_nor_the_ogb_package(ogb_dir, tmp_path, monkeypatch):
    shutil.copytree(ogb_dir / "ogbn_arxiv", tmp_path / "ogbn_arxiv")
    first = load_dataset("ogbn-arxiv", tmp_path)
    shutil.rmtree(tmp_path / "ogbn_arxiv" / "raw")
    monkeypatch.setitem(sys.modules, "ogb", None)
    assert torch.equal(load_dataset("ogbn-arxiv", tmp_path).x, first.x)


def test_classes_are_trusted_only_while_ogb_reads(ogb_dir, tmp_path):
    shutil.copytree(ogb_dir / "ogbn_arxiv", tmp_path / "ogbn_arxiv", ignore=shutil.ignore_patterns("prepared*"))
    before = set(torch.serialization.get_safe_globals())
    load_dataset("ogbn-arxiv", tmp_path)
    assert set(torch.serialization.get_safe_globals()) == before


@pytest.mark.parametrize("name", OGB_DATASETS)
def test_missing_data_is_one_message_with_the_folder_and_what_belongs_there(name, tmp_path):
    with pytest.raises(DatasetError) as caught:
        load_dataset(name, tmp_path)
    message = str(caught.value)
    assert str(tmp_path / name.replace("-", "_")) in message
    assert "csv.gz" in message
    assert list(tmp_path.iterdir()) == []


def test_data_without_their_release_file_are_not_handed_to_ogb_which_would_ask(ogb_dir, tmp_path):
    shutil.copytree(ogb_dir / "ogbn_mag", tmp_path / "ogbn_mag", ignore=shutil.ignore_patterns("prepared*", "RELEASE*"))
    with pytest.raises(DatasetError, match=r"RELEASE_v2\.txt missing"):
        load_dataset("ogbn-mag", tmp_path)


def test_a_missing_ogb_package_is_named_with_its_extra(ogb_dir, tmp_path, monkeypatch):
    shutil.copytree(ogb_dir / "ogbn_arxiv", tmp_path / "ogbn_arxiv", ignore=shutil.ignore_patterns("prepared*"))
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", None)
    with pytest.raises(MissingPackage, match="pip install ogb"):
        load_dataset("ogbn-arxiv", tmp_path)


def test_damaged_files_are_named(ogb_dir, tmp_path):
    shutil.copytree(ogb_dir / "ogbn_arxiv", tmp_path / "ogbn_arxiv", ignore=shutil.ignore_patterns("prepared*"))
    (tmp_path / "ogbn_arxiv" / "raw" / "node-label.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(DatasetError, match="could not be read"):
        load_dataset("ogbn-arxiv", tmp_path)


def test_generated_data_have_the_asked_size_classes_and_a_mark(ogb_dir):
    data = load_dataset("ogbn-arxiv", ogb_dir)
    assert (data.num_nodes, data.num_edges, data.x.size(1)) == (169, 2 * 1166, 128)
    assert set(data.y.tolist()) == set(range(40))
    assert "Not the Open Graph Benchmark's" in (ogb_dir / "ogbn_arxiv" / "SYNTHETIC.txt").read_text()


def test_generated_edges_join_equal_classes_more_often_than_chance(ogb_dir):
    data = load_dataset("ogbn-arxiv", ogb_dir)
    source, target = data.edge_index
    assert (data.y[source] == data.y[target]).float().mean() > 5 / 40


def test_equal_seeds_generate_equal_files(tmp_path):
    folders = [generate_ogb("ogbn-proteins", 5000, tmp_path / str(number), seed=3)[0] for number in range(2)]
    files = sorted(path.relative_to(folders[0]) for path in folders[0].rglob("*.gz"))
    assert all((folders[0] / file).read_bytes() == (folders[1] / file).read_bytes() for file in files)


def test_the_generator_never_overwrites(tmp_path):
    real = tmp_path / "ogbn_arxiv"
    real.mkdir()
    (real / "precious").write_text("data")
    with pytest.raises(DatasetError, match="which are not overwritten"):
        generate_ogb("ogbn-arxiv", 1000, tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["ogbn_arxiv", "precious"]


def test_the_command_generates_and_lists_data_as_synthetic(tmp_path, capsys):
    assert main(["datasets", "ogbn-arxiv", "--generate", "--scale", "2000", "--dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("wrote 85 nodes and 583 edges in the shape of ogbn-arxiv")
    assert any(line.startswith("ogbn-arxiv") and line.endswith("SYNTHETIC") for line in lines)


def test_the_command_refuses_what_it_cannot_generate(tmp_path, capsys):
    assert main(["datasets", "Cora", "--generate", "--dir", str(tmp_path)]) == 2
    assert "unknown OGB dataset: 'Cora'" in capsys.readouterr().err
    assert main(["datasets", "--scale", "3"]) == 2
    assert "belong to --generate" in capsys.readouterr().err
