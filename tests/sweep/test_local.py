"""`lcat sweep` on one machine, from the outside, with the fake worker."""

import errno
import json
import os
import signal
import time

import pytest

from lcat_run import cli
from lcat_run.engines import local
from lcat_run.engines.local import gpu_names
from lcat_run.sweep.worker import planning_worker
from lcat_run.threads import workers_and_threads

pytestmark = pytest.mark.slow


def wait_for(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_a_sweep_executes_every_run_once(sandbox):
    assert sandbox.sweep() == 0
    assert len(sandbox.results()) == 8
    assert set(sandbox.completions().values()) == {1}


def test_the_same_command_again_does_nothing(sandbox, capsys):
    sandbox.sweep()
    before = {path: path.stat().st_mtime_ns for path in sandbox.folder.runs.glob("*/result.json")}
    assert sandbox.sweep() == 0
    assert "nothing to do: 8 done" in capsys.readouterr().out
    assert before == {path: path.stat().st_mtime_ns for path in sandbox.folder.runs.glob("*/result.json")}


def test_a_dry_run_writes_nothing(sandbox, capsys):
    assert sandbox.sweep("--dry-run") == 0
    said = capsys.readouterr().out
    assert "small: 8 runs, 0 of them done" in said
    assert "8 to start, first gcn-CiteSeer-s0-" in said
    assert not (sandbox.path / "results").exists()


def test_a_bad_key_stops_the_sweep_before_anything_is_written(sandbox, capsys):
    assert sandbox.sweep("optim.base_rl", "0.1") == 2
    assert "'optim.base_rl' is not a key" in capsys.readouterr().err
    assert not (sandbox.path / "results").exists()


def test_settings_may_stand_before_and_after_options(sandbox):
    assert sandbox.sweep("optim.max_epoch", "2", "-j", "2", "lcat.heads", "4", "--only", "model=gcn", "seeds", "1") == 0
    settings = sandbox.folder.info["settings"]
    assert (settings["optim.max_epoch"], settings["lcat.heads"]) == (2, 4)
    assert len(sandbox.results()) == 2


def test_only_starts_part_of_the_grid_and_records_all_of_it(sandbox):
    assert sandbox.sweep("--only", "dataset.name=Cora,model=lcat") == 0
    assert {name.rsplit("-", 2)[0] for name in sandbox.results()} == {"lcat-Cora"}
    assert len(sandbox.folder.read_runs()) == 8


def test_a_worker_that_is_killed_costs_one_retry_of_one_run(sandbox, capsys):
    sandbox.write_grid("{name: small, models: {a: {gnn.act: crash_once}, b: {lcat.heads: 2}}, seeds: 2}")
    assert sandbox.sweep("-j", "2") == 0
    assert set(sandbox.completions().values()) == {1}
    assert len(sandbox.results()) == 4
    assert "4 done, 2 retries of killed runs" in capsys.readouterr().out


def test_a_run_that_always_kills_its_worker_is_given_up_and_the_others_are_executed(sandbox, capsys):
    sandbox.write_grid("{name: small, models: {a: {gnn.act: crash}, b: {lcat.heads: 2}}}")
    assert sandbox.sweep("-j", "1") == 1
    assert len(sandbox.results()) == 1
    said = capsys.readouterr()
    assert "1 done, 1 killed" in said.out
    assert "killed by SIGKILL (3 times)" in said.err


def test_a_run_that_fails_is_reported_and_not_repeated_until_asked(sandbox, capsys):
    sandbox.write_grid("{name: small, models: {a: {gnn.act: fail}, b: {lcat.heads: 2}}}")
    assert sandbox.sweep() == 1
    assert "asked to fail" in capsys.readouterr().err
    failed = next(sandbox.folder.runs.glob("a-*")) / "log.txt"
    assert sandbox.sweep() == 1
    assert "nothing to do: 1 done, 1 failed" in capsys.readouterr().out
    assert len(failed.read_text().splitlines()) == 1
    assert sandbox.sweep("--retry-failed") == 1
    assert len(failed.read_text().splitlines()) == 2


def test_runs_that_failed_earlier_are_neither_counted_as_done_nor_forgotten(sandbox, capsys):
    sandbox.write_grid("{name: small, models: {a: {gnn.act: fail}, b: {lcat.heads: 2}}}")
    sandbox.sweep()
    sandbox.write_grid("{name: small, models: {a: {gnn.act: fail}, b: {lcat.heads: 2}, c: {lcat.heads: 4}}}")
    capsys.readouterr()
    assert sandbox.sweep() == 1
    assert "1 run that failed in an earlier launch left out" in capsys.readouterr().out
    assert sandbox.sweep("--only", "model=b,model=c") == 0
    assert "nothing to do: 2 done, 0 failed" in capsys.readouterr().out


def test_the_bar_starts_at_what_is_done(sandbox, monkeypatch):
    started = []
    monkeypatch.setattr(local.Progress, "__init__", lambda _, *arguments: started.append(arguments[:2]))
    sandbox.write_grid("{name: small, models: {a: {gnn.act: fail}, b: {lcat.heads: 2}, c: {lcat.heads: 4}}}")
    for name in ("finished", "tick", "say", "close"):
        monkeypatch.setattr(local.Progress, name, lambda *_: None)
    sandbox.sweep("--only", "model=a,model=b")
    sandbox.sweep()
    assert started == [(2, 0), (3, 1)]


def test_an_estimate_counts_no_more_workers_than_runs(sandbox, capsys):
    sandbox.sweep("--dry-run", "-j", "64", "--only", "seed=0")
    assert "with 4 workers" in capsys.readouterr().out


def test_a_name_that_is_not_text_is_accepted(sandbox):
    name = os.fsdecode(b"gr\xefd.yaml")
    (sandbox.path / name).write_bytes((sandbox.path / "grid.yaml").read_bytes())
    assert cli.main(["sweep", name]) == 0
    assert sandbox.folder.info["source"] == name


def test_a_missing_dataset_stops_the_sweep_before_a_run_starts(sandbox, capsys):
    sandbox.write_grid("{name: small, models: [gcn], axes: {dataset.name: [Cora, Missing]}}")
    assert sandbox.sweep() == 2
    assert "1 of 2 datasets are unavailable: Missing: put its file into" in capsys.readouterr().err
    assert sandbox.results() == {}


def test_a_grid_may_change_between_two_launches(sandbox, capsys):
    sandbox.sweep()
    before = sandbox.results()
    sandbox.write_grid("{name: small, models: [gcn, lcat], axes: {dataset.name: [Cora]}, seeds: 3}")
    assert sandbox.sweep() == 0
    assert "4 runs of an earlier version of the grid kept" in capsys.readouterr().err
    after = sandbox.results()
    assert before.items() <= after.items()
    assert len(after) == 8 + 2
    assert len(sandbox.folder.read_runs()) == 6
    assert len(sandbox.folder.read_runs(with_old=True)) == 10


def test_changed_settings_make_new_runs_and_keep_the_old(sandbox):
    sandbox.sweep()
    before = sandbox.results()
    assert sandbox.sweep("optim.max_epoch", "2") == 0
    assert before.items() <= sandbox.results().items()
    assert len(sandbox.results()) == 16


def test_a_truncated_result_is_reported_and_computed_again(sandbox, capsys):
    sandbox.sweep()
    victim = next(sandbox.folder.runs.glob("lcat-*")) / "result.json"
    victim.write_text(victim.read_text()[:40])
    assert sandbox.sweep() == 0
    said = capsys.readouterr()
    assert f"{victim.relative_to(sandbox.path)} is incomplete" in said.err
    assert "1 done" in said.out
    assert json.loads(victim.read_text())["schema"] == 1


def test_garbage_among_the_runs_is_reported_and_left_alone(sandbox, capsys):
    sandbox.sweep()
    (sandbox.folder.runs / "notes.txt").write_text("mine")
    assert sandbox.sweep() == 0
    assert "an entry that is not a run of this sweep, such as notes.txt" in capsys.readouterr().err
    assert (sandbox.folder.runs / "notes.txt").read_text() == "mine"


def test_a_file_in_the_place_of_a_run_does_not_stop_the_others(sandbox, capsys):
    sandbox.sweep("--dry-run")
    name = next(word for word in capsys.readouterr().out.split() if word.startswith("gcn-CiteSeer-s0")).rstrip(":")
    sandbox.folder.runs.mkdir(parents=True)
    (sandbox.folder.runs / name).write_text("")
    sandbox.sweep()
    assert len(sandbox.results()) == 7
    assert "should be the folder of a run but is a file" in capsys.readouterr().err


def test_a_disk_that_is_full_at_the_start_is_one_message_with_the_file(sandbox, capsys, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert sandbox.sweep() == 2
    assert capsys.readouterr().err == "lcat sweep: results/small/runs.jsonl: No space left on device\n"


def test_a_full_disk_stops_the_sweep_with_a_message(sandbox, capsys):
    sandbox.write_grid("{name: small, models: {a: {gnn.act: no_space}, b: {lcat.heads: 2}}, seeds: 30}")
    assert sandbox.sweep("-j", "1") == 1
    said = capsys.readouterr().err
    assert "no space left in results/small" in said
    assert "finished runs are safe" in said
    assert len(list(sandbox.folder.runs.glob("a-*"))) < 5


def test_ctrl_c_keeps_checkpoints_and_says_how_to_resume(sandbox):
    launcher = sandbox.launch("optim.max_epoch", "300", "-j", "2")
    wait_for(lambda: len(list(sandbox.folder.runs.glob("*/checkpoint.pt"))) == 2)
    launcher.send_signal(signal.SIGINT)
    said, _ = launcher.communicate(timeout=20)
    assert launcher.returncode == 130
    assert "2 paused" in said
    assert "resume with: lcat sweep grid.yaml optim.max_epoch 300 -j 2" in said
    assert len(list(sandbox.folder.runs.glob("*/checkpoint.pt"))) == 2
    assert sandbox.results() == {}


def test_a_worker_that_does_not_answer_is_killed_by_the_second_ctrl_c(sandbox):
    sandbox.write_grid("{name: small, models: {a: {gnn.act: hang}}}")
    launcher = sandbox.launch()
    wait_for(lambda: list(sandbox.folder.runs.glob("*/log.txt")))
    launcher.send_signal(signal.SIGINT)
    time.sleep(0.3)
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=10)
    assert launcher.returncode == 130


def test_a_results_folder_that_cannot_be_written_is_one_message(sandbox, capsys):
    (sandbox.path / "results").write_text("a file")
    assert sandbox.sweep() == 2
    assert "results/small" in capsys.readouterr().err


def test_a_closed_terminal_pauses_the_runs(sandbox):
    launcher = sandbox.launch("optim.max_epoch", "300", "-j", "1")
    wait_for(lambda: list(sandbox.folder.runs.glob("*/checkpoint.pt")))
    launcher.send_signal(signal.SIGHUP)
    said, _ = launcher.communicate(timeout=20)
    assert "1 paused" in said


def test_a_paused_run_resumes_from_its_checkpoint(sandbox):
    launcher = sandbox.launch("optim.max_epoch", "60", "-j", "1", "--only", "model=gcn,dataset.name=Cora,seed=0")
    wait_for(lambda: list(sandbox.folder.runs.glob("*/checkpoint.pt")))
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=20)
    (log,) = sandbox.folder.runs.glob("*/log.txt")
    assert sandbox.sweep("optim.max_epoch", "60", "-j", "4") == 0
    first, second = log.read_text().splitlines()
    assert first.startswith("started at epoch 0 ")
    assert not second.startswith("started at epoch 0 ")


