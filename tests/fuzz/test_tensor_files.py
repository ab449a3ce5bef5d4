"""Damaged caches, weights and checkpoints: the same numbers, or a message; never other numbers."""

from __future__ import annotations

import pytest
import torch
from fuzzing import ODD_VALUES, damage, mutate
from torch_geometric.data import Data

from graphgym_lcat.data.prepared import read_prepared, write_prepared
from graphgym_lcat.data.tensor_file import DamagedFile, load_tensors


def example_files(folder) -> dict[str, object]:
    """A prepared dataset, weights and a checkpoint, by file name, with their content."""
    torch.manual_seed(0)
    edges = torch.randint(30, (2, 90))
    x = (torch.rand(30, 8) > 0.9).float().to_sparse_csr()
    write_prepared(Data(x=x, y=torch.arange(30) % 3, edge_index=edges), folder / "prepared.pt")
    weights = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.PReLU()).state_dict()
    torch.save(dict(weights), folder / "model.pt")
    state = {
        "model": dict(weights),
        "epoch": 7,
        "settings": {"seed": 1},
        "best": {"value": 0.5},
        "rng": torch.get_rng_state(),
    }
    torch.save(state, folder / "checkpoint.pt")
    return {name: torch.load(folder / name, weights_only=True) for name in ("prepared.pt", "model.pt", "checkpoint.pt")}


def equal(first, second) -> bool:
    if isinstance(first, torch.Tensor):
        return isinstance(second, torch.Tensor) and first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return (
            isinstance(second, dict)
            and first.keys() == second.keys()
            and all(equal(first[k], second[k]) for k in first)
        )
    return type(first) is type(second) and first == second


def attempt_damage(folder):
    contents = example_files(folder)
    originals = {name: (folder / name).read_bytes() for name in contents}

    def attempt(rng):
        name = rng.choice(sorted(originals))
        path = folder / f"damaged-{name}"
        path.write_bytes(damage(originals[name], rng))
        try:
            assert equal(load_tensors(path), contents[name]), "other numbers"
        except DamagedFile as error:
            assert "\n" not in str(error) and len(str(error)) < 1000

    return attempt


def attempt_forgery(folder):
    """Files with right checksums and wrong content."""
    prepared = example_files(folder)["prepared.pt"]
    values = [
        *ODD_VALUES[:-2],
        torch.zeros(3),
        torch.arange(30),
        torch.zeros(30, dtype=torch.bool),
        torch.full((2, 5), 2**40),
    ]
    values += [torch.zeros(1).expand(10**9), torch.full((2, 5), -1), torch.zeros(0), torch.zeros(2, 3, 4)]

    def attempt(rng):
        path = folder / "forged.pt"
        torch.save(mutate(prepared, rng, values), path)
        try:
            data = read_prepared(path)
        except DamagedFile as error:
            assert "\n" not in str(error) and len(str(error)) < 1000
            return
        assert all(0 <= int(end) < data.num_nodes for end in data.edge_index.flatten())

    return attempt


def test_damaged_files(fuzzer):
    fuzzer.run("damaged tensors", 1000, attempt_damage(fuzzer.folder))


def test_forged_datasets(fuzzer):
    fuzzer.run("forged datasets", 200, attempt_forgery(fuzzer.folder))


@pytest.mark.campaign
def test_many_damaged_files(fuzzer):
    fuzzer.run("damaged tensors", 0, attempt_damage(fuzzer.folder))


@pytest.mark.campaign
def test_many_forged_datasets(fuzzer):
    fuzzer.run("forged datasets", 0, attempt_forgery(fuzzer.folder))
