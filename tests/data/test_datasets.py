from __future__ import annotations

import multiprocessing
import os
import urllib.request

import numpy as np
import pytest
import torch
from torch_geometric import datasets as pyg
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from graphgym_lcat.data import datasets
from graphgym_lcat.data.datasets import dataset_names, load_dataset, statistics
from graphgym_lcat.data.registry import DATASETS, EMBEDDED, data_directory, register_dataset
from lcat_core.datasets import HETEROPHILOUS
from lcat_core.errors import DatasetError

NODES = 20  # of the dataset that conftest.py writes

PAPER = [name for name in DATASETS if name not in HETEROPHILOUS]
needs_real_data = pytest.mark.skipif(
    not os.environ.get("LCAT_DATA_DIR"), reason="LCAT_DATA_DIR is not set: no real datasets to open"
)


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("network is unreachable")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr("torch_geometric.io.fs.cp", refuse)


@needs_real_data
@pytest.mark.parametrize("name", PAPER)
def test_a_real_dataset_has_the_published_size_and_is_undirected(name):
    data = load_dataset(name, sparse=True)
    assert statistics(data) == DATASETS[name].published
    assert data.is_undirected()


@needs_real_data
def test_average_degrees_equal_the_published_ones():
    published = [35.76, 31.13, 15.33, 15.22, 14.38, 10.91, 8.93, 5.97, 4.50, 3.90, 2.74]
    found = [statistics(load_dataset(name, sparse=True)).avg_degree for name in PAPER]
    assert [round(degree, 2) for degree in found] == published


@needs_real_data
@pytest.mark.parametrize("name", ["Cora", "DBLP"])
def test_a_prepared_dataset_equals_what_pyg_gives(name, tmp_path):
    spec = DATASETS[name]
    (tmp_path / spec.subfolder).mkdir()
    (tmp_path / spec.subfolder / "raw").symlink_to(spec.raw_dir(data_directory()).absolute())
    expected = spec.pyg_class(root=str(tmp_path), **spec.arguments)[0]
    data = load_dataset(name)
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.y, expected.y)
    assert torch.equal(data.edge_index, expected.edge_index)
    assert set(data.keys()) == set(expected.keys())


def test_edges_become_undirected_and_missing_directions_are_added(twitch_dir):
    data = load_dataset("TwitchEN", twitch_dir)
    assert data.num_nodes == NODES
    assert data.is_undirected()
    assert data.num_edges == 2 * NODES + 1


def test_the_second_opening_reads_the_prepared_file_only(twitch_dir, monkeypatch):
    first = load_dataset("TwitchEN", twitch_dir)
    (DATASETS["TwitchEN"].raw_dir(twitch_dir) / "EN.npz").unlink()
    monkeypatch.setattr(datasets, "_read_with_pyg", lambda *args: pytest.fail("read the raw files again"))
    assert torch.equal(load_dataset("TwitchEN", twitch_dir).x, first.x)


def test_a_newer_raw_file_is_prepared_again(twitch_dir, write_twitch):
    before = load_dataset("TwitchEN", twitch_dir)
    write_twitch(twitch_dir, shift=1.0)
    os.utime(twitch_dir / "TwitchEN" / "prepared.pt", ns=(0, 0))
    assert torch.allclose(load_dataset("TwitchEN", twitch_dir).x, before.x + 1)


def _load_and_report(folder, queue):
    calls = []
    original = datasets._read_with_pyg
    datasets._read_with_pyg = lambda *args: (calls.append(1), original(*args))[1]
    queue.put((load_dataset("TwitchEN", folder).num_edges, len(calls)))


def test_parallel_runs_prepare_a_dataset_once(twitch_dir):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_load_and_report, args=(twitch_dir, queue)) for _ in range(4)]
    for worker in workers:
        worker.start()
    reports = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert {edges for edges, _ in reports} == {2 * NODES + 1}
    assert sum(prepared for _, prepared in reports) == 1
    assert sorted(p.name for p in (twitch_dir / "TwitchEN").iterdir()) == [
        "EN",
        "prepared.lock",
        "prepared.pt",
    ]


def test_a_read_only_folder_is_prepared_in_the_cache(twitch_dir, tmp_path_factory, monkeypatch):
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    (twitch_dir / "TwitchEN").chmod(0o555)
    assert load_dataset("TwitchEN", twitch_dir).num_nodes == NODES
    assert [path.name for path in (twitch_dir / "TwitchEN").iterdir()] == ["EN"]
    assert [path.name for path in cache.glob("graphgym-lcat/TwitchEN-*/*.pt")] == ["prepared.pt"]


