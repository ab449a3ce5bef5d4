import os
from pathlib import Path

import pytest

# Triton decides when it is imported, which PyG does, whether its kernels are compiled or interpreted. Without a GPU, only the
# interpreter can run them.
if not Path("/dev/nvidiactl").exists() and not Path("/dev/kfd").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")

#: Of OGB's datasets in small: 1 / scale of their nodes and edges.
OGB_SCALES = {"ogbn-arxiv": 1000, "ogbn-products": 20000, "ogbn-mag": 2000, "ogbn-proteins": 2000}


def pytest_collection_modifyitems(config, items):
    """The campaign runs only when asked for by name: a plain ``-m "not slow"`` must not start it."""
    if "campaign" in (config.option.markexpr or ""):
        return
    campaign = [item for item in items if item.get_closest_marker("campaign")]
    config.hook.pytest_deselected(items=campaign)
    items[:] = [item for item in items if not item.get_closest_marker("campaign")]


@pytest.fixture(scope="module")
def ogb_dir(tmp_path_factory):
    """A folder with generated data in the shape of OGB's four datasets."""
    from graphgym_lcat.data.ogb_generator import generate_ogb

    folder = tmp_path_factory.mktemp("ogb")
    for name, scale in OGB_SCALES.items():
        generate_ogb(name, scale, folder)
    return folder
