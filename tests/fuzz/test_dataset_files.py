"""Mutated raw dataset files: a graph or a message, and nothing that is in them runs."""

from __future__ import annotations

import collections
import io
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from fuzzing import damage

from graphgym_lcat.data.datasets import load_dataset
from graphgym_lcat.data.raw_files import check_raw_file
from lcat_core.errors import DatasetError

#: Pieces of pickles that call functions.
PAYLOADS = (
    b"cos\nmkdir\n(S'ran'\ntR.",
    b'cbuiltins\neval\n(S\'open("ran", "w")\'\ntR.',
    b"\x8c\x02os\x8c\x05mkdir\x93\x8c\x03ran\x85R.",
)


def planetoid_pickles() -> list[bytes]:
    contents = [
        sp.csr_matrix(np.eye(3, dtype=np.float32)),
        np.eye(3, dtype=np.int32),
        collections.defaultdict(list, {0: [1, 2], 1: [0]}),
    ]
    return [pickle.dumps(content, protocol=protocol) for content in contents for protocol in (0, 2, 4)]


def twitch_arrays() -> bytes:
    buffer = io.BytesIO()
    edges = np.stack([np.arange(20), (np.arange(20) + 1) % 20], axis=1)
    np.savez(buffer, features=np.ones((20, 6), np.float32), target=np.arange(20) % 2, edges=edges)
    return buffer.getvalue()


def attempt_raw_file(folder):
    pickles, arrays = planetoid_pickles(), twitch_arrays()
    twitch = folder / "TwitchEN" / "EN" / "raw" / "EN.npz"
    twitch.parent.mkdir(parents=True)
    os.chdir(folder)

    def attempt(rng):
        try:
            if rng.random() < 0.8:
                content = damage(rng.choice(pickles), rng)
                place = rng.randrange(len(content) + 1)
                (folder / "ind.cora.x").write_bytes(content[:place] + rng.choice((b"", *PAYLOADS)) + content[place:])
                check_raw_file(folder / "ind.cora.x")
            else:
                twitch.write_bytes(damage(arrays, rng))
                (twitch.parents[2] / "prepared.pt").unlink(missing_ok=True)
                load_dataset("TwitchEN", folder)
        except DatasetError as error:
            assert len(str(error)) < 5000
        assert not os.path.exists("ran"), "a dataset file ran code"

    return attempt


@pytest.mark.filterwarnings("ignore")  # NumPy warns about damaged headers in many ways
def test_dataset_files(fuzzer, monkeypatch):
    monkeypatch.chdir(fuzzer.folder)
    fuzzer.run("dataset files", 300, attempt_raw_file(fuzzer.folder))


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore")
def test_many_dataset_files(fuzzer, monkeypatch):
    monkeypatch.chdir(fuzzer.folder)
    fuzzer.run("dataset files", 0, attempt_raw_file(fuzzer.folder))
