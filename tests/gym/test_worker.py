"""The worker's side of the protocol between a sweep and its workers."""

import errno
import io
import json

import pytest

from graphgym_lcat.gym import worker as worker_module
from graphgym_lcat.gym.worker import Worker
from lcat_core.claims import Claim
from lcat_core.outcomes import RunPaused
from lcat_core.run_folder import State, unfinished_state


@pytest.fixture
def worker():
    return Worker(io.StringIO())


@pytest.fixture
def request_run(tmp_path, small):
    return {
        "op": "run",
        "run_dir": str(tmp_path / "run"),
        "model": "lcat",
        "settings": small,
        "params": {},
        "threads": 1,
    }


def test_a_run_is_executed_and_done(worker, request_run):
    assert worker.handle(request_run) == {"ok": True, "status": "done"}


def test_a_run_that_somebody_else_has_claimed_is_busy_unless_the_sender_did(worker, request_run, tmp_path):
    (tmp_path / "run").mkdir()
    claim = Claim.take(tmp_path / "run")
    assert claim is not None
    assert worker.handle(request_run)["status"] == "busy"
    assert worker.handle({**request_run, "claimed": True}) == {"ok": True, "status": "done"}


def test_a_run_that_fails_says_why(worker, request_run, tmp_path):
    request_run["settings"] |= {"optim.base_lr": 1e30}
    answer = worker.handle(request_run)
    assert answer["status"] == "failed"
    assert "TrainingFailed: the training loss became" in answer["error"]


def test_a_full_disk_is_not_the_fault_of_the_run(worker, request_run, tmp_path, monkeypatch):
    def refuse(path, content):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("graphgym_lcat.gym.runner.write_json", refuse)
    answer = worker.handle(request_run)
    assert (answer["ok"], answer["status"], answer["cause"]) == (False, "killed", "disk full")
    assert json.loads((tmp_path / "run" / "failed.json").read_text())["cause"] == "disk full"
    assert unfinished_state(tmp_path / "run").state is State.KILLED


def test_only_check_checks_settings(worker, request_run, monkeypatch):
    bad = {**request_run["settings"], "lcat.heads": 3}
    answer = worker.handle({"op": "check", "settings": [request_run["settings"], bad]})
    assert (answer["ok"], answer["index"], answer["key"]) == (False, 1, "lcat.heads")
    monkeypatch.setattr(worker_module, "check_settings", lambda settings: pytest.fail("checked again"))
    assert worker.handle({"op": "prepare", "settings": request_run["settings"]}) == {
        "ok": True,
        "nodes": 60,
        "edges": 240,
    }
    assert worker.handle(request_run)["ok"]


def test_describe_returns_defaults_and_the_base(worker, tmp_path):
    (tmp_path / "base.yaml").write_text("optim: {base_lr: 1e-3}\n")
    answer = worker.handle({"op": "describe", "base": str(tmp_path / "base.yaml")})
    assert answer["base"] == {"optim.base_lr": 0.001}
    assert answer["defaults"]["lcat.score"] == "gat"


def test_a_pause_is_for_the_caller(worker, request_run, monkeypatch):
    def pause(*args, **kwargs):
        raise RunPaused

    monkeypatch.setattr(worker_module, "execute", pause)
    with pytest.raises(RunPaused):
        worker.handle(request_run)


@pytest.mark.parametrize("request_", [{"op": "dance"}, {}, [], 3, None])
def test_an_unknown_request_is_answered(worker, request_):
    assert "known: describe, check, prepare, run" in worker.handle(request_)["error"]
