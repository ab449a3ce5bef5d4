"""The SLURM engine against programs that only pretend to be SLURM's."""

import errno
import json
import os
import re
import sys
from pathlib import Path

import pytest
from submitit.core.utils import DelayedSubmission

from lcat_core import files
from lcat_core.claims import Claim
from lcat_core.errors import UserError
from lcat_core.outcomes import Outcome
from lcat_run import cli
from lcat_run.engines import slurm_queue
from lcat_run.engines.slurm import share_out
from lcat_run.engines.slurm_queue import open_submissions, slurm_folder
from lcat_run.engines.slurm_resources import parse_minutes, parse_sbatch

FAKES = Path(__file__).with_name("fake_slurm")


@pytest.fixture
def slurm(sandbox, tmp_path_factory, monkeypatch):
    """The folder in which the fake programs keep their state."""
    folder = tmp_path_factory.mktemp("slurm")
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    monkeypatch.setenv("PATH", f"{FAKES}{os.pathsep}{os.environ['PATH']}")
    return folder


def submit(sandbox, *arguments):
    return sandbox.sweep("--engine", "slurm", *arguments)


def show_in_queue(slurm, sandbox, state="PENDING", reason="Priority"):
    """Let squeue list all tasks of everything that was submitted."""
    lines = []
    for record in open_submissions(sandbox.folder):
        name = record.job_name("small")
        job = record.job or "777"
        lines += [f"{job}_{task}|{name}|{state}|{reason}" for task in range(len(record.tasks))]
    (slurm / "queue").write_text("\n".join(lines) + "\n")


def test_arrays_have_no_more_tasks_than_the_cluster_allows(slurm, sandbox, capsys):
    assert submit(sandbox, "--runs-per-task", "1") == 0
    assert "8 runs submitted as job 101, job 102, job 103" in capsys.readouterr().out
    arrays = [re.search(r"--array=(\S+)", (slurm / f"script-{n}").read_text())[1] for n in (101, 102, 103)]
    assert arrays == ["0-2%3", "0-2%3", "0-1%2"]


def test_every_run_is_in_exactly_one_task(slurm, sandbox):
    submit(sandbox, "--runs-per-task", "3")
    tasks = [task for record in open_submissions(sandbox.folder) for task in record.tasks]
    assert sorted(run_id for task in tasks for run_id in task) == sorted(r.run_id for r in sandbox.folder.read_runs())
    assert max(map(len, tasks)) <= 3


def test_options_reach_the_script(slurm, sandbox):
    submit(
        sandbox,
        *("--partition", "cpu", "--account", "us", "--qos", "low", "--time", "1-02:30", "--mem", "8G", "--cpus", "2"),
        *("--gpus", "1", "--constraint", "avx512", "--array-parallelism", "2", "--runs-per-task", "3"),
        *("--setup", "module load gcc", "--sbatch", "mail-type=END", "--sbatch", "exclusive"),
    )
    script = (slurm / "script-101").read_text().splitlines()
    expected = ["partition=cpu", "account=us", "qos=low", "time=1590", "mem=8G", "cpus-per-task=2", "gpus-per-node=1"]
    expected += ["constraint=avx512", "array=0-2%2", "mail-type=END", "exclusive", "requeue", "open-mode=append"]
    for option in expected:
        assert f"#SBATCH --{option}" in script
    assert "module load gcc" in script


def test_what_waits_in_the_queue_is_not_submitted_again(slurm, sandbox, capsys):
    submit(sandbox)
    show_in_queue(slurm, sandbox)
    assert submit(sandbox) == 0
    assert "nothing to do: 0 done, 8 waiting or running, 0 failed" in capsys.readouterr().out


def test_what_has_left_the_queue_unfinished_is_submitted_again(slurm, sandbox, capsys):
    submit(sandbox)
    capsys.readouterr()
    submit(sandbox)
    assert "8 runs submitted" in capsys.readouterr().out


def test_status_shows_the_reason_why_jobs_wait(slurm, sandbox, capsys):
    submit(sandbox)
    show_in_queue(slurm, sandbox, reason="launch failed requeued held")
    cli.main(["status", "small"])
    assert "8 × pending: launch failed requeued held" in capsys.readouterr().out


def test_a_queue_that_does_not_answer_makes_runs_unknown_not_lost(slurm, sandbox, capsys):
    submit(sandbox)
    (slurm / "down").touch()
    cli.main(["status", "small"])
    said = capsys.readouterr().out
    assert "8 runs: 8 unknown" in said
    assert "Unable to contact slurm controller" in said


def test_nothing_is_submitted_while_the_queue_does_not_answer(slurm, sandbox, capsys):
    submit(sandbox)
    (slurm / "down").touch()
    assert submit(sandbox) == 2
    assert "SLURM does not answer, so nothing was submitted" in capsys.readouterr().err


def test_a_run_is_lost_only_at_the_second_look(slurm, sandbox, capsys, monkeypatch):
    submit(sandbox)
    cli.main(["status", "small"])
    assert "8 missing" in capsys.readouterr().out
    monkeypatch.setattr(slurm_queue, "SECONDS_UNTIL_LOST", 0.0)
    cli.main(["status", "small"])
    assert "8 lost" in capsys.readouterr().out