def test_workers_die_with_a_killed_launcher_and_the_next_one_takes_over(sandbox):
    launcher = sandbox.launch("optim.max_epoch", "100", "-j", "2")
    wait_for(lambda: len(list(sandbox.folder.runs.glob("*/checkpoint.pt"))) == 2)
    workers = [json.loads(path.read_text())["worker"]["pid"] for path in sandbox.folder.runs.glob("*/claim.json")]
    launcher.kill()
    launcher.communicate(timeout=20)
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
    assert sandbox.sweep("optim.max_epoch", "100", "-j", "8") == 0
    assert not list((sandbox.folder.path / "launchers").iterdir())
    assert len(sandbox.results()) == 8
    assert set(sandbox.completions().values()) == {1}


def test_two_launchers_share_the_work(sandbox):
    sandbox.write_grid("{name: small, models: [gcn, lcat], seeds: 20, set: {optim.max_epoch: 5}}")
    launchers = [sandbox.launch("-j", "2") for _ in range(2)]
    for launcher in launchers:
        said, _ = launcher.communicate(timeout=60)
        assert launcher.returncode == 0, said
    assert len(sandbox.results()) == 40
    assert set(sandbox.completions().values()) == {1}
    events = [json.loads(line) for line in (sandbox.folder.path / "events.jsonl").read_text().splitlines()]
    assert len({event["pid"] for event in events if event["event"] == "done"}) == 2


