import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from lcat_core.errors import SweepFailed, UserError
from lcat_core.models import MODELS
from lcat_run import cli
from lcat_run.lookup import find_yaml
from lcat_run.terminal import _spell_character, can_show_bar


def lcat(*words, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "lcat_run.cli", *words], capture_output=True, text=True, timeout=300, **kwargs
    )


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([command, "--help"])
    assert stop.value.code == 0
    assert f"lcat {command}" in capsys.readouterr().out.split("examples:")[1]


def test_a_sweep_without_a_grid_reports_only_that(capsys):
    with pytest.raises(SystemExit):
        cli.main(["sweep", "--dry-run"])
    assert capsys.readouterr().err.endswith("the following arguments are required: GRID\n")


def test_layers_lists_every_model(capsys):
    cli.main(["layers"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1 : len(MODELS) + 1]] == list(MODELS)
    assert lines[-1].startswith("attention on the CPU: ")


def test_files_are_found_before_packaged_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_yaml("real", "lcat_configs").name == "real.yaml"
    assert find_yaml("real.yaml", "lcat_configs").is_absolute()
    (tmp_path / "real.yaml").write_text("seed: 1")
    assert str(find_yaml("real.yaml", "lcat_configs")) == "real.yaml"
    with pytest.raises(UserError, match="'raal' is neither a file nor an included name; did you mean 'real'"):
        find_yaml("raal", "lcat_configs")