def test_a_job_whose_launcher_died_before_recording_it_is_found_and_submitted_again(slurm, sandbox, capsys):
    submit(sandbox)
    (record,) = slurm_folder(sandbox.folder).glob("submission-*.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "job": None}))
    show_in_queue(slurm, sandbox)
    (slurm / "ending").write_text("2")
    capsys.readouterr()
    submit(sandbox)
    said = capsys.readouterr()
    assert "job 777 was submitted by a launcher that died" in said.err
    assert "8 runs submitted" in said.out
    assert (slurm / "cancelled").read_text() == "777\n"


def test_runs_that_an_orphaned_job_still_executes_are_submitted_again_when_it_has_ended(
    slurm, sandbox, capsys, monkeypatch
):
    submit(sandbox)
    (record,) = slurm_folder(sandbox.folder).glob("submission-*.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "job": None}))
    show_in_queue(slurm, sandbox)
    claims = [Claim.take(sandbox.folder.make_run_dir(run.run_id)) for run in sandbox.folder.read_runs()]

    def end(job):
        for claim in claims:
            claim.release(Outcome.PAUSED)

    monkeypatch.setattr("lcat_run.engines.slurm.cancel_and_wait", end)
    capsys.readouterr()
    submit(sandbox)
    assert "8 runs submitted" in capsys.readouterr().out


def test_an_orphaned_job_that_does_not_end_is_named_and_nothing_is_submitted(slurm, sandbox, capsys, monkeypatch):
    monkeypatch.setattr(slurm_queue, "SECONDS_UNTIL_ENDED", 0.0)
    submit(sandbox)
    (record,) = slurm_folder(sandbox.folder).glob("submission-*.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "job": None}))
    show_in_queue(slurm, sandbox)
    (slurm / "ending").write_text("never")
    assert submit(sandbox) == 2
    said = capsys.readouterr().err
    assert "job 777, which was submitted by a launcher that died, is still ending" in said
    assert "does not answer" not in said
    assert len(open_submissions(sandbox.folder)) == 1


def test_a_refusal_of_sbatch_is_one_message(slurm, sandbox, capsys):
    (slurm / "refuse").touch()
    assert submit(sandbox) == 2
    assert "sbatch refused the jobs: sbatch: error: invalid partition specified" in capsys.readouterr().err


def test_cancel_cancels_the_jobs_of_this_sweep_only(slurm, sandbox, capsys):
    submit(sandbox)
    show_in_queue(slurm, sandbox)
    with open(slurm / "queue", "a") as lines:
        lines.write("5|somebody-elses|RUNNING|None\n")
    assert cli.main(["cancel", "small"]) == 0
    assert (slurm / "cancelled").read_text() == "101\n"


def test_cancel_says_when_the_queue_does_not_answer(slurm, sandbox, capsys):
    submit(sandbox)
    (slurm / "down").touch()
    assert cli.main(["cancel", "small"]) == 1
    assert "jobs of results/small may still wait or run: squeue failed" in capsys.readouterr().err


def test_status_of_a_folder_that_cannot_be_written(slurm, sandbox, capsys, monkeypatch):
    submit(sandbox)

    def refuse(path, *_):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(files, "write_text", refuse)
    assert cli.main(["status", "small"]) == 0
    assert "8 missing" in capsys.readouterr().out


def test_without_submitit_nothing_is_written(slurm, sandbox, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    assert submit(sandbox) == 2
    assert "submitit is not installed; --engine slurm needs: pip install" in capsys.readouterr().err
    assert not sandbox.folder.path.exists()


def test_an_estimate_counts_no_more_tasks_than_there_are(slurm, sandbox, capsys):
    submit(sandbox, "--dry-run", "--runs-per-task", "4", "--cpus", "2")
    assert "with 4 workers" in capsys.readouterr().out


def test_a_dry_run_submits_nothing(slurm, sandbox, capsys):
    assert submit(sandbox, "--dry-run", "--runs-per-task", "4") == 0
    said = capsys.readouterr().out
    assert "2 tasks in 1 array\n" in said
    assert "sbatch --test-only: sbatch: Job 1 to start at once" in said
    assert not (slurm / "jobs").exists()
    assert not sandbox.folder.path.exists()


def test_without_slurm_the_engine_says_so(sandbox, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert submit(sandbox) == 2
    assert "there is no squeue on this machine" in capsys.readouterr().err


def test_a_task_keeps_the_settings_it_was_submitted_with(slurm, sandbox):
    """The sweep is given other settings while the task waits."""
    submit(sandbox, "optim.max_epoch", "3")
    (pickle,) = slurm_folder(sandbox.folder).glob("jobs/101*_submitted.pkl")
    submit(sandbox, "optim.max_epoch", "7")
    task = DelayedSubmission.load(pickle).function
    assert task.task.common["optim.max_epoch"] == 3
    assert task() == {"done": 8, "done_elsewhere": 0, "failed": 0, "killed": 0, "paused": 0}
    assert {result["timing"]["seconds"] for result in sandbox.results().values()} == {0.03}


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("90", 90), ("30:00", 30), ("2:00:00", 120), ("1-0", 1440), ("1-02:30", 1590), ("0:30", 1), ("1-00:00:01", 1441)],
)
def test_times_are_read_as_slurm_writes_them(text, minutes):
    assert parse_minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "soon", "1h", "0", "-5"])
def test_a_time_that_is_none_is_an_error(text):
    with pytest.raises(UserError, match="--time must be"):
        parse_minutes(text)


def test_an_option_of_sbatch_must_have_a_name():
    with pytest.raises(UserError, match="--sbatch takes an option"):
        parse_sbatch(["=5"])


def test_long_runs_are_spread_over_the_tasks():
    assert share_out(["a", "b", "c", "d", "e"], 2) == [["a", "d"], ["b", "e"], ["c"]]
