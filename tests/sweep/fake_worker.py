"""Speaks the protocol of a worker without torch, so that sweeps can be tested in milliseconds.

A run sleeps ``optim.max_epoch`` × 10 ms, writes a checkpoint after every step, and misbehaves as ``gnn.act`` says:
``fail``, ``crash`` (SIGKILL, always), ``crash_once``, ``hang`` (ignores SIGTERM), ``no_space`` or ``talk`` (prints its id).
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from pathlib import Path

DEFAULTS = {
    "seed": 0,
    "out_dir": "results",
    "accelerator": "auto",
    "dataset.name": "Cora",
    "dataset.dir": "",
    "dataset.label": "",
    "dataset.split_seed": 0,
    "optim.base_lr": 0.01,
    "optim.max_epoch": 1,
    "gnn.layer_type": "generalconv",
    "gnn.layers_mp": 2,
    "gnn.dim_inner": 32,
    "gnn.act": "relu",
    "lcat.heads": 1,
    "lcat.score": "gat",
    "lcat.lambda1": None,
    "lcat.lambda2": None,
    "block_model.avg_degree": 10.0,
    "block_model.num_nodes": 1000,
}
DATASETS = ("Cora", "CiteSeer", "BlockModel", "Missing")
paused = []


def describe(request):
    base = {}
    if "print" in request:
        print(request["print"], file=sys.stderr, flush=True)
    if request["base"]:
        for line in Path(request["base"]).read_text().splitlines():
            key, _, value = line.partition(": ")
            base[key] = json.loads(value)
    return {"ok": True, "defaults": DEFAULTS, "base": base, "gpus": int(os.environ.get("FAKE_GPUS", "0"))}


def check(request):
    for index, settings in enumerate(request["settings"]):
        for key, value in settings.items():
            if key not in DEFAULTS:
                return {"ok": False, "index": index, "key": key, "error": f"{key!r} is not a key of the configuration"}
            if isinstance(DEFAULTS[key], int | float) and not isinstance(value, int | float):
                return {"ok": False, "index": index, "key": key, "error": f"`{key}` must be a number, got {value!r}"}
            if key == "dataset.name" and value not in DATASETS:
                return {"ok": False, "index": index, "key": key, "error": f"unknown `dataset.name`: {value!r}"}
    return {"ok": True}


def prepare(request):
    if request["settings"].get("dataset.name") == "Missing":
        return {"ok": False, "error": "Missing: put its file into ./datasets"}
    return {"ok": True, "nodes": 10, "edges": 20}


def run(request, send):
    run_dir = Path(request["run_dir"])
    settings = {**DEFAULTS, **request["settings"]}
    if (run_dir / "result.json").exists() and is_complete(run_dir / "result.json"):
        return {"ok": True, "status": "done"}
    checkpoint = run_dir / "checkpoint.pt"
    epoch = int(checkpoint.read_text()) if checkpoint.exists() else 0
    with open(run_dir / "log.txt", "a") as log:
        log.write(f"started at epoch {epoch} by {os.getpid()}\n")
    misbehave(settings["gnn.act"], run_dir)
    while epoch < settings["optim.max_epoch"]:
        time.sleep(0.01)
        epoch += 1
        write(checkpoint, str(epoch))
        if paused:
            send({"ok": False, "status": "paused"})
            sys.exit(75)
    document = result(request["model"], run_dir.name, settings["seed"], 0.01 * epoch)
    document["params"] = request["params"]
    document["timing"] |= {"threads": request["threads"], "host": os.environ.get("CUDA_VISIBLE_DEVICES", "")}
    with open(run_dir / "completions", "a") as completions:
        completions.write("done\n")
    write(run_dir / "result.json", json.dumps(document))
    return {"ok": True, "status": "done"}


def result(model, run_id, seed, seconds):
    """The smallest result of schema 1."""
    return {
        "schema": 1,
        "run_id": run_id,
        "model": model,
        "dataset": {"name": "Cora"},
        "seed": seed,
        "params": {},
        "test": {"accuracy": sum(map(ord, run_id)) % 1000 / 1000},
        "timing": {"seconds": seconds},
    }


def misbehave(how, run_dir):
    if how == "fail":
        write(run_dir / "failed.json", json.dumps({"error": "ValueError: asked to fail", "traceback": "Traceback…"}))
        raise ValueError("asked to fail")
    if how == "talk":
        print(f"talking: {run_dir.name}", file=sys.stderr, flush=True)
    if how == "no_space":
        raise OSError(errno.ENOSPC, "No space left on device", "log.txt")
    if how == "crash" or (how == "crash_once" and not (run_dir / "crashed").exists()):
        (run_dir / "crashed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)


def write(path, text):
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    os.replace(partial, path)


def is_complete(path):
    try:
        json.loads(path.read_text())
    except ValueError:
        return False
    return True


def main():
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, lambda *_: paused.append(1))

    def send(answer):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()

    signal.siginterrupt(signal.SIGTERM, True)
    for line in sys.stdin:
        request = json.loads(line)
        operations = {"describe": describe, "check": check, "prepare": prepare, "run": lambda r: run(r, send)}
        try:
            send(operations[request["op"]](request))
        except (ValueError, OSError) as error:
            answer = {"ok": False, "status": "failed", "error": f"{type(error).__name__}: {error}"}
            if getattr(error, "errno", None) == errno.ENOSPC:
                answer |= {"status": "killed", "cause": "disk full"}
            send(answer)


if __name__ == "__main__":
    main()