def test_a_launcher_takes_over_the_runs_of_another_that_dies(sandbox):
    sandbox.write_grid("{name: small, models: [gcn], seeds: 4, set: {optim.max_epoch: 150}}")
    first = sandbox.launch("-j", "4")
    wait_for(lambda: len(list(sandbox.folder.runs.glob("*/checkpoint.pt"))) == 4)
    second = sandbox.launch("-j", "4")
    time.sleep(0.7)
    first.kill()
    first.communicate(timeout=20)
    said, _ = second.communicate(timeout=30)
    assert second.returncode == 0, said
    assert len(sandbox.results()) == 4


@pytest.mark.parametrize(
    ("jobs", "threads", "expected"),
    [(None, None, (8, 1)), (2, None, (2, 4)), (None, 3, (2, 3)), (5, 1, (5, 1)), (16, None, (16, 1))],
)
def test_workers_times_threads_fit_the_cores(jobs, threads, expected):
    assert workers_and_threads(jobs, threads, cores=8) == expected


@pytest.mark.parametrize(("jobs", "threads", "expected"), [(None, None, (4, 2)), (None, 1, (4, 1)), (8, None, (8, 1))])
def test_with_gpus_there_is_one_worker_per_gpu(jobs, threads, expected):
    assert workers_and_threads(jobs, threads, cores=8, gpus=4) == expected


