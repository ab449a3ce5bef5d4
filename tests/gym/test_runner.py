"""A run, and everything that may happen to it."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from graphgym_lcat.gym import runner, training
from graphgym_lcat.gym.runner import Run, RunBusy, RunPaused, execute, is_done, prepare
from graphgym_lcat.gym.settings import SettingsError
from graphgym_lcat.gym.training import TrainingFailed
from lcat_core.identity import WHERE_AND_HOW

TIMES = ("eta", "time_iter")


def make_run(folder, settings, **changes) -> Run:
    return Run(folder / "some-run", "lcat", {**settings, **changes}, params={"gnn.dim_inner": 8}, threads=1)


def stats(run, split):
    lines = (run.run_dir / split / "stats.json").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


def outcome(run):
    """Everything a run has written that must not depend on interruptions."""
    result = json.loads((run.run_dir / "result.json").read_text())
    result.pop("timing")
    logs = {split: stats(run, split) for split in ("train", "val", "test")}
    return result, logs, (run.run_dir / "lambdas.csv").read_text()


def test_result_and_logs(tmp_path, small):
    run = make_run(tmp_path, small, **{"optim.max_epoch": 12, "seed": 5})
    result = execute(run)
    assert is_done(run.run_dir)
    assert result == json.loads((run.run_dir / "result.json").read_text())
    assert (result["schema"], result["run_id"], result["model"], result["seed"]) == (1, "some-run", "lcat", 5)
    assert result["dataset"] == {"name": "BlockModel", "nodes": 60, "edges": 240, "avg_degree": 4.0}
    assert result["params"] == {"gnn.dim_inner": 8}
    assert [line["epoch"] for line in stats(run, "val")] == list(range(12))
    assert {"epoch", "loss", "lr", "params", "accuracy"} == stats(run, "val")[0].keys()
    assert (run.run_dir / "lambdas.csv").read_text().splitlines()[:3] == [
        "epoch,layer,head,lambda1,lambda2",
        "0,0,,0.5,0.5",
        "0,1,,0.5,0.5",
    ]
    assert not (run.run_dir / "checkpoint.pt").exists()


def test_the_first_of_the_best_validation_epochs_counts(tmp_path, small):
    run = make_run(tmp_path, small, **{"optim.max_epoch": 40})
    result = execute(run)
    validation = [line["accuracy"] for line in stats(run, "val")]
    assert result["best_epoch"] == validation.index(max(validation))
    assert round(result["test"]["accuracy"], 4) == stats(run, "test")[result["best_epoch"]]["accuracy"]


def test_a_finished_run_is_not_repeated(tmp_path, small, monkeypatch):
    run = make_run(tmp_path, small)
    first = execute(run)
    monkeypatch.setattr(runner, "LOOPS", {})
    assert execute(run) == first


def test_equal_seeds_give_equal_results_and_others_do_not(tmp_path, small):
    runs = [make_run(tmp_path / str(i), small, seed=seed) for i, seed in enumerate((1, 1, 2))]
    for run in runs:
        execute(run)
    assert outcome(runs[0]) == outcome(runs[1])
    assert outcome(runs[0])[1] != outcome(runs[2])[1]


class Stop(BaseException):
    """Stands for a process that dies: nothing in the runner may catch it."""


def interrupt_at(epoch, exception=Stop):
    def stop(training):
        if training.epoch == epoch:
            raise exception

    return stop


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_run_that_died_goes_on_to_the_same_result(tmp_path, small, dropout):
    small |= {"optim.max_epoch": 15, "gnn.dropout": dropout, "lcat.save_predictions": True, "lcat.save_model": True}
    whole = make_run(tmp_path / "whole", small)
    execute(whole)
    broken = make_run(tmp_path / "broken", small, **{"lcat.checkpoint_seconds": 0.0})
    for epoch in (4, 9):
        with pytest.raises(Stop):
            execute(broken, interrupt_at(epoch))
    execute(broken)
    expected, got = outcome(whole), outcome(broken)
    assert got[0].pop("settings") != expected[0].pop("settings")  # the time between checkpoints
    assert got == expected
    for name in ("outputs", "labels", "test_nodes"):
        np.testing.assert_array_equal(*(np.load(r.run_dir / "predictions.npz")[name] for r in (whole, broken)))
    weights = [torch.load(r.run_dir / "model.pt", weights_only=True) for r in (whole, broken)]
    torch.testing.assert_close(*weights, rtol=0, atol=0)


def test_a_truncated_checkpoint_gives_way_to_the_previous_one(tmp_path, small):
    small |= {"optim.max_epoch": 10, "lcat.checkpoint_seconds": 0.0}
    whole = make_run(tmp_path / "whole", small)
    execute(whole)
    run = make_run(tmp_path / "broken", small)
    with pytest.raises(Stop):
        execute(run, interrupt_at(6))
    path = run.run_dir / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:1000])
    execute(run)
    assert outcome(run) == outcome(whole)
    assert "checkpoint.pt is damaged" in (run.run_dir / "log.txt").read_text()


def test_what_a_killed_process_left_half_written_is_removed(tmp_path, small):
    run = make_run(tmp_path, small)
    run.run_dir.mkdir()
    (run.run_dir / "..checkpoint.pt.new.123.partial").write_bytes(b"half")
    execute(run)
    assert list(run.run_dir.glob(".*.partial")) == []


def test_two_damaged_checkpoints_start_the_run_again(tmp_path, small):
    small |= {"lcat.checkpoint_seconds": 0.0}
    run = make_run(tmp_path, small)
    with pytest.raises(Stop):
        execute(run, interrupt_at(4))
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        (run.run_dir / name).write_bytes(b"garbage")
    execute(run)
    assert len(stats(run, "train")) == 6


def test_a_checkpoint_of_other_settings_is_refused(tmp_path, small):
    small |= {"lcat.checkpoint_seconds": 0.0}
    run = make_run(tmp_path, small)
    with pytest.raises(Stop):
        execute(run, interrupt_at(3))
    other = make_run(tmp_path, small, **{"optim.base_lr": 0.5})
    with pytest.raises(SettingsError, match=r"belongs to other settings: `optim.base_lr` is 0.01 there and 0.5 here"):
        execute(other)


def test_settings_that_change_no_number_may_differ_from_the_checkpoints(tmp_path, small):
    small |= {"lcat.checkpoint_seconds": 0.0}
    with pytest.raises(Stop):
        execute(make_run(tmp_path, small), interrupt_at(3))
    execute(make_run(tmp_path, small, **{"tensorboard_agg": False, "train.ckpt_period": 7, "lcat.log_every": 1}))
    assert set(WHERE_AND_HOW) == set(runner._FREE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("best_weights"), r"KeyError: 'best_weights'"),
        (lambda state: state.pop("settings"), r"does not say of which run it is"),
        (lambda state: state["model"].popitem(), r"RuntimeError: Error\(s\) in loading state_dict"),
        (lambda state: state["positions"].update(val=10**6), r"stats.json has \d+ bytes, the checkpoint expects"),
    ],
)
def test_a_checkpoint_of_another_version_is_refused_and_kept(tmp_path, small, change, message):
    run = make_run(tmp_path, small, **{"lcat.checkpoint_seconds": 0.0})
    with pytest.raises(Stop):
        execute(run, interrupt_at(3))
    path = run.run_dir / "checkpoint.pt"
    state = torch.load(path, weights_only=True)
    change(state)
    torch.save(state, path)
    with pytest.raises(SettingsError, match=f"cannot be used by this version .*{message}.* or delete the checkpoint"):
        execute(run)
    assert path.exists()


def test_a_checkpoint_with_a_wrong_byte_gives_way_to_the_previous_one(tmp_path, small):
    small |= {"optim.max_epoch": 8, "lcat.checkpoint_seconds": 0.0}
    whole = make_run(tmp_path / "whole", small)
    execute(whole)
    run = make_run(tmp_path / "broken", small)
    with pytest.raises(Stop):
        execute(run, interrupt_at(5))
    path = run.run_dir / "checkpoint.pt"
    weight = next(iter(torch.load(path, weights_only=True)["model"].values())).numpy().tobytes()
    content = bytearray(path.read_bytes())
    content[content.index(weight) + 2] ^= 0x40
    path.write_bytes(content)
    execute(run)
    assert outcome(run) == outcome(whole)
    assert "checkpoint.pt is damaged (wrong checksum of" in (run.run_dir / "log.txt").read_text()


def test_a_run_goes_on_with_the_threads_it_began_with(tmp_path, small):
    small |= {"lcat.checkpoint_seconds": 0.0}
    with pytest.raises(Stop):
        execute(make_run(tmp_path, small), interrupt_at(3))
    run = Run(tmp_path / "some-run", "lcat", small, {}, threads=2)
    assert execute(run)["timing"]["threads"] == 1
    assert "the run began with 1 threads and goes on with them, not with 2" in (run.run_dir / "log.txt").read_text()
    assert "num_threads: 1\n" in (run.run_dir / "config.yaml").read_text()


@pytest.mark.parametrize("number", runner.PAUSE_SIGNALS)
def test_a_signal_pauses_the_run(tmp_path, small, number):
    whole = make_run(tmp_path / "whole", small)
    execute(whole)
    run = make_run(tmp_path / "paused", small)
    with pytest.raises(RunPaused):
        execute(run, lambda training: os.kill(os.getpid(), number) if training.epoch == 3 else None)
    assert not is_done(run.run_dir)
    assert not (run.run_dir / "failed.json").exists()
    execute(run)
    assert outcome(run) == outcome(whole)


def test_a_loss_that_is_no_number_fails_the_run_and_keeps_the_checkpoint(tmp_path, small, monkeypatch):
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


def test_a_validation_loss_that_is_no_number_fails_the_run_too(tmp_path, small, monkeypatch):
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


def test_a_log_that_cannot_be_written_adds_no_message(tmp_path, small, capsys, monkeypatch):
    run = make_run(tmp_path, small)
    run.run_dir.mkdir()
    (run.run_dir / "log.txt").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        execute(run)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without the device")
def test_a_device_that_is_not_there_is_named(small):
    with pytest.raises(SettingsError, match="`accelerator` is 'cuda', but torch has no such device here"):
        prepare({**small, "accelerator": "cuda"})


def test_a_truncated_result_is_no_result(tmp_path, small):
    run = make_run(tmp_path, small)
    execute(run)
    path = run.run_dir / "result.json"
    whole = outcome(run)
    path.write_text(path.read_text()[:100])
    assert not is_done(run.run_dir)
    execute(run)
    assert outcome(run) == whole


def test_two_processes_do_not_share_a_run(tmp_path, small):
    run = make_run(tmp_path, small)
    with pytest.raises(RunBusy, match="is being run by another process"):
        execute(run, lambda _: execute(run))


def test_early_stopping(tmp_path, small):
    result = execute(make_run(tmp_path, small, **{"optim.max_epoch": 500, "lcat.patience": 3}))
    assert result["epochs"] == result["best_epoch"] + 4 < 500


def test_dense_model_has_no_lambdas(tmp_path, small):
    run = make_run(tmp_path, small, **{"gnn.layer_type": "linear"})
    assert execute(run)["lambdas"] == []
    assert not (run.run_dir / "lambdas.csv").exists()


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("act", ["relu", "elu"])
def test_normalisations_and_activations(tmp_path, small, norm, act):
    result = execute(make_run(tmp_path, small, **{"gnn.batchnorm": True, "lcat.norm": norm, "gnn.act": act}))
    assert result["epochs"] == 6


def test_two_classes_report_auc_beside_accuracy(tmp_path, small):
    result = execute(make_run(tmp_path, small, **{"block_model.num_classes": 2}))
    assert {"accuracy", "auc", "loss"} == result["test"].keys()


def test_selection_by_auc_needs_two_classes(tmp_path, small):
    with pytest.raises(ValueError, match="`metric_best: auc` needs two classes, got 5"):
        execute(make_run(tmp_path, small, metric_best="auc"))


def test_lambda_per_head_is_logged_per_head(tmp_path, small):
    run = make_run(tmp_path, small, **{"lcat.lambda_per_head": True, "optim.max_epoch": 1})
    result = execute(run)
    assert len(result["lambdas"][0][0]) == 2
    rows = (run.run_dir / "lambdas.csv").read_text().splitlines()[1:]
    assert [row.split(",")[:3] for row in rows] == [["0", str(layer), str(head)] for layer in (0, 1) for head in (0, 1)]


def test_a_synthetic_point_is_a_run_like_any_other(tmp_path):
    settings = {"lcat.loop": "csbm", "dataset.name": "csbm", "csbm.model": "cat", "csbm.n": 200, "csbm.mu_norm": 4.29}
    run = Run(tmp_path / "point", "cat", {**settings, "seed": 3}, {"csbm.q": 0.1}, threads=1)
    result = execute(run)
    assert is_done(run.run_dir)
    assert (result["dataset"]["name"], result["seed"], result["params"]) == ("csbm", 3, {"csbm.q": 0.1})
    assert result["test"]["accuracy"] > 0.9
    assert set(result["extra"]["gamma"]) == {"same", "opposite", "rest"}


def test_the_block_model_of_the_paper_is_a_dataset_too(tmp_path, small):
    result = execute(make_run(tmp_path, small, **{"dataset.name": "csbm", "csbm.n": 100}))
    assert result["dataset"]["nodes"] == 100


def test_splits_are_shared_by_models_and_seeds(tmp_path, small):
    small |= {"lcat.save_predictions": True}
    runs = [
        make_run(tmp_path / "a", small, seed=1),
        make_run(tmp_path / "b", small, seed=2, **{"gnn.layer_type": "linear"}),
    ]
    nodes = []
    for run in runs:
        execute(run)
        nodes.append(np.load(run.run_dir / "predictions.npz")["test_nodes"])
    np.testing.assert_array_equal(*nodes)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="needs root to mount a small disk")
def test_a_full_disk_fails_the_run_and_keeps_what_was_there(tmp_path, small):
    """Runs in a process of its own, with a tmpfs of 200 kB as results folder."""
    settings = {**small, "lcat.checkpoint_seconds": 0.0, "optim.max_epoch": 400, "gnn.dim_inner": 64}
    script = tmp_path / "run_on_full_disk.py"
    script.write_text(
        f"""
