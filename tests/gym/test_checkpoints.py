"""Runs that are interrupted: they resume from their checkpoint, with the same result."""

import os
import signal

import numpy as np
import pytest
import torch
from run_outcomes import Stop, interrupt_at, make_run, outcome, stats

from graphgym_lcat.gym.runner import Run, execute
from lcat_core.errors import SettingsError
from lcat_core.identity import DEVICE, WHERE_AND_HOW, may_change_on_resume
from lcat_core.outcomes import PAUSE_SIGNALS, RunPaused
from lcat_core.run_folder import is_done


@pytest.fixture
def interrupted(tmp_path, small):
    """A run of ten epochs that died after the sixth and wrote a checkpoint after each."""
    run = make_run(tmp_path / "interrupted", small, **{"optim.max_epoch": 10, "lcat.checkpoint_seconds": 0.0})
    with pytest.raises(Stop):
        execute(run, interrupt_at(6))
    return run


@pytest.fixture
def uninterrupted(tmp_path, interrupted):
    """The same run without an interruption."""
    run = make_run(tmp_path / "uninterrupted", interrupted.settings)
    execute(run)
    return run


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_run_that_died_resumes_to_the_same_result(tmp_path, small, dropout):
    small |= {"optim.max_epoch": 15, "gnn.dropout": dropout, "lcat.save_predictions": True, "lcat.save_model": True}
    complete = make_run(tmp_path / "complete", small)
    execute(complete)
    broken = make_run(tmp_path / "broken", small, **{"lcat.checkpoint_seconds": 0.0})
    for epoch in (4, 9):
        with pytest.raises(Stop):
            execute(broken, interrupt_at(epoch))
    execute(broken)
    expected, got = outcome(complete), outcome(broken)
    assert got[0].pop("settings") != expected[0].pop("settings")  # the time between checkpoints
    assert got == expected
    for name in ("outputs", "labels", "test_nodes"):
        np.testing.assert_array_equal(*(np.load(r.run_dir / "predictions.npz")[name] for r in (complete, broken)))
    weights = [torch.load(r.run_dir / "model.pt", weights_only=True) for r in (complete, broken)]
    torch.testing.assert_close(*weights, rtol=0, atol=0)


def test_a_truncated_checkpoint_gives_way_to_the_previous_one(interrupted, uninterrupted):
    path = interrupted.run_dir / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:1000])
    execute(interrupted)
    assert outcome(interrupted) == outcome(uninterrupted)
    assert "checkpoint.pt is damaged" in (interrupted.run_dir / "log.txt").read_text()


def test_a_checkpoint_with_a_wrong_byte_gives_way_to_the_previous_one(interrupted, uninterrupted):
    path = interrupted.run_dir / "checkpoint.pt"
    weight = next(iter(torch.load(path, weights_only=True)["model"].values())).numpy().tobytes()
    content = bytearray(path.read_bytes())
    content[content.index(weight) + 2] ^= 0x40
    path.write_bytes(content)
    execute(interrupted)
    assert outcome(interrupted) == outcome(uninterrupted)
    assert "checkpoint.pt is damaged (wrong checksum of" in (interrupted.run_dir / "log.txt").read_text()


def test_two_damaged_checkpoints_start_the_run_again(interrupted):
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        (interrupted.run_dir / name).write_bytes(b"garbage")
    execute(interrupted)
    assert [line["epoch"] for line in stats(interrupted, "train")] == list(range(10))


def test_a_shortened_history_gives_way_to_the_checkpoint_before_it(interrupted, uninterrupted):
    path = interrupted.run_dir / "train" / "stats.json"
    path.write_bytes(path.read_bytes()[:-1])
    execute(interrupted)
    assert outcome(interrupted) == outcome(uninterrupted)
    log = (interrupted.run_dir / "log.txt").read_text()
    assert "bytes, 1 fewer than when the checkpoint was written, so checkpoint.pt is not used" in log
    assert "resuming after epoch 4 of 10" in log


