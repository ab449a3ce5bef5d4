"""The grids of the OGB experiments, from one command to their table or figure, on small generated data without a network."""

import pytest

from graphgym_lcat.data.ogb_generator import generate_ogb
from lcat_run.cli import main

pytestmark = pytest.mark.slow

SMALL = ["optim.max_epoch", "2", "seeds", "1", "gnn.dim_inner", "16", "-j", "1"]
LEARNED = ["--only", "model=gat,model=lcat,lcat.heads=8"]


@pytest.fixture(scope="module")
def ogb_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ogb")
    for name, scale in {"ogbn-arxiv": 2000, "ogbn-products": 50000, "ogbn-mag": 3000, "ogbn-proteins": 3000}.items():
        generate_ogb(name, scale, folder)
    return folder


@pytest.mark.parametrize(
    ("grid", "only", "output", "written"),
    [
        ("ogb", LEARNED, ["table", "ogb", "-o", "table.md"], "table.md"),
        ("noise", LEARNED, ["plot", "noise", "noise", "-o", "noise.png"], "noise.png"),
        pytest.param(
            *("init", LEARNED, ["plot", "init", "distribution", "-o", "lambdas.png"], "lambdas.png"),
            marks=pytest.mark.campaign,
        ),
    ],
)
def test_a_grid_runs_at_a_small_size_and_yields_its_output(grid, only, output, written, ogb_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", grid, *SMALL, "dataset.dir", str(ogb_dir), *only]) == 0
    assert main(output) == 0
    assert (tmp_path / written).stat().st_size > 0


def test_the_ablation_runs_in_small_on_any_dataset_and_ends_in_its_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    generated = ["dataset.name", "BlockModel", "block_model.num_nodes", "60"]
    assert main(["sweep", "ablation_small", *SMALL, *generated]) == 0
    capsys.readouterr()
    assert main(["table", "ablation_small"]) == 0
    table = capsys.readouterr().out
    assert all(name in table for name in ("GCN-GAT", "CAT-λ1", "CAT-λ2", "GCN-GATv2", "CATv2-λ1", "CATv2-λ2"))
