"""Mini-batches as PyG users know them: seeds first, every node once, the same from any batch on, prepared in a thread."""

import multiprocessing
import platform
import threading

import pytest
import torch
from sampled_graphs import hetero_graph, random_graph

from graphgym_lcat.data import NeighborLoader, keep_freed_memory


@pytest.fixture
def data():
    data = random_graph(60, 500, 1)
    data.x, data.y = torch.arange(60.0).view(-1, 1), torch.arange(60)
    data.edge_attr = torch.arange(500.0).view(-1, 1)
    return data


def equal(a, b):
    a, b = a.to_dict(), b.to_dict()
    return a.keys() == b.keys() and all(
        torch.equal(value, b[key]) if isinstance(value, torch.Tensor) else value == b[key] for key, value in a.items()
    )


def test_a_batch_has_what_pyg_s_has(data):
    loader = NeighborLoader(data, [5, 5], torch.arange(0, 60, 2), batch_size=8)
    assert len(loader) == 4
    batch = next(iter(loader))
    assert batch.batch_size == 8
    assert batch.n_id[:8].tolist() == batch.y[:8].tolist() == list(range(0, 16, 2))
    assert batch.input_id.tolist() == list(range(8))
    assert torch.equal(batch.x.view(-1).long(), batch.n_id)
    assert torch.equal(batch.edge_attr.view(-1).long(), batch.e_id)
    assert torch.equal(data.edge_index[:, batch.e_id], batch.n_id[batch.edge_index])
    assert (sum(batch.num_sampled_nodes), sum(batch.num_sampled_edges)) == (batch.num_nodes, batch.num_edges)


def test_an_epoch_visits_every_node_once_in_another_order_than_the_next(data):
    loader = NeighborLoader(data, [3], batch_size=9, shuffle=True)
    orders = [torch.cat([b.n_id[: b.batch_size] for b in loader]) for _ in range(2)]
    assert [order.sort().values.tolist() for order in orders] == [list(range(60))] * 2
    assert not torch.equal(*orders)


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_batches_are_a_function_of_seed_epoch_and_number(data, prefetch):
    complete = list(NeighborLoader(data, [4, 3], batch_size=7, shuffle=True, seed=5, prefetch=2).batches(3))
    torch.manual_seed(99)
    rest = list(NeighborLoader(data, [4, 3], batch_size=7, shuffle=True, seed=5, prefetch=prefetch).batches(3, first=4))
    assert len(rest) == len(complete) - 4
    assert all(equal(a, b) for a, b in zip(complete[4:], rest, strict=True))
    other = next(NeighborLoader(data, [4, 3], batch_size=7, shuffle=True, seed=6).batches(3, first=4))
    assert not torch.equal(other.n_id, rest[0].n_id)


def test_sampling_leaves_torch_s_generator_alone(data):
    before = torch.get_rng_state()
    list(NeighborLoader(data, [4], batch_size=7, shuffle=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_heterogeneous_batches(data):
    data = hetero_graph()
    data["paper"].x = torch.arange(40.0).view(-1, 1)
    loader = NeighborLoader(data, [4, 2], ("paper", torch.arange(20)), batch_size=6, drop_last=True)
    batches = list(loader)
    assert len(batches) == len(loader) == 3
    for number, batch in enumerate(batches):
        assert batch["paper"].batch_size == 6
        assert batch["paper"].n_id[:6].tolist() == list(range(6 * number, 6 * number + 6))
        assert torch.equal(batch["paper"].x.view(-1).long(), batch["paper"].n_id)
        for relation in data.edge_types:
            store = batch[relation]
            ends = torch.stack(
                [batch[kind].n_id[store.edge_index[i]] for i, kind in ((0, relation[0]), (1, relation[2]))]
            )
            assert torch.equal(ends, data[relation].edge_index[:, store.e_id])


def test_an_error_in_the_thread_reaches_the_caller_and_no_thread_is_left(data):
    def fail(batch):
        if batch.input_id[0] >= 14:
            raise RuntimeError("in the third batch")
        return batch

    seen = 0
    with pytest.raises(RuntimeError, match="in the third batch"):
        for _ in NeighborLoader(data, [4], batch_size=7, transform=fail):
            seen += 1
    assert seen == 2
    for _ in NeighborLoader(data, [4], batch_size=7):
        break
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lcat-sampler")]


def test_features_may_be_mapped_from_a_file(data, tmp_path):
    data.x.numpy().tofile(tmp_path / "x.bin")
    mapped = data.clone()
    mapped.x = torch.from_file(str(tmp_path / "x.bin"), size=60).view(60, 1)
    for batch, expected in zip(
        NeighborLoader(mapped, [4], batch_size=20), NeighborLoader(data, [4], batch_size=20), strict=True
    ):
        assert torch.equal(batch.x, expected.x)


def test_freed_memory_is_kept_where_the_c_library_can(monkeypatch):
    monkeypatch.setattr("platform.libc_ver", lambda: ("musl", "1.2"))
    assert not keep_freed_memory()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_glibc_keeps_freed_memory():
    context = multiprocessing.get_context("forkserver")  # the setting lasts as long as the process
    with context.Pool(1) as pool:
        assert pool.apply(keep_freed_memory)
