"""The SLURM engine on a real SLURM with the fake worker: everything that a cluster does to jobs."""

import json
import os
import signal
import subprocess

import pytest
from cluster_sandbox import queue

from lcat_run.engines.slurm_queue import slurm_folder

pytestmark = pytest.mark.slow

LONG = ("optim.max_epoch", "200")  # two seconds per run


def test_an_array_executes_every_run_and_a_second_submission_submits_nothing(sandbox):
    sandbox.write_grid("{name: small, models: {a: {lcat.heads: 2}, b: {gnn.act: fail}}, seeds: 8}")
    said = sandbox.submit("--runs-per-task", "4")
    assert "16 runs submitted as job" in said
    sandbox.wait_until_done(8)
    sandbox.wait_until_idle()
    assert "8 done, 8 failed" in sandbox.status()
    assert "8 × ValueError: asked to fail" in sandbox.status()
    assert "nothing to do: 8 done, 8 failed" in sandbox.submit(status=1)
    assert set(sandbox.completions().values()) == {1}


def test_while_jobs_wait_or_run_nothing_is_submitted_twice(sandbox):
    sandbox.submit(*LONG, "--runs-per-task", "2", "--array-parallelism", "1")
    assert "nothing to do: 0 done, 8 waiting or running" in sandbox.submit(*LONG)


def test_arrays_are_cut_to_what_the_cluster_allows(sandbox):
    sandbox.write_grid("{name: small, models: [gcn, lcat], seeds: 6}")
    said = sandbox.submit("--runs-per-task", "1")
    assert "12 runs submitted as job" in said
    assert said.count("job ") == 2
    sandbox.wait_until_done(12)


def test_a_worker_killed_by_a_signal_is_replaced_within_its_task(sandbox):
    sandbox.write_grid("{name: small, models: {a: {gnn.act: crash_once}, b: {lcat.heads: 2}}, seeds: 2}")
    sandbox.submit("--runs-per-task", "4")
    sandbox.wait_until_done(4)
    assert set(sandbox.completions().values()) == {1}


def test_cancelled_runs_keep_their_checkpoints_and_resume_when_submitted_again(sandbox):
    sandbox.submit(*LONG, "--runs-per-task", "1")
    sandbox.wait_for(lambda: sandbox.started() >= 4)
    subprocess.run(["scancel", "--me"], check=True)
    sandbox.wait_until_idle()
    assert "paused" in sandbox.status()
    assert "8 runs submitted" in sandbox.submit(*LONG, "--runs-per-task", "1")
    sandbox.wait_until_done(8)
    resumed = [path for path in sandbox.folder.runs.glob("*/log.txt") if len(path.read_text().splitlines()) == 2]
    assert len(resumed) >= 4
    assert not any(path.read_text().splitlines()[1].startswith("started at epoch 0 ") for path in resumed)


def test_a_task_that_is_killed_completely_is_noticed_and_submitted_again(sandbox):
    sandbox.write_grid("{name: small, models: [gcn], seeds: 1}")
    sandbox.submit(*LONG)
    sandbox.wait_for(lambda: sandbox.started() == 1)
    (claim,) = sandbox.folder.runs.glob("*/claim.json")
    owner = json.loads(claim.read_text())["owner"]["pid"]
    os.kill(owner, signal.SIGKILL)
    sandbox.wait_until_idle()
    assert "1 killed" in sandbox.status()
    assert "1 run submitted" in sandbox.submit(*LONG)
    sandbox.wait_until_done(1)
    assert set(sandbox.completions().values()) == {1}


@pytest.mark.campaign
def test_preempted_runs_resume_from_their_checkpoints_automatically(sandbox):
    sandbox.write_grid("{name: small, models: [gcn, lcat], seeds: 2}")
    sandbox.submit("optim.max_epoch", "800", "--runs-per-task", "1", "--partition", "main")
    sandbox.wait_for(lambda: sandbox.started() == 4)
    urgent = ["sbatch", "-p", "urgent", "-N4", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 2"]
    subprocess.run(urgent, check=True, capture_output=True)
    sandbox.wait_for(lambda: any("PENDING" in line for line in queue()))
    sandbox.wait_until_done(4)
    logs = [path.read_text().splitlines() for path in sandbox.folder.runs.glob("*/log.txt")]
    assert sum(len(log) >= 2 and not log[1].startswith("started at epoch 0 ") for log in logs) >= 3
    assert set(sandbox.completions().values()) == {1}


def test_status_says_why_a_job_is_held(sandbox):
    sandbox.submit(*LONG, "--runs-per-task", "8", "--sbatch", "hold")
    assert "8 queued" in sandbox.status()
    assert "8 × pending: JobHeldUser" in sandbox.status()


def test_a_dry_run_shows_the_script_and_what_sbatch_thinks_of_it(sandbox):
    said = sandbox.submit("--dry-run", "--partition", "main", "--time", "5", "--mem", "300M", "--cpus", "2")
    assert "#SBATCH --partition=main" in said
    assert "sbatch --test-only: sbatch: Job" in said
    assert not sandbox.folder.path.exists()


def test_a_submission_that_sbatch_refuses_is_reported(sandbox):
    launcher = sandbox.launch("--engine", "slurm", "--partition", "nowhere")
    said, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 2
    assert "sbatch refused the jobs" in said
    assert "invalid partition" in said


@pytest.mark.campaign
def test_a_launcher_that_dies_after_sbatch_leaves_nothing_behind(sandbox):
    longer = ("optim.max_epoch", "1500", "--runs-per-task", "1")
    sandbox.submit(*longer)
    sandbox.wait_for(lambda: sandbox.started() >= 4)
    (record,) = slurm_folder(sandbox.folder).glob("submission-*.json")
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "job": None}))
    said = sandbox.submit(*longer)
    assert f"job {content['job']} was submitted by a launcher that died" in said
    assert "8 runs submitted" in said
    sandbox.wait_until_done(8)
    assert set(sandbox.completions().values()) == {1}


@pytest.mark.campaign
def test_runs_longer_than_the_time_limit_resume_from_their_checkpoints(sandbox):
    sandbox.write_grid("{name: small, models: [gcn], seeds: 2}")
    sandbox.submit("optim.max_epoch", "9000", "--runs-per-task", "2", "--time", "1", "--cpus", "2")
    sandbox.wait_until_done(2, seconds=400)
    logs = [path.read_text().splitlines() for path in sandbox.folder.runs.glob("*/log.txt")]
    assert all(len(log) >= 2 for log in logs)
    assert not any(line.startswith("started at epoch 0 ") for log in logs for line in log[1:])
    assert set(sandbox.completions().values()) == {1}


@pytest.mark.campaign
def test_real_training_on_the_cluster(sandbox, monkeypatch):
    monkeypatch.delenv("LCAT_WORKER")
    sandbox.write_grid(
        """\
        name: small
        base: real.yaml
        models: [gcn, lcat]
        seeds: 2
        set: {dataset.name: BlockModel, block_model.num_nodes: 200, optim.max_epoch: 20}
        """
    )
    sandbox.submit("--runs-per-task", "2", "--mem", "2000M")
    sandbox.wait_until_done(4, seconds=200)
    assert all(0 <= result["test"]["accuracy"] <= 1 for result in sandbox.results().values())
