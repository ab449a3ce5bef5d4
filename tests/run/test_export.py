"""``lcat export`` and ``lcat sweep --known``: results that travel."""

import json
import shutil

import pandas as pd
import pytest

from lcat_core.archive import read_archive
from lcat_run.cli import main

GRID = """\
name: small
base: real.yaml
set: {dataset.name: BlockModel, block_model.num_nodes: 60, optim.max_epoch: 2, gnn.layers_mp: 1, gnn.dim_inner: 8}
seeds: 2
models: [gat, cat]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a grid and its finished sweep."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.yaml").write_text(GRID)
    assert main(["sweep", str(folder / "small.yaml"), "out_dir", str(folder / "results"), "-j", "1"]) == 0
    return folder


@pytest.fixture
def sweep(finished, tmp_path):
    """A copy of it."""
    return shutil.copytree(finished, tmp_path / "copy")


def export(sweep, *words):
    return main(["export", "small", "--results", str(sweep / "results"), *map(str, words)])


@pytest.mark.slow
def test_the_same_table_comes_from_folder_and_archive(sweep, tmp_path, capsys):
    assert export(sweep, "-o", tmp_path / "small.jsonl.gz", "--curves") == 0
    assert "wrote 4 runs" in capsys.readouterr().out
    tables = []
    for source in (sweep / "results" / "small", tmp_path / "small.jsonl.gz"):
        assert main(["table", str(source)]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]
    assert main(["plot", str(tmp_path / "small.jsonl.gz"), "curves", "-o", str(tmp_path / "curves.png")]) == 0


@pytest.mark.slow
def test_archived_runs_count_as_done_elsewhere(sweep, tmp_path, capsys):
    assert export(sweep, "-o", tmp_path / "small.jsonl.gz") == 0
    before = read_archive(tmp_path / "small.jsonl.gz")
    command = ["sweep", str(sweep / "small.yaml"), "out_dir", str(tmp_path / "elsewhere")]
    known = ["--known", str(tmp_path / "small.jsonl.gz")]
    assert main([*command, *known, "--dry-run"]) == 0
    assert "4 runs, 4 of them done" in capsys.readouterr().out
    assert not (tmp_path / "elsewhere").exists()
    assert main([*command, *known]) == 0
    assert "nothing to do: 4 done" in capsys.readouterr().out
    assert main(["export", str(tmp_path / "elsewhere" / "small"), "-o", str(tmp_path / "again.jsonl.gz")]) == 0
    assert read_archive(tmp_path / "again.jsonl.gz").runs == before.runs


@pytest.mark.slow
def test_a_run_that_two_grids_share_is_restored_with_what_the_new_grid_varies(sweep, tmp_path):
    assert export(sweep, "-o", tmp_path / "small.jsonl") == 0
    (tmp_path / "wider.yaml").write_text(GRID + "axes: {lcat.heads: [4, 8]}\n")
    command = ["sweep", str(tmp_path / "wider.yaml"), "out_dir", str(tmp_path / "elsewhere"), "--only", "lcat.heads=4"]
    assert main([*command, "--known", str(tmp_path / "small.jsonl")]) == 0
    (first, *_) = sorted((tmp_path / "elsewhere" / "small" / "runs").iterdir())
    assert json.loads((first / "result.json").read_text())["params"]["lcat.heads"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("change", ["settings", "grid"])
def test_an_archive_that_does_not_fit_is_refused(sweep, tmp_path, capsys, change):
    path = tmp_path / "small.jsonl"
    assert export(sweep, "-o", path) == 0
    grid = GRID
    if change == "settings":
        path.write_text(path.read_text().replace('"gnn.dim_inner":8', '"gnn.dim_inner":16'))
    else:
        grid = GRID.replace("max_epoch: 2", "max_epoch: 3")
    (tmp_path / "other.yaml").write_text(grid)
    command = ["sweep", str(tmp_path / "other.yaml"), "out_dir", str(tmp_path / "elsewhere"), "--known", str(path)]
    assert main(command) == 2
    message = capsys.readouterr().err
    assert (
        "does not fit its own settings" if change == "settings" else "none of 4 runs belongs to the grid"
    ) in message
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
def test_tables_have_one_row_per_run(sweep, tmp_path):
    assert export(sweep, "-o", tmp_path / "small.csv") == 0
    assert export(sweep, "-o", tmp_path / "small.parquet") == 0
    csv, parquet = pd.read_csv(tmp_path / "small.csv"), pd.read_parquet(tmp_path / "small.parquet")
    assert len(csv) == len(parquet) == 4
    assert list(csv["test.accuracy"]) == list(parquet["test.accuracy"])


@pytest.mark.slow
def test_folders_and_archives_are_joined(sweep, tmp_path):
    runs = sweep / "results" / "small" / "runs"
    first = sorted(runs.iterdir())[0]
    assert export(sweep, "-o", tmp_path / "half.jsonl") == 0
    shutil.rmtree(first)
    assert export(sweep, tmp_path / "half.jsonl", "-o", tmp_path / "all.jsonl") == 0
    assert len(read_archive(tmp_path / "all.jsonl").runs) == 4


@pytest.mark.slow
def test_a_damaged_result_is_skipped_and_named(sweep, tmp_path, capsys):
    result = sorted((sweep / "results" / "small" / "runs").iterdir())[0] / "result.json"
    content = json.loads(result.read_text())
    result.write_text(json.dumps({**content, "seed": "zero"}))
    assert export(sweep, "-o", tmp_path / "small.jsonl") == 0
    output = capsys.readouterr()
    assert "wrote 3 runs" in output.out and "`seed` must be a whole number, got 'zero'" in output.err


def test_an_unknown_format_is_refused(tmp_path, capsys):
    (tmp_path / "results" / "x" / "runs").mkdir(parents=True)
    assert main(["export", "x", "--results", str(tmp_path / "results"), "-o", str(tmp_path / "x.xlsx")]) == 2
    assert "expected a name that ends in .jsonl, .jsonl.gz, .csv, .parquet" in capsys.readouterr().err
