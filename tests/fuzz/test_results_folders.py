"""Mutated results folders and command lines: every command ends with a status and without a traceback."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from fake_results import FakeSweep, write_sweep
from fuzzing import ODD_VALUES, damage, mutate
from sweep_sandbox import FAKE_WORKER

import graphgym_lcat  # noqa: F401  (the first import takes longer than a case may)
import lcat_analysis.compare
import lcat_analysis.load  # noqa: F401
from lcat_run import cli

SWEEP = FakeSweep(
    name="small", models=("gat", "lcat"), datasets=("Cora", "CiteSeer"), seeds=2, axes={}, over=(), epochs=4
)
CLAIM = {
    "owner": {"host": "a", "pid": 1, "started": 2},
    "job": None,
    "since": 1.0,
    "worker": {"host": "a", "pid": 1, "started": 2},
}
COMMANDS = (
    ["status", "small"],
    ["logs", "small"],
    ["table", "small"],
    ["compare", "small"],
    ["export", "small", "-o", "small.jsonl"],
)
WORDS = (
    "small", "status", "sweep", "table", "--metric", "accuracy", "loss", "--only", "model=lcat", "--format", "csv", "latex",
    "--baseline", "lcat=gat", "--alpha", "--margin", "0.05", "nan", "--results", ".", "-o", "out", "--dry-run", "seeds", "3",
    "optim.base_lr", "[0.1, 0.2]", "dataset.name", "Cora", "{", "*a", "", "--", "-1", "λ", "--threads", "1e9", "\n", "--by",
    "--unit", "split", "--over", "--known", "grid.yaml", "-j", "--engine", "local", "slurm", "nowhere", "--retry-failed", "--help",
)  # fmt: skip
BASES = (
    ["sweep", "grid.yaml", "--dry-run"],
    ["sweep", "grid.yaml", "optim.max_epoch", "1", "--dry-run"],
    ["status", "small"],
    ["logs", "small", "lcat-Cora"],
    ["table", "small", "--format", "markdown"],
    ["compare", "small", "--baseline", "lcat=gat"],
    ["export", "small", "-o", "small.csv"],
    ["layers"],
    ["datasets"],
)


@pytest.fixture
def template(fuzzer, monkeypatch):
    """A sweep with finished, failed, paused and missing runs, beside the folder of each case."""
    monkeypatch.setenv("LCAT_WORKER", shlex.join([sys.executable, "-S", str(FAKE_WORKER)]))
    monkeypatch.setenv("LCAT_DATA_DIR", str(fuzzer.folder / "no-data"))
    folder = write_sweep(fuzzer.folder / "template", SWEEP)
    runs = sorted((folder / "runs").iterdir())
    (folder / "index.json").write_text(json.dumps({"done": {run.name: [1, 2, 3.0] for run in runs}}))
    (folder / "events.jsonl").write_text('{"time": 1.0, "event": "done", "run_id": "x", "pid": 1}\n')
    for run in runs:
        (run / "claim.json").write_text(json.dumps({"left": "done", "detail": "", "at": 1.0}))
        (run / "config.yaml").write_text("seed: 0\noptim: {base_lr: 0.01}\n")
    for run in runs[:2]:
        (run / "result.json").unlink()
        (run / "failed.json").write_text('{"error": "ValueError: x", "epoch": 1, "attempts": 1, "traceback": "T"}')
    (runs[1] / "claim.json").write_text(json.dumps(CLAIM))
    (fuzzer.folder / "work").mkdir()
    monkeypatch.chdir(fuzzer.folder / "work")
    return folder


def run_command(words: list[str]) -> None:
    """Execute a command in this process; an exception is what users would see as a traceback."""
    try:
        status = cli.main(words)
    except SystemExit as end:  # argparse
        status = end.code
    assert status in (0, 1, 2), f"status {status} of lcat {shlex.join(words)}"


def disturb(path: Path, rng) -> None:
    """Change one file of a results folder: its bytes, its values, or what it is."""
    kind = rng.randrange(8)
    if kind == 0:
        path.unlink()
        [os.mkfifo, os.mkdir, lambda p: os.symlink("/dev/zero", p), lambda p: os.symlink(p, p), lambda p: None][
            rng.randrange(5)
        ](path)
    elif kind < 4:
        path.write_bytes(damage(path.read_bytes(), rng))
    elif path.suffix == ".yaml":
        path.write_text(yaml.dump(mutate(yaml.safe_load(path.read_text()), rng)), errors="surrogatepass")
    elif path.suffix == ".csv":
        lines = [line.split(",") for line in path.read_text().splitlines()]
        path.write_text(
            "\n".join(",".join(map(str, line)) if isinstance(line, list) else str(line) for line in _rows(lines, rng)),
            errors="surrogatepass",
        )
    else:
        lines = (
            [json.loads(line) for line in path.read_text().splitlines()]
            if path.suffix == ".jsonl" or path.name == "stats.json"
            else None
        )
        tree = mutate(json.loads(path.read_text()) if lines is None else lines, rng, ODD_VALUES[:-2])
        text = (
            json.dumps(tree, default=str)
            if lines is None or not isinstance(tree, list)
            else "\n".join(json.dumps(line, default=str) for line in tree)
        )
        path.write_text(text)


def _rows(lines, rng):
    tree = mutate(lines, rng)
    return tree if isinstance(tree, list) else [[tree]]


def attempt_folder(template, capsys):
    def attempt(rng):
        shutil.rmtree("small", ignore_errors=True)
        shutil.copytree(template, "small")
        files = sorted(path for path in Path("small").rglob("*") if path.is_file())
        for path in rng.sample(files, rng.choice((1, 1, 2, 5))):
            disturb(path, rng)
        for words in COMMANDS[:2] if rng.random() < 0.5 else rng.sample(COMMANDS[2:], 1):
            run_command(words)
        said = capsys.readouterr()
        assert len(said.err) < 200_000

    return attempt


def attempt_command_line(template, capsys):
    shutil.copytree(template, "small")
    Path("grid.yaml").write_text("name: small\nmodels: [gat, lcat]\nseeds: 2\n")

    def attempt(rng):
        words = list(rng.choice(BASES))
        for _ in range(rng.choice((1, 1, 2, 4))):
            place = rng.randrange(1, len(words) + 1)
            match rng.randrange(3):
                case 0:
                    words.insert(place, rng.choice(WORDS))
                case 1 if len(words) > 1 and place < len(words):
                    words[place] = rng.choice(WORDS)
                case _:
                    del words[place:][:1]
        if words[0] == "sweep":
            words = [word for word in words if word != "slurm"] + ["--dry-run"]
        run_command(words)
        capsys.readouterr()

    return attempt


def test_results_folders(fuzzer, template, capsys):
    fuzzer.run("results folders", 30, attempt_folder(template, capsys))


def test_command_lines(fuzzer, template, capsys):
    fuzzer.run("command lines", 25, attempt_command_line(template, capsys))


@pytest.mark.campaign
def test_many_results_folders(fuzzer, template, capsys):
    fuzzer.run("results folders", 0, attempt_folder(template, capsys))


@pytest.mark.campaign
def test_many_command_lines(fuzzer, template, capsys):
    fuzzer.run("command lines", 0, attempt_command_line(template, capsys))
