"""Engines of other packages: found by entry point, and used by sweep, status and cancel."""

import json
import time
from pathlib import Path

import pytest

from lcat_core.errors import LcatError, UserError
from lcat_run import cli
from lcat_run.engines.local import LocalEngine
from lcat_run.engines.registry import installed_engines, load_engine, load_engines
from lcat_run.engines.slurm import SlurmEngine
from lcat_run.engines.task import Task


def install(folder: Path, name: str, target: str, monkeypatch) -> None:
    """Pretend that a package with one entry point is installed."""
    info = folder / f"{name}_engine-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-engine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lcat.engines]\n{name} = {target}\n")
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def example(sandbox, tmp_path_factory, monkeypatch):
    install(tmp_path_factory.mktemp("packages"), "example", "example_engine:ExampleEngine", monkeypatch)
    return sandbox


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_ours_are_found_by_entry_point():
    assert isinstance(load_engine("local"), LocalEngine)
    assert isinstance(load_engine("slurm"), SlurmEngine)


def test_an_unknown_engine_lists_the_installed_ones(example, capsys):
    assert example.sweep("--engine", "exampel") == 2
    expected = "unknown engine: 'exampel'; did you mean 'example'? Known: example, local, slurm"
    assert capsys.readouterr().err == f"lcat sweep: {expected}\n"


def test_help_shows_the_options_of_the_chosen_engine_only(example, capsys):
    for engine, own, others in (("example", "--nice", "--partition"), ("slurm", "--partition", "--nice")):
        with pytest.raises(SystemExit):
            cli.main(["sweep", "--engine", engine, "--help"])
        shown = capsys.readouterr().out
        assert own in shown
        assert others not in shown.partition("examples:")[0]


def test_an_option_of_another_engine_is_refused(example, capsys):
    with pytest.raises(SystemExit) as stop:
        example.sweep("--engine", "example", "--partition", "cpu")
    assert stop.value.code == 2
    assert "unrecognized arguments: --partition" in capsys.readouterr().err


def test_a_dry_run_shows_the_preview_and_writes_nothing(example, capsys):
    assert example.sweep("--engine", "example", "--nice", "5", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "with 8 workers" in shown
    assert shown.endswith("nice -n 5 python -m lcat_run.engines.task …, 8 times\n")
    assert not example.folder.path.exists()


@pytest.mark.slow
def test_a_sweep_executes_every_run_once(example, capsys):
    assert example.sweep("--engine", "example", "--nice", "1") == 0
    assert "started 8 processes" in capsys.readouterr().out
    wait_for(lambda: len(example.results()) == 8)
    assert set(example.completions().values()) == {1}
    assert example.sweep("--engine", "example") == 0
    assert "nothing to do: 8 done" in capsys.readouterr().out


@pytest.mark.slow
def test_status_and_cancel_ask_the_engine_and_a_sweep_resumes(example, capsys):
    long = ("optim.max_epoch", "2000", "--only", "dataset.name=Cora,seed=0")
    assert example.sweep("--engine", "example", *long) == 0
    capsys.readouterr()
    cli.main(["status", "small"])
    assert "6 missing" in capsys.readouterr().out  # the others are starting or running
    wait_for(lambda: len(list(example.folder.runs.glob("*/checkpoint.pt"))) == 2)
    cli.main(["status", "small"])
    assert "2 running, 6 missing" in capsys.readouterr().out
    assert example.sweep("--engine", "example", *long) == 0
    assert "nothing to do: 0 done, 2 waiting or running" in capsys.readouterr().out

    assert cli.main(["cancel", "small"]) == 0
    assert capsys.readouterr().out.count("to stop") == 2
    wait_for(lambda: not list(load_engine("example")._alive(example.folder)))
    cli.main(["status", "small"])
    assert "2 paused, 6 missing" in capsys.readouterr().out
    assert example.sweep("optim.max_epoch", "2000", *long[2:], "-j", "2") == 0  # the local engine resumes
    for log in example.folder.runs.glob("*/log.txt"):
        assert "started at epoch 0 " not in log.read_text().splitlines()[-1]


def test_an_engine_that_cannot_be_imported_does_not_hide_the_others(example, tmp_path_factory, monkeypatch, capsys):
    install(tmp_path_factory.mktemp("broken"), "broken", "no_such_module:Engine", monkeypatch)
    engines, notes = load_engines()
    assert [engine.name for engine in engines] == ["example", "local", "slurm"]
    expected = "the engine 'broken' (no_such_module:Engine) cannot be loaded: No module named 'no_such_module'"
    assert notes == [expected]
    assert example.sweep("--engine", "broken") == 2
    assert expected in capsys.readouterr().err


def test_an_engine_that_does_not_answer_does_not_hide_the_others(example, monkeypatch, capsys):
    class Unreachable(LcatError):
        pass

    def refuse(self, folder):
        raise Unreachable("the cluster is down")

    example.sweep("--only", "seed=0")
    for name in ("look", "cancel"):
        monkeypatch.setattr(f"example_engine.ExampleEngine.{name}", refuse)
    capsys.readouterr()
    assert cli.main(["status", "small"]) == 0
    shown = capsys.readouterr().out
    assert "4 done, 4 missing" in shown
    assert "note: the engine 'example' cannot say what it started: the cluster is down" in shown
    assert cli.main(["cancel", "small"]) == 1
    assert "jobs of results/small may still wait or run: the cluster is down" in capsys.readouterr().err


def test_something_else_is_not_an_engine(sandbox, tmp_path, monkeypatch):
    install(tmp_path / "packages", "odd", "collections:OrderedDict", monkeypatch)
    assert "odd" in installed_engines()
    with pytest.raises(UserError, match="is not a subclass of Engine"):
        load_engine("odd")


def test_a_damaged_task_is_refused(tmp_path):
    path = tmp_path / "task.json"
    for content in ("{", "[]", json.dumps({"folder": "x"})):
        path.write_text(content)
        with pytest.raises(UserError, match="is not a task of a sweep"):
            Task.read(path)
