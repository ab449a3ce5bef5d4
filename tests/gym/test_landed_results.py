"""Results that an earlier version left behind are read, resumed and reported as before."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from graphgym_lcat.gym.runner import Run, execute
from graphgym_lcat.gym.settings import check_settings, default_settings, read_settings
from lcat_core.identity import run_id
from lcat_core.models import model_name
from lcat_core.run_folder import is_done
from lcat_run import cli

FIXTURES = Path(__file__).parents[1] / "fixtures"
RUN_IDS = json.loads((FIXTURES / "run_ids.json").read_text(encoding="utf-8"))
SINGLE = "lcat-BlockModel-s0-d91ac9469a"
README_CONFIG = """\
dataset: {format: lcat, name: BlockModel, split: [0.7, 0.15, 0.15]}
model: {type: lcat}
gnn:
  layer_type: lcatconv
  dim_inner: 32
lcat:
  heads: 4
  lambda1: null
  lambda2: null
optim: {max_epoch: 50}
"""


@pytest.fixture
def landed(tmp_path, monkeypatch):
    """A copy of the landed folder in the working directory."""
    shutil.copytree(FIXTURES / "landed_results", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results"


def run_of(folder, model):
    """A run of the landed sweep, as the sweep would ask for it again."""
    sweep = folder / "landed"
    common = json.loads((sweep / "sweep.json").read_text())["settings"]
    records = map(json.loads, (sweep / "runs.jsonl").read_text().splitlines())
    record = next(record for record in records if record["model"] == model)
    settings = {**common, **record["params"], "seed": record["seed"]}
    return Run(sweep / "runs" / record["run_id"], model, settings, record["params"], threads=1)


def without_times(run_dir):
    result = json.loads((run_dir / "result.json").read_text())
    result.pop("timing")
    result.pop("versions")
    return result


def assert_close(value, expected):
    """Equal, numbers at any depth to rounding."""
    if isinstance(expected, dict):
        assert value.keys() == expected.keys()
        value, expected = list(value.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            assert_close(one, other)
    else:
        assert value == (pytest.approx(expected, rel=1e-4) if isinstance(expected, float) else expected)


def stats_without_times(run_dir, split):
    lines = (run_dir / split / "stats.json").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in ("eta", "time_iter")} for line in lines]


@pytest.mark.parametrize("pinned", RUN_IDS, ids=[f"{pinned['grid']}-{pinned['run_id']}" for pinned in RUN_IDS])
def test_runs_of_the_included_grids_keep_their_ids(pinned):
    settings = check_settings(pinned["settings"])
    assert run_id(pinned["model"], settings, default_settings()) == pinned["run_id"]


def test_the_run_in_the_readme_keeps_its_id(tmp_path):
    (tmp_path / "my.yaml").write_text(README_CONFIG)
    settings = {**check_settings(read_settings(tmp_path / "my.yaml")), "seed": 0}
    defaults = default_settings()
    assert run_id(model_name({**defaults, **settings}), settings, defaults) == "lcat-BlockModel-s0-bf7fba9577"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grid", "first"),
    [
        ("demo", "gatv2-BlockModel-s0-8032aa2620"),
        ("real", "gatv2-GitHub-s0-0d419ff14d"),
        ("csbm_small", "gcn-csbm-s0-a990c21e49"),
        ("gcnii", "gcniigatv2-GitHub-s0-ef410ce867"),
        ("ablation_small", "gcngatv2-AmazonPhoto-s0-777b79f05a"),
        ("noise_small", "gcn-AmazonPhoto-s0-f15af1a8dc"),
        ("reproduction", "gcn-AmazonPhoto-s0-ca447f8e8e"),
    ],
)
def test_planning_an_included_grid_gives_the_ids_of_before(grid, first, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", grid, "--dry-run"]) == 0
    assert f"first {first}:" in capsys.readouterr().out


def test_every_landed_state_is_reported(landed, capsys):
    assert cli.main(["status", "landed"]) in (None, 0)
    said = capsys.readouterr().out
    for count in ("8 runs", "4 done", "1 paused", "1 failed", "1 killed", "1 missing"):
        assert count in said
    assert "the training loss became nan in epoch 1" in said
    assert "the worker was killed by SIGKILL" in said


def test_the_table_has_the_landed_numbers(landed, capsys):
    assert cli.main(["table", "landed"]) in (None, 0)
    said = capsys.readouterr().out
    assert "25.00 ± 11.79" in said
    assert "29.17 ± 17.68" in said


def test_the_table_of_a_single_run_has_its_number(landed, capsys):
    assert cli.main(["table", "single"]) in (None, 0)
    assert "41.67" in capsys.readouterr().out


@pytest.mark.parametrize("model", ["paused", "killed"])
def test_an_interrupted_run_resumes_from_its_old_checkpoint(landed, model, tmp_path):
    run = run_of(landed, model)
    epochs = []
    execute(run, lambda training: epochs.append(training.epoch))
    assert epochs[0] in (7, 8, 9)  # not from the beginning
    assert epochs[-1] == 12
    uninterrupted = Run(tmp_path / "again" / run.run_dir.name, run.model, run.settings, run.params, threads=1)
    execute(uninterrupted)
    # Not bit by bit: another processor may have trained the epochs before the checkpoint.
    assert_close(without_times(run.run_dir), without_times(uninterrupted.run_dir))
    for split in ("train", "val", "test"):
        assert_close(stats_without_times(run.run_dir, split), stats_without_times(uninterrupted.run_dir, split))
    pd.testing.assert_frame_equal(*(pd.read_csv(one.run_dir / "lambdas.csv") for one in (run, uninterrupted)))


@pytest.mark.parametrize("model", ["gat", "lcat"])
def test_a_finished_run_is_not_repeated(landed, model):
    run = run_of(landed, model)
    before = (run.run_dir / "result.json").read_bytes()
    assert is_done(run.run_dir)
    execute(run, lambda _: pytest.fail("trained again"))
    assert (run.run_dir / "result.json").read_bytes() == before


@pytest.mark.parametrize("model", ["gat", "lcat"])
def test_a_run_that_is_repeated_elsewhere_has_the_landed_result(landed, model, tmp_path):
    run = run_of(landed, model)
    again = Run(tmp_path / "again" / run.run_dir.name, run.model, run.settings, run.params, threads=1)
    execute(again)
    old, new = without_times(run.run_dir), without_times(again.run_dir)
    assert set(new.pop("counts")) == {"train", "val", "test"}  # added later; old results do not have it
    assert list(new) == list(old)
    for split in ("train", "val", "test"):  # approximate, for other kinds of CPU
        assert new.pop(split) == pytest.approx(old.pop(split), rel=1e-4)
    for old_pair, new_pair in zip(old.pop("lambdas"), new.pop("lambdas"), strict=True):
        assert new_pair == pytest.approx(old_pair, rel=1e-4)
    assert new == old


def test_the_same_command_finds_the_single_run_done(landed, capsys):
    assert cli.main(["run", "--cfg", str(landed / "single.yaml"), "--threads", "1"]) == 0
    assert SINGLE in capsys.readouterr().out


@pytest.mark.slow
def test_the_same_sweep_executes_what_is_missing_and_no_more(landed, capsys):
    results = {path: path.read_bytes() for path in landed.glob("landed/runs/*/result.json")}
    assert len(results) == 4
    code = cli.main(["sweep", str(landed / "grid.yaml"), "--jobs", "1", "--threads", "1"])
    assert code == 1  # the failed run is left out
    assert all(path.read_bytes() == content for path, content in results.items())
    assert len(list(landed.glob("landed/runs/*/result.json"))) == 7
