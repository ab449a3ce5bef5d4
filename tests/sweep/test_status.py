"""`lcat status`, `lcat logs` and `lcat cancel`."""

import json
import time

import pytest
from fake_worker import result

from lcat_core.run_folder import RunRecord
from lcat_run import cli
from lcat_run.sweep.state import scan


def wait_for(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def mixed(sandbox):
    """A sweep with one run failed, one killed, one never started, the others done."""
    sandbox.write_grid(
        "{name: small, models: {good: {lcat.heads: 2}, bad: {gnn.act: fail}, deadly: {gnn.act: crash}}, seeds: 2}"
    )
    sandbox.sweep("-j", "2", "--only", "model=good,model=deadly,seed=0")
    sandbox.sweep("-j", "2", "--only", "model=bad,seed=0")
    return sandbox


def states(sandbox):
    snapshot = scan(sandbox.folder, sandbox.folder.read_runs())
    return {run_id.rsplit("-", 1)[0]: state.state for run_id, state in snapshot.states.items()}


def test_every_state_comes_from_the_files(mixed):
    assert states(mixed) == {
        "good-Cora-s0": "done",
        "good-Cora-s1": "missing",
        "bad-Cora-s0": "failed",
        "bad-Cora-s1": "missing",
        "deadly-Cora-s0": "killed",
        "deadly-Cora-s1": "missing",
    }


def test_status_counts_by_state_model_and_dataset(mixed, capsys):
    capsys.readouterr()
    assert cli.main(["status", "small"]) == 0
    said = capsys.readouterr().out
    assert "6 runs: 1 done, 1 failed, 1 killed, 3 missing" in said
    assert "1 × ValueError: asked to fail" in said
    rows = [line.split() for line in said.splitlines()]
    assert ["Cora", "1/2", "0/2", "1!", "0/2", "1!"] in rows


def test_status_shows_what_runs_now(sandbox, capsys):
    launcher = sandbox.launch("optim.max_epoch", "200", "-j", "2")
    wait_for(lambda: len(list(sandbox.folder.runs.glob("*/checkpoint.pt"))) == 2)
    cli.main(["status", "results/small"])
    assert "2 running" in capsys.readouterr().out
    assert cli.main(["cancel", "small"]) == 0
    assert f"asked the launcher {launcher.pid} to stop" in capsys.readouterr().out
    launcher.communicate(timeout=20)
    assert launcher.returncode == 130
    cli.main(["status", "small"])
    assert "2 paused, 6 missing" in capsys.readouterr().out


def test_cancel_says_when_there_is_nothing_to_cancel(sandbox, capsys):
    sandbox.sweep()
    assert cli.main(["cancel", "small"]) == 0
    assert "nothing of results/small runs" in capsys.readouterr().out


def test_an_unknown_sweep_offers_the_nearest(sandbox, capsys):
    sandbox.sweep()
    assert cli.main(["status", "smal"]) == 2
    assert "did you mean 'small'?" in capsys.readouterr().err


def test_logs_lists_what_failed_and_why(mixed, capsys):
    capsys.readouterr()
    cli.main(["logs", "small"])
    lines = sorted(capsys.readouterr().out.splitlines())
    assert len(lines) == 2
    assert lines[0].startswith("failed  bad-Cora-s0-")
    assert lines[1].startswith("killed  deadly-Cora-s0-")


def test_logs_shows_the_log_and_the_traceback_of_a_run(mixed, capsys):
    capsys.readouterr()
    assert cli.main(["logs", "small", "bad-Cora-s0"]) == 0
    said = capsys.readouterr().out
    assert "started at epoch 0" in said
    assert "Traceback" in said


def test_logs_of_an_ambiguous_beginning_is_an_error(mixed, capsys):
    assert cli.main(["logs", "small", "bad"]) == 2
    assert "2 runs begin with 'bad'" in capsys.readouterr().err


def test_the_index_can_be_deleted_or_damaged(mixed):
    before = states(mixed)
    index = mixed.folder.path / "index.json"
    assert len(json.loads(index.read_text())["done"]) == 1
    index.write_text("{")
    assert states(mixed) == before
    index.unlink()
    assert states(mixed) == before
    assert index.exists()


def test_the_index_never_vouches_for_a_result_that_changed(mixed):
    states(mixed)
    (result,) = mixed.folder.runs.glob("good-*/result.json")
    result.write_text("{")
    assert states(mixed)["good-Cora-s0"] != "done"


def test_a_damaged_list_of_runs_is_reported_and_restored(mixed, capsys):
    runs = mixed.folder.path / "runs.jsonl"
    complete = runs.read_bytes()
    runs.write_bytes(complete[: len(complete) // 2])
    assert cli.main(["status", "small"]) == 0
    expected = "runs.jsonl has 1 damaged line, skipped; rerun the same `lcat sweep` command to restore the file"
    assert expected in capsys.readouterr().out
    mixed.sweep("--only", "model=good,seed=0")
    assert runs.read_bytes() == complete


def test_a_list_of_runs_may_say_more_than_this_version_knows(mixed):
    before = states(mixed)
    runs = mixed.folder.path / "runs.jsonl"
    runs.write_text(runs.read_text().replace('{"run_id"', '{"colour": "red", "run_id"'))
    assert states(mixed) == before


def test_a_run_that_was_killed_when_it_was_tried_again_is_not_reported_as_failed(mixed):
    (run_dir,) = mixed.folder.runs.glob("bad-Cora-s0-*")
    claim = {"owner": {"host": "here", "pid": 1, "started": 1}, "since": time.time() + 60}
    (run_dir / "claim.json").write_text(json.dumps(claim))
    assert states(mixed)["bad-Cora-s0"] == "killed"
    claim["since"] -= 120  # the launcher died after the failure was written, before it could say so
    (run_dir / "claim.json").write_text(json.dumps(claim))
    assert states(mixed)["bad-Cora-s0"] == "failed"


def test_a_folder_that_cannot_be_read_is_one_message(mixed, capsys, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.listdir", refuse)
    capsys.readouterr()
    assert cli.main(["status", "small"]) == 2
    assert capsys.readouterr().err == "lcat status: results/small/runs: Permission denied\n"


def test_status_counts_ten_thousand_finished_runs(sandbox, capsys):
    runs = [RunRecord(f"lcat-Cora-s{seed}-0123456789", "lcat", "Cora", seed, 0, {}) for seed in range(10_000)]
    for run in runs:
        run_dir = sandbox.folder.make_run_dir(run.run_id)
        (run_dir / "result.json").write_text(json.dumps(result("lcat", run.run_id, seed=run.seed, seconds=1.0)))
    (sandbox.folder.path / "runs.jsonl").write_text("".join(json.dumps(run.line()) + "\n" for run in runs))
    assert scan(sandbox.folder, runs).counts() == {"done": 10_000}
    assert cli.main(["status", "small"]) == 0
    assert "10000 done" in capsys.readouterr().out


def test_a_result_of_another_format_is_reported_and_not_replaced(sandbox, capsys):
    sandbox.sweep("--only", "seed=0")
    result = next(sandbox.folder.runs.glob("*/result.json"))
    result.write_text('{"schema": 2}')
    assert cli.main(["status", "small"]) == 0
    assert (
        "result.json has schema 2, but this version reads schema 1; the file is left as it is"
        in capsys.readouterr().out
    )
    sandbox.sweep("--only", "seed=0")
    assert result.read_text() == '{"schema": 2}'
