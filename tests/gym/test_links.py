"""In a folder that others can write to, a link must not lead a run to write anywhere else."""

import contextlib

import pytest
from run_outcomes import make_run

from graphgym_lcat.gym.runner import execute
from lcat_core.run_folder import is_done


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_text("mine")
    return path


@pytest.mark.parametrize("name", ["log.txt", "claim.json", "lambdas.csv", "train/stats.json"])
def test_a_file_that_grows_is_not_written_through_a_link(tmp_path, small, precious, name):
    run = make_run(tmp_path, small)
    link = run.run_dir / name
    link.parent.mkdir(parents=True)
    link.symlink_to(precious)
    with pytest.raises(OSError, match="symbolic link"):
        execute(run)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("name", ["result.json", "config.yaml", "checkpoint.pt", ".checkpoint.pt.new", "model.pt"])
def test_a_file_that_is_renamed_into_place_replaces_a_link(tmp_path, small, precious, name):
    run = make_run(tmp_path, small, **{"lcat.checkpoint_seconds": 0.0, "lcat.save_model": True})
    run.run_dir.mkdir()
    (run.run_dir / name).symlink_to(precious)
    execute(run)
    assert precious.read_text() == "mine"
    assert is_done(run.run_dir)


@pytest.mark.parametrize("name", ["..", ".", "train", "tensorboard"])
def test_a_folder_that_is_a_link_is_not_written_into(tmp_path, small, name):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = make_run(tmp_path / "sweep" / "runs", small, tensorboard_each_run=True)
    link = run.run_dir.parent if name == ".." else run.run_dir / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with contextlib.suppress(OSError):
        execute(run)
    assert list(elsewhere.iterdir()) == []
