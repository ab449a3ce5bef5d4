"""No dataset file runs code."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from graphgym_lcat.data.raw_files import check_raw_file
from lcat_core.errors import DatasetError


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (os.mkdir, (str(self.marker),))


@pytest.mark.parametrize("name", ["ind.cora.x", "ind.cora.graph", "github.npz"])
def test_a_payload_is_refused_and_not_run(tmp_path, name):
    marker, path = tmp_path / "ran", tmp_path / name
    if name.endswith(".npz"):
        np.savez(path, features=np.array([Payload(marker)], dtype=object), target=np.zeros(3))
    else:
        path.write_bytes(pickle.dumps({"x": Payload(marker)}, protocol=2))
    with pytest.raises(DatasetError, match="it could run code"):
        check_raw_file(path)
    assert not marker.exists()


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_what_planetoid_files_contain_passes(tmp_path, protocol):
    import collections

    contents = {
        "ind.cora.x": sp.csr_matrix(np.eye(3, dtype=np.float32)),
        "ind.cora.y": np.eye(3, dtype=np.int32),
        "ind.cora.graph": collections.defaultdict(list, {0: [1, 2]}),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(pickle.dumps(content, protocol=protocol))
        check_raw_file(tmp_path / name)


def test_a_number_that_would_fill_the_memory_is_refused(tmp_path):
    (tmp_path / "ind.cora.x").write_bytes(b"\x80\x02]r\xff\xff\xff\x7f.")  # LONG_BINPUT 2147483647
    with pytest.raises(DatasetError, match="under the number 2147483647"):
        check_raw_file(tmp_path / "ind.cora.x")


def test_plain_arrays_pass(tmp_path):
    np.savez(tmp_path / "facebook.npz", features=np.zeros((2, 3)), target=np.arange(2), edges=np.zeros((4, 2), int))
    check_raw_file(tmp_path / "facebook.npz")


@pytest.mark.parametrize("name", ["ind.cora.x", "github.npz"])
def test_damaged_files_are_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x80\x02PK garbage")
    with pytest.raises(DatasetError, match=f"{name} is damaged|could run code"):
        check_raw_file(tmp_path / name)


@pytest.mark.skipif("LCAT_DATA_DIR" not in os.environ, reason="LCAT_DATA_DIR is not set: no real data")
def test_every_real_file_passes():
    files = [path for path in Path(os.environ["LCAT_DATA_DIR"]).rglob("raw/*") if path.is_file()]
    assert len(files) >= 20
    for path in files:
        check_raw_file(path)