def test_missing_files_in_a_read_only_folder_are_named(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(DatasetError, match=r"github\.npz should be in .*/GitHub/raw.*read-only"):
        load_dataset("GitHub", tmp_path)


def test_a_failed_download_names_the_files_and_their_folder(tmp_path, no_network):
    with pytest.raises(DatasetError, match=r"network is unreachable.*Put ind\.cora\.x.* into .*/Cora/Cora/raw"):
        load_dataset("Cora", tmp_path)


@pytest.mark.parametrize("name", ["GitHub", "FacebookPagePage", "TwitchEN"])
def test_a_dataset_whose_site_is_gone_says_so(name, tmp_path, no_network):
    with pytest.raises(DatasetError, match=rf"site for it is gone.*Put .*npz into .*/{name}.*/raw"):
        load_dataset(name, tmp_path)


def test_a_download_is_kept_only_when_it_could_be_read(tmp_path, monkeypatch):
    def download_something_else(self):
        np.savez(os.path.join(self.raw_dir, "EN.npz"), page_not_found=np.zeros(1))

    monkeypatch.setattr(pyg.Twitch, "download", download_something_else)
    with pytest.raises(DatasetError, match=r"EN\.npz in .* could not be read"):
        load_dataset("TwitchEN", tmp_path)
    assert DATASETS["TwitchEN"].missing_files(tmp_path) == ["EN.npz"]


def test_a_download_that_succeeds_is_moved_to_its_folder(tmp_path, monkeypatch, write_twitch):
    write_twitch(tmp_path / "server")

    def download(self):
        source = DATASETS["TwitchEN"].raw_dir(tmp_path / "server") / "EN.npz"
        os.link(source, os.path.join(self.raw_dir, "EN.npz"))

    monkeypatch.setattr(pyg.Twitch, "download", download)
    assert load_dataset("TwitchEN", tmp_path / "data").num_nodes == NODES
    assert DATASETS["TwitchEN"].missing_files(tmp_path / "data") == []


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(DatasetError, match="unknown dataset: 'citeseer'; did you mean 'CiteSeer'"):
        load_dataset("citeseer")


def test_an_unknown_parameter_offers_the_nearest():
    with pytest.raises(DatasetError, match="unknown parameter of BlockModel: 'degree'; did you mean 'avg_degree'"):
        load_dataset("BlockModel", degree=3)


def test_a_dataset_of_files_takes_no_parameters():
    with pytest.raises(DatasetError, match="Cora is read from files and takes no parameters"):
        load_dataset("Cora", avg_degree=3)


def test_the_directory_is_the_configured_one_then_the_environment_then_datasets(monkeypatch):
    monkeypatch.setenv("LCAT_DATA_DIR", "/from/environment")
    assert str(data_directory("/configured")) == "/configured"
    assert str(data_directory()) == "/from/environment"
    monkeypatch.delenv("LCAT_DATA_DIR")
    assert str(data_directory("")) == "datasets"


def test_karate_club_is_embedded():
    data = load_dataset("KarateClub")
    assert (data.num_nodes, data.num_edges) == (34, 156)


def test_sparse_features_are_given_only_when_asked_for():
    assert load_dataset("KarateClub").x.layout == torch.strided
    sparse = load_dataset("KarateClub", sparse=True).x
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(sparse.to_dense(), torch.eye(34))


@pytest.fixture
def registry():
    """What a test registers is forgotten after it."""
    before = dict(EMBEDDED)
    yield EMBEDDED
    EMBEDDED.clear()
    EMBEDDED.update(before)


def ring(nodes: int = 6) -> Data:
    source = torch.arange(nodes)
    edge_index = to_undirected(torch.stack([source, (source + 1) % nodes]))
    return Data(x=torch.eye(nodes), edge_index=edge_index, y=source % 2)


def test_a_registered_function_is_a_dataset(registry):
    register_dataset("Ring")(ring)
    assert load_dataset("Ring").num_nodes == 6
    assert load_dataset("Ring", nodes=8).num_edges == 16
    with pytest.raises(DatasetError, match="unknown dataset: 'Rign'; did you mean 'Ring'"):
        load_dataset("Rign")


@pytest.mark.parametrize("name", ["Cora", "ogbn-arxiv", "BlockModel"])
def test_the_name_of_another_dataset_is_refused(name, registry):
    with pytest.raises(DatasetError, match=f"a dataset '{name}' exists already"):
        register_dataset(name)(ring)


def test_a_function_can_be_registered_again_after_a_reload(registry):
    for _ in range(2):
        register_dataset("Ring")(ring)
    assert "Ring" in dataset_names()
