"""Whatever is in a results folder, no command hangs, shows a traceback, or writes through a link; other runs are executed."""

import json
import os
import shutil
import signal

import pytest

from lcat_core.run_folder import State, is_done
from lcat_run import cli
from lcat_run.engines import slurm_queue
from lcat_run.sweep.state import scan

DEEP = "[" * 100_000


@pytest.fixture(autouse=True)
def no_hang():
    """Fail a test that blocks, for example on a pipe."""

    def stop(*_):
        raise TimeoutError("blocked")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def odd(kind, path, elsewhere):
    """Put something unexpected in the place of a file."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name("moved-away"))
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "link to a file":
            path.symlink_to(elsewhere / "precious")
        case "link to a folder":
            path.symlink_to(elsewhere)
        case _:
            path.write_text(kind)


@pytest.fixture
def elsewhere(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "precious").write_text("mine")
    return folder


KINDS = ["pipe", "folder", "link to a file", "link to a folder", DEEP, '{"left": [], "timing": 3}', "\x00"]


@pytest.mark.parametrize("name", ["result.json", "claim.json", "failed.json", "."])
def test_odd_files_of_some_runs_keep_no_other_run_from_being_done(sandbox, elsewhere, name, capsys):
    sandbox.write_grid(f"{{name: small, models: [gcn], seeds: {len(KINDS) + 1}}}")
    assert sandbox.sweep("-j", "1") == 0
    *victims, healthy = sandbox.results()
    shutil.rmtree(sandbox.folder.runs)
    for kind, run_id in zip(KINDS, victims, strict=True):
        odd(kind, sandbox.folder.run_dir(run_id) / name, elsewhere)
    assert sandbox.sweep("-j", "1") in (0, 1)
    assert cli.main(["status", "small"]) == 0
    assert is_done(sandbox.folder.run_dir(healthy))
    unchanged(elsewhere)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[:16])
def test_odd_files_that_a_sweep_can_do_without_stop_nothing(sandbox, elsewhere, kind):
    for name in ("index.json", "events.jsonl", "logs"):
        odd(kind, sandbox.folder.path / name, elsewhere)
    assert sandbox.sweep("-j", "1") == 0
    assert len(sandbox.results()) == 8
    unchanged(elsewhere)


@pytest.mark.parametrize("name", ["sweep.json", "grid.yaml", "runs.jsonl", ".lock", "launchers", "runs"])
@pytest.mark.parametrize("kind", ["folder", "link to a folder", "pipe"])
def test_odd_files_that_a_sweep_needs_are_named(sandbox, elsewhere, name, kind, capsys):
    odd(kind, sandbox.folder.path / name, elsewhere)
    status = sandbox.sweep("-j", "1")
    said = capsys.readouterr().err
    assert status == 0 or (status == 2 and name in said)
    assert "Traceback" not in said
    unchanged(elsewhere)


def unchanged(elsewhere):
    assert (elsewhere / "precious").read_text() == "mine"
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]


@pytest.mark.parametrize("content", ['{"token": 1, "tasks": 2}', '{"token": "a", "tasks": [[1]]}', "[]", DEEP])
def test_a_damaged_record_of_a_submission_is_ignored(sandbox, content):
    odd(content, sandbox.folder.path / "slurm" / "submission-a.json", sandbox.path)
    assert slurm_queue.open_submissions(sandbox.folder) == []


def test_times_of_vanished_runs_that_are_not_numbers_are_ignored(sandbox, monkeypatch):
    monkeypatch.setattr(slurm_queue, "squeue", list)
    folder = sandbox.folder.path / "slurm"
    folder.mkdir(parents=True)
    (folder / "submission-a.json").write_text(json.dumps({"token": "a", "tasks": [["x"]], "job": "1"}))
    (folder / "vanished.json").write_text('{"x": "long ago"}')
    assert slurm_queue.look_at_queue(sandbox.folder).states == {}


def test_a_result_that_links_to_itself_fails_that_run_only(sandbox):
    assert sandbox.sweep("-j", "1") == 0
    victim, *others = sandbox.results()
    path = sandbox.folder.run_dir(victim) / "result.json"
    path.unlink()
    path.symlink_to(path)
    snapshot = scan(sandbox.folder, sandbox.folder.read_runs())
    assert snapshot.states[victim].state is State.FAILED
    assert any(str(path) in note for note in snapshot.notes)
    assert set(snapshot.run_ids(State.DONE)) == set(others)
