"""SIGKILL at random moments does not change a run's result."""

import multiprocessing
import os
import random
import signal
import time

import pytest
from run_outcomes import make_run, outcome

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["graphgym_lcat", "graphgym_lcat.gym.runner"])


def execute_in_process(run):
    import torch

    from graphgym_lcat.gym.runner import execute

    torch.set_num_threads(1)
    execute(run)


def start(run):
    process = CONTEXT.Process(target=execute_in_process, args=(run,))
    process.start()
    return process


def finish(run):
    process = start(run)
    process.join()
    assert process.exitcode == 0


def kill_and_resume(tmp_path, settings, kills, seed):
    settings = {"lcat.checkpoint_seconds": 0.05, "gnn.dropout": 0.2, **settings}
    finish(make_run(tmp_path / "first", {**settings, "optim.max_epoch": 1}))  # the fork server imports torch once
    complete = make_run(tmp_path / "complete", settings)
    before = time.monotonic()
    finish(complete)
    duration = time.monotonic() - before
    moments = random.Random(seed)
    run = make_run(tmp_path / "killed", settings)
    killed = 0
    while killed < kills and not (run.run_dir / "result.json").exists():
        process = start(run)
        time.sleep(moments.uniform(0, 2 * duration / kills))  # so that it dies about so many times
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        process.join()
    finish(run)
    assert outcome(run) == outcome(complete)
    return killed


SAMPLED = {"train.sampler": "neighbor", "train.batch_size": 8, "train.neighbor_sizes": [5, 4], "optim.max_epoch": 60}


@pytest.mark.slow
def test_three_kills_of_a_sampled_run_change_nothing(tmp_path, small):
    assert kill_and_resume(tmp_path, {**small, **SAMPLED}, kills=3, seed=0) >= 1


@pytest.mark.campaign
def test_twenty_kills_of_a_sampled_run_change_nothing(tmp_path, small):
    assert kill_and_resume(tmp_path, {**small, **SAMPLED, "optim.max_epoch": 200}, kills=20, seed=1) >= 15


@pytest.mark.slow
def test_three_kills_change_nothing(tmp_path, small):
    assert kill_and_resume(tmp_path, {**small, "optim.max_epoch": 300}, kills=3, seed=0) >= 1


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
def test_many_kills_change_nothing(tmp_path, small, seed):
    assert kill_and_resume(tmp_path, {**small, "optim.max_epoch": 300}, kills=8, seed=seed) >= 5