def test_every_worker_sees_one_gpu(sandbox, monkeypatch):
    monkeypatch.setenv("FAKE_GPUS", "2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert sandbox.sweep("optim.max_epoch", "20") == 0
    assert {result["timing"]["host"] for result in sandbox.results().values()} == {"3", "5"}


def test_runs_on_the_cpu_leave_the_gpus_alone(sandbox, monkeypatch):
    monkeypatch.setenv("FAKE_GPUS", "2")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert sandbox.sweep("accelerator", "cpu", "seeds", "1") == 0
    assert {result["timing"]["host"] for result in sandbox.results().values()} == {""}


def test_gpus_are_named_as_the_environment_names_them(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu_names(2) == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-8a,1")
    assert gpu_names(2) == ["GPU-8a", "1"]


def test_the_longest_runs_start_first(sandbox):
    sandbox.write_grid(
        "{name: small, models: [dense, gcn, lcatv2], axes: {block_model.avg_degree: [2, 50]}, "
        "set: {dataset.name: BlockModel}}"
    )
    sandbox.sweep("-j", "1")
    events = [json.loads(line) for line in (sandbox.folder.path / "events.jsonl").read_text().splitlines()]
    order = [event["run_id"].split("-")[0] for event in events if event["event"] == "started"]
    assert order == ["lcatv2", "gcn", "lcatv2", "gcn", "dense", "dense"]


def test_what_every_worker_prints_is_kept(sandbox):
    """The first worker starts before the sweep has a folder."""
    sandbox.write_grid("{name: small, models: {a: {gnn.act: talk, optim.max_epoch: 30}}, seeds: 4}")
    assert sandbox.sweep("-j", "2") == 0
    logs = {path.name.rpartition("-")[2]: path.read_text() for path in sandbox.folder.logs.iterdir()}
    assert set(logs) == {"0.log", "1.log"}
    assert sorted("".join(logs.values()).splitlines()) == sorted(f"talking: {run_id}" for run_id in sandbox.results())


def test_what_a_worker_printed_while_planning_is_kept(sandbox):
    with planning_worker(threads=1) as worker:
        worker.ask({"op": "describe", "base": None, "print": "while planning"})
        worker.log.write_to(sandbox.folder.logs / "worker.log")
        worker.ask({"op": "describe", "base": None, "print": "later"})
    assert worker.log.last_line() == "later"
    assert (sandbox.folder.logs / "worker.log").read_text() == "while planning\nlater\n"


def test_every_run_gets_the_number_of_threads(sandbox):
    sandbox.sweep("-j", "1", "--threads", "2")
    assert {result["timing"]["threads"] for result in sandbox.results().values()} == {2}
