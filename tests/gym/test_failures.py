"""Runs that fail: what is recorded, and what is left untouched."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from run_outcomes import make_run, outcome

from graphgym_lcat.gym import run_log, training
from graphgym_lcat.gym.build import build_loop
from graphgym_lcat.gym.runner import execute
from lcat_core.claims import Claim
from lcat_core.errors import RunBusy, SettingsError, TrainingFailed
from lcat_core.run_folder import State, is_done, unfinished_state


def test_a_nan_loss_fails_the_run_and_keeps_the_checkpoint(tmp_path, small, monkeypatch):
    run = make_run(tmp_path, small, **{"lcat.checkpoint_seconds": 0.0})
    forward = training.Training._forward

    def explode(self, data):
        outputs = forward(self, data)
        return outputs * torch.nan if self.epoch == 4 else outputs

    monkeypatch.setattr(training.Training, "_forward", explode)
    for attempt in (1, 2):
        with pytest.raises(TrainingFailed, match="the training loss became nan in epoch 4"):
            execute(run)
        failure = json.loads((run.run_dir / "failed.json").read_text())
        assert (failure["epoch"], failure["attempts"]) == (4, attempt)
        assert "TrainingFailed" in failure["traceback"]
        assert "cause" not in failure
        assert unfinished_state(run.run_dir).state is State.FAILED
    assert (run.run_dir / "checkpoint.pt").exists()
    monkeypatch.undo()
    execute(run)
    assert is_done(run.run_dir)


@pytest.mark.parametrize("damage", ["[1]", '{"attempts": "two"}', "{"])
def test_a_damaged_record_of_a_failure_does_not_hide_the_next_one(tmp_path, small, damage):
    run = make_run(tmp_path, small)
    run.run_dir.mkdir(parents=True)
    (run.run_dir / "failed.json").write_text(damage)

    def fail(_):
        raise ValueError("asked to fail")

    with pytest.raises(ValueError, match="asked to fail"):
        execute(run, fail)
    failure = json.loads((run.run_dir / "failed.json").read_text())
    assert (failure["error"], failure["attempts"]) == ("ValueError: asked to fail", 1)


def test_an_infinite_validation_loss_fails_the_run_too(tmp_path, small, monkeypatch):
    forward = training.Training._forward

    def explode(self, data):
        outputs = forward(self, data)
        outputs[self.nodes["val"]] *= torch.inf if self.epoch == 4 else 1
        return outputs

    monkeypatch.setattr(training.Training, "_forward", explode)
    run = make_run(tmp_path, small)
    with pytest.raises(TrainingFailed, match="the validation loss became nan in epoch 4"):
        execute(run)
    assert json.loads((run.run_dir / "failed.json").read_text())["epoch"] == 4


def test_a_network_that_cannot_be_built_is_recorded_for_a_sweep(tmp_path, small):
    run = make_run(tmp_path, small, metric_best="auc")
    with pytest.raises(SettingsError, match="`metric_best: auc` needs two classes, got 5 classes"):
        execute(run)
    assert "needs two classes" in json.loads((run.run_dir / "failed.json").read_text())["error"]


def test_building_a_loop_writes_nothing(tmp_path, small, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build_loop({**small, "tensorboard_each_run": True, "lcat.save_model": True})
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_written_adds_no_message(tmp_path, small, capsys, monkeypatch):
    run = make_run(tmp_path, small)
    monkeypatch.setattr(run_log, "open_to_append", lambda path: open("/dev/full", "ab"))  # noqa: SIM115  (closed by it)
    with pytest.raises(OSError, match="No space left"):
        execute(run)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without the device")
def test_a_missing_device_is_named(small):
    with pytest.raises(SettingsError, match="`accelerator` is 'cuda', but torch has no such device here"):
        build_loop({**small, "accelerator": "cuda"})


def test_a_truncated_result_does_not_count(tmp_path, small):
    run = make_run(tmp_path, small)
    execute(run)
    path = run.run_dir / "result.json"
    complete = outcome(run)
    path.write_text(path.read_text()[:100])
    assert not is_done(run.run_dir)
    execute(run)
    assert outcome(run) == complete


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"schema": 2, "what": "nobody knows"}', "has schema 2, but this version reads schema 1"),
        ('{"best_epoch": 3}', "has schema none"),
        ("[0.9, 0.8]", "must hold a JSON object"),
    ],
)
def test_the_result_of_another_version_is_not_replaced(tmp_path, small, content, problem):
    run = make_run(tmp_path, small)
    run.run_dir.mkdir()
    (run.run_dir / "result.json").write_text(content)
    with pytest.raises(SettingsError, match=rf"{problem}.* not replaced: choose another `out_dir`"):
        execute(run)
    assert (run.run_dir / "result.json").read_text() == content


def test_a_run_that_is_being_executed_is_busy(tmp_path, small):
    run = make_run(tmp_path, small)
    with pytest.raises(RunBusy, match="is being executed by another process"):
        execute(run, lambda _: execute(run))


def test_the_claim_is_the_only_lock_of_a_run(tmp_path, small):
    run = make_run(tmp_path, small)
    run.run_dir.mkdir()
    claim = Claim.take(run.run_dir)
    assert claim is not None
    with pytest.raises(RunBusy):
        execute(run)
    execute(run, claimed=True)
    assert is_done(run.run_dir)
    assert not (run.run_dir / ".lock").exists()
    assert json.loads((run.run_dir / "claim.json").read_text())["owner"]  # still that of the caller
    os.close(claim._descriptor)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs root to mount a small disk")
def test_a_full_disk_ends_the_run_and_keeps_what_was_there(tmp_path, small):
    """Runs in a process of its own, with a tmpfs of 200 kB as results folder."""
    settings = {**small, "lcat.checkpoint_seconds": 0.0, "optim.max_epoch": 400, "gnn.dim_inner": 64}
    script = tmp_path / "run_on_full_disk.py"
    script.write_text(
        f"""
import errno
from pathlib import Path
import graphgym_lcat
from graphgym_lcat.gym.runner import Run, execute
from lcat_core.run_folder import unfinished_state
run_dir = Path({str(tmp_path / "disk" / "run")!r})
try:
    execute(Run(run_dir, "lcat", {settings!r}, {{}}, 1))
except OSError as error:
    print("failed with", errno.errorcode[error.errno])
print("state", unfinished_state(run_dir).state)
"""
    )
    (tmp_path / "disk").mkdir()
    command = (
        f"mount -t tmpfs -o size=200k none {tmp_path}/disk && {sys.executable} {script}; ls -a {tmp_path}/disk/run"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True)
    assert "failed with ENOSPC" in done.stdout, done.stderr
    assert "state killed" in done.stdout
    assert "result.json" not in done.stdout
    assert ".partial" not in done.stdout