import errno
from pathlib import Path
import graphgym_lcat
from graphgym_lcat.gym.runner import Run, execute
try:
    execute(Run(Path({str(tmp_path / "disk" / "run")!r}), "lcat", {settings!r}, {{}}, 1))
except OSError as error:
    print("failed with", errno.errorcode[error.errno])
"""
    )
    (tmp_path / "disk").mkdir()
    command = (
        f"mount -t tmpfs -o size=200k none {tmp_path}/disk && {sys.executable} {script}; ls -a {tmp_path}/disk/run"
    )
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True)
    assert "failed with ENOSPC" in done.stdout, done.stderr
    assert "result.json" not in done.stdout
    assert ".partial" not in done.stdout


@pytest.mark.parametrize(
    ("content", "name"),
    [('{"schema": 2, "what": "nobody knows"}', "2"), ('{"best_epoch": 3}', "unknown"), ("[0.9, 0.8]", "unknown")],
)
def test_the_result_of_another_format_is_not_replaced(tmp_path, small, content, name):
    run = make_run(tmp_path, small)
    run.run_dir.mkdir()
    (run.run_dir / "result.json").write_text(content)
    with pytest.raises(SettingsError, match=rf"has format {name}, this version writes format 1 .* another `out_dir`"):
        execute(run)
    assert (run.run_dir / "result.json").read_text() == content