def test_a_lost_history_starts_the_run_again(interrupted, uninterrupted):
    (interrupted.run_dir / "lambdas.csv").unlink()
    execute(interrupted)
    assert outcome(interrupted) == outcome(uninterrupted)
    assert "no usable checkpoint is left" in (interrupted.run_dir / "log.txt").read_text()


def test_what_a_killed_process_left_incomplete_is_removed(tmp_path, small):
    run = make_run(tmp_path, small)
    run.run_dir.mkdir()
    (run.run_dir / "..checkpoint.pt.new.123.partial").write_bytes(b"half")
    execute(run)
    assert list(run.run_dir.glob(".*.partial")) == []


def changed(run, **changes):
    return Run(run.run_dir, run.model, {**run.settings, **changes}, run.params, threads=1)


def test_a_checkpoint_of_other_settings_is_refused(interrupted):
    with pytest.raises(SettingsError, match=r"belongs to other settings: `optim.base_lr` is 0.01 there and 0.5 here"):
        execute(changed(interrupted, **{"optim.base_lr": 0.5}))


def test_settings_that_change_no_number_may_differ_from_the_checkpoints(interrupted):
    execute(changed(interrupted, **{"tensorboard_agg": False, "train.ckpt_period": 7, "lcat.log_every": 1}))
    assert is_done(interrupted.run_dir)
    assert all(may_change_on_resume(key) for key in WHERE_AND_HOW)
    assert not any(may_change_on_resume(key) for key in DEVICE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("best_weights"), r"KeyError: 'best_weights'"),
        (lambda state: state.pop("settings"), r"does not say which run it belongs to"),
        (lambda state: state["model"].popitem(), r"RuntimeError: Error\(s\) in loading state_dict"),
        (lambda state: state.update(settings=["lcat"]), r"does not say which run it belongs to"),
        (lambda state: state.update(optimizer={"state": 1, "param_groups": 2}), r"TypeError"),
    ],
)
def test_a_checkpoint_of_another_version_is_refused_and_kept(interrupted, change, message):
    path = interrupted.run_dir / "checkpoint.pt"
    state = torch.load(path, weights_only=True)
    change(state)
    torch.save(state, path)
    with pytest.raises(SettingsError, match=f"cannot be used by this version .*{message}.* or delete the checkpoint"):
        execute(interrupted)
    assert path.exists()


def test_a_run_resumes_with_the_threads_it_started_with(interrupted):
    run = Run(interrupted.run_dir, "lcat", interrupted.settings, {}, threads=2)
    assert execute(run)["timing"]["threads"] == 1
    assert "started with 1 threads and resumes with them, not with 2" in (run.run_dir / "log.txt").read_text()
    assert "num_threads: 1\n" in (run.run_dir / "config.yaml").read_text()


@pytest.mark.parametrize("number", PAUSE_SIGNALS)
def test_a_signal_pauses_the_run(tmp_path, small, number, request):
    before = signal.signal(number, signal.SIG_DFL)  # the tests may run under nohup, which ignores SIGHUP
    request.addfinalizer(lambda: signal.signal(number, before))
    complete = make_run(tmp_path / "complete", small)
    execute(complete)
    run = make_run(tmp_path / "paused", small)
    with pytest.raises(RunPaused):
        execute(run, lambda loop: os.kill(os.getpid(), number) if loop.epoch == 3 else None)
    assert not is_done(run.run_dir)
    assert not (run.run_dir / "failed.json").exists()
    execute(run)
    assert outcome(run) == outcome(complete)


def test_a_synthetic_point_writes_no_checkpoint_and_starts_again(tmp_path):
    settings = {"lcat.loop": "csbm", "dataset.name": "csbm", "csbm.model": "cat", "csbm.n": 200}
    run = Run(tmp_path / "point", "cat", settings, {}, threads=1)
    with pytest.raises(RunPaused):
        execute(run, lambda loop: os.kill(os.getpid(), PAUSE_SIGNALS[0]))
    assert not (run.run_dir / "checkpoint.pt").exists()
    assert not is_done(run.run_dir)
    execute(run)
    assert is_done(run.run_dir)