SMALL = ["dataset.name", "BlockModel", "block_model.num_nodes", "60", "optim.max_epoch", "3"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cfg", "reel"], "did you mean 'real'?"),
        (["--cfg", "real", "gnn.layer_typ", "catconv"], "did you mean 'gnn.layer_type'?"),
        (["--cfg", "real", "dataset.name", "Cira"], "did you mean 'Cora'?"),
        (["--cfg", "real", "--repeat", "0"], "--repeat must be at least 1, got 0"),
        (["--cfg", "real", *SMALL, "--repeat", "2"], "options come before the settings, got '--repeat'"),
        (["--cfg", "real", *SMALL, "block_model.avg_degree", "500"], "lower avg_degree or change homophily"),
        (["--cfg", "real", *SMALL, "dataset.split_mode", "public"], "this dataset has no public split"),
        (
            ["--cfg", "real", *SMALL, "dataset.split", "[0.98, 0.01, 0.01]"],
            "random split, val: expected at least one node",
        ),
        (["--cfg", "real", *SMALL, "metric_best", "auc"], "`metric_best: auc` needs two classes, got 5"),
        (["--cfg", "real", *SMALL, "lcat.edge_dim", "4"], "the edges of BlockModel have 0 features"),
        (["--cfg", "real", *SMALL, "gnn.dim_inner", "4000000000000"], "the run cannot start: "),
        (
            ["--cfg", "real", *SMALL, "gnn.layer_type", "lcatpnaconv", "lcat.pna_aggregators", "[meen]"],
            "the run cannot start: Could not resolve 'meen'",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_2(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_run_prints_the_result_and_finds_it_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    outputs = []
    for _ in range(2):
        assert cli.main(["run", "--cfg", "real", "--threads", "1", *SMALL]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[1] == outputs[0].rstrip("\n") + " (was done already)\n"
    assert "lcat on BlockModel, seed 0: test accuracy" in outputs[0]
    assert "layer 4: λ1 0." in outputs[0]


def test_the_number_of_threads_is_the_options_or_the_settings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    try:
        for seed, options, expected in [("0", [], 2), ("1", ["--threads", "1"], 1)]:
            assert cli.main(["run", "--cfg", "real", *options, *SMALL, "num_threads", "2", "seed", seed]) == 0
            (result,) = tmp_path.glob(f"results/real/runs/*-s{seed}-*/result.json")
            assert json.loads(result.read_text())["timing"]["threads"] == expected
    finally:
        torch.set_num_threads(before)


def test_a_small_graph_is_trained_with_one_thread(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    try:
        assert cli.main(["run", "--cfg", "real", *SMALL]) == 0
        (result,) = tmp_path.glob("results/real/runs/*/result.json")
        assert json.loads(result.read_text())["timing"]["threads"] == 1
    finally:
        torch.set_num_threads(before)


def test_a_damaged_checkpoint_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--cfg", "real", "--threads", "1", *SMALL]) == 0
    (result,) = tmp_path.glob("results/real/runs/*/result.json")
    result.unlink()
    result.with_name("checkpoint.pt").write_bytes(b"garbage")
    capsys.readouterr()
    assert cli.main(["run", "--cfg", "real", "--threads", "1", *SMALL]) == 0
    damaged, again = capsys.readouterr().err.splitlines()
    assert damaged.startswith("lcat run: ") and "checkpoint.pt is damaged" in damaged
    assert again.endswith("the run starts again")


def test_a_failure_inside_a_run_is_one_line_and_status_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--cfg", "real", "--threads", "1", *SMALL, "dataset.node_encoder", "true"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "See the traceback in " in line
    assert Path(line.split()[-1]).is_file()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_signal_before_the_first_epoch_ends_with_the_same_status(tmp_path, monkeypatch, capsys, number):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("graphgym_lcat.gym.build.build_loop", lambda settings: os.kill(os.getpid(), number))
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "--cfg", "real", *SMALL])
    assert stop.value.code == 75
    assert capsys.readouterr().err == "stopped; rerun the same command to resume\n"
    assert signal.getsignal(number) == signal.SIG_DFL


def test_a_results_folder_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "results").write_text("a file where a folder should be")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--cfg", "real", *SMALL]) == 2
    assert "results" in capsys.readouterr().err


@pytest.mark.slow
def test_a_terminated_run_says_how_to_go_on(tmp_path):
    command = [sys.executable, "-m", "lcat_run.cli", "run", "--cfg", "real", "--threads", "1", *SMALL[:-1], "100000"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("results/real/runs/*/train/stats.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 75, error
    assert "paused; rerun the same command to resume from the checkpoint" in error
    assert list(tmp_path.glob("results/real/runs/*/checkpoint.pt"))


WITHOUT_UNICODE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize(
    ("words", "expected"), [("--help", "mean +- sd"), ("plot --help", "lambda1 and lambda2 over training")]
)
def test_a_terminal_without_unicode_gets_ascii(words, expected):
    done = lcat(*words.split(), env={**os.environ, **WITHOUT_UNICODE})
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_an_error_with_symbols_reaches_a_terminal_without_unicode(tmp_path):
    done = lcat("run", "--cfg", "λ±.yaml", env={**os.environ, **WITHOUT_UNICODE}, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("lcat run: ") and "Traceback" not in done.stderr


def test_a_terminal_of_unknown_size_shows_no_bar():
    terminal, slave = os.openpty()
    with open(slave, "w") as stream:
        assert not can_show_bar(stream)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        assert can_show_bar(stream)
    os.close(terminal)


def test_every_symbol_that_our_code_prints_has_a_spelling():
    code = "".join(path.read_text(encoding="utf-8") for path in Path(cli.__file__).parent.rglob("*.py"))
    assert {c for c in code if not c.isascii() and _spell_character(c) == "?"} == set()


@pytest.mark.parametrize("command", ["table", "compare", "trend", "report"])
def test_results_are_found_by_name_in_another_results_directory(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "elsewhere" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert cli.main([command, "mine", "--results", "elsewhere"]) == 2
    assert f"lcat {command}: no runs in elsewhere/mine: expected" in capsys.readouterr().err
    assert cli.main([command, "mina", "--results", "elsewhere"]) == 2
    expected = "'mina' is neither a directory nor a sweep under elsewhere (there are mine); did you mean 'mine'?"
    assert capsys.readouterr().err == f"lcat {command}: {expected}\n"


@pytest.mark.parametrize("command", ["status", "logs", "cancel"])
def test_a_directory_without_runs_is_not_a_sweep(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "results" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert cli.main([command, "mine"]) == 2
    assert "'mine' is neither" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (SweepFailed("the disk is full"), 1, "lcat layers: the disk is full\n"),
        (UserError("no such layer"), 2, "lcat layers: no such layer\n"),
        (FileNotFoundError(2, "No such file", "x.yaml"), 2, "lcat layers: x.yaml: No such file\n"),
        (ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib.figure"), 2, None),
    ],
)
def test_errors_are_reported_in_one_place(error, status, message, monkeypatch, capsys):
    def fail(args):
        raise error

    monkeypatch.setattr("lcat_run.commands.layers.execute", fail)
    assert cli.main(["layers"]) == status
    expected = (
        "lcat layers: matplotlib is not installed; the analysis needs: pip install jinja2 matplotlib statsmodels\n"
    )
    assert capsys.readouterr().err == (message or expected)


def test_a_module_of_somebody_else_that_is_missing_is_a_bug(monkeypatch):
    def fail(args):
        raise ModuleNotFoundError("No module named 'theirs'", name="theirs")

    monkeypatch.setattr("lcat_run.commands.layers.execute", fail)
    with pytest.raises(ModuleNotFoundError):
        cli.main(["layers"])


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"graphgym-lcat {version('graphgym-lcat')}\n"


def test_no_command_is_a_mistake_that_the_help_answers(capsys):
    assert cli.main([]) == 2
    assert "execute every run of a grid" in " ".join(capsys.readouterr().err.split())
