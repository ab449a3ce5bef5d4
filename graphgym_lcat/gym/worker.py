"""A process that executes many runs, one after another: ``python -m graphgym_lcat.gym.worker``.

Importing torch and PyG takes seconds, so a sweep starts few workers and gives each many runs. Requests are read from standard
input, one JSON object per line, and answers are written to standard output in the same form. Anything else that is printed goes to
standard error.

====================================================  ==============================================================
request                                               answer
====================================================  ==============================================================
``{"op": "describe", "base": path or null}``          ``{"ok": true, "defaults": {…}, "base": {…}, "note": …,
                                                      "gpus": number of GPUs that torch can use}``
``{"op": "check", "settings": [{…}, …]}``             ``{"ok": true}``, or ``index``, ``key`` and ``error`` of the
                                                      first invalid one
``{"op": "prepare", "settings": {…}}``                ``{"ok": true, "nodes": n, "edges": m}``
``{"op": "run", "run_dir", "model", "settings",       ``{"ok": …, "status": …}``; ``status`` is a value of
"params", "threads", "claimed"}``                     :class:`lcat_core.outcomes.Outcome`
====================================================  ==============================================================

``prepare`` and ``run`` receive settings that ``check`` has accepted, and do not check them again. ``"claimed": true`` says that the
sender holds the claim of the run; otherwise the worker takes it, and answers ``busy`` if it cannot. ``{"ok": false, "error": "…"}``
answers what failed; if the disk is full, the status is ``killed`` and ``"cause"`` is ``"disk full"``. After SIGTERM, SIGUSR2 or
SIGHUP the current run is paused and the worker exits with status 75, "try again later".
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import torch

import graphgym_lcat  # noqa: F401  (registers everything with GraphGym)
from graphgym_lcat.gym.loader import load_graph
from graphgym_lcat.gym.runner import Run, execute
from graphgym_lcat.gym.settings import apply_settings, check_settings, default_settings, read_settings
from graphgym_lcat.kernels import library
from lcat_core.errors import RunBusy, SettingsError
from lcat_core.files import parse_json
from lcat_core.outcomes import EXIT_PAUSED, PAUSE_SIGNALS, Outcome, RunPaused, handle_signals, is_disk_full

Answer = dict[str, Any]
Operation = Callable[[dict[str, Any]], Answer]


class Worker:
    """Answers requests; ``send`` writes one answer."""

    def __init__(self, answers: TextIO):
        self._answers = answers
        self._operations: dict[str, Operation] = {
            "describe": _describe,
            "check": _check,
            "prepare": _prepare,
            "run": _run,
        }

    def send(self, answer: Answer) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def handle(self, request: Any) -> Answer:
        """Answer one request; only a pause ends the worker, not an error of a run."""
        name = request.get("op") if isinstance(request, dict) else None
        operation = self._operations.get(str(name))
        if operation is None:
            return {"ok": False, "error": f"unknown op {name!r}; known: {', '.join(self._operations)}"}
        try:
            return operation(request)
        except RunPaused:
            raise
        except Exception as error:
            return _failure(error)


def _failure(error: Exception) -> Answer:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, RunBusy):
        return {"ok": False, "status": Outcome.BUSY, "error": str(error)}
    if is_disk_full(error):
        return {"ok": False, "status": Outcome.KILLED, "cause": "disk full", "error": text}
    return {"ok": False, "status": Outcome.FAILED, "error": text}


def _describe(request: dict[str, Any]) -> Answer:
    base = request.get("base")
    try:
        settings = read_settings(base) if base else {}
    except SettingsError as error:
        return {"ok": False, "error": str(error)}
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return {"ok": True, "defaults": default_settings(), "base": settings, "note": library.why_unused(), "gpus": gpus}


def _check(request: dict[str, Any]) -> Answer:
    for index, settings in enumerate(request["settings"]):
        try:
            check_settings(settings)
        except SettingsError as error:
            return {"ok": False, "index": index, "key": error.key, "error": str(error)}
    return {"ok": True}


def _prepare(request: dict[str, Any]) -> Answer:
    apply_settings(request["settings"])
    data = load_graph()
    return {"ok": True, "nodes": data.num_nodes, "edges": data.num_edges}


def _run(request: dict[str, Any]) -> Answer:
    run = Run(
        run_dir=Path(request["run_dir"]),
        model=request["model"],
        settings=request["settings"],
        params=request["params"],
        threads=request.get("threads"),
    )
    execute(run, claimed=bool(request.get("claimed")))
    return {"ok": True, "status": Outcome.DONE}


def main() -> int:
    # Answers have the real standard output to themselves; whatever libraries print joins standard error.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with handle_signals(PAUSE_SIGNALS, lambda *_: sys.exit(EXIT_PAUSED)):  # between two runs there is nothing to save
        return _serve(Worker(answers))


def _serve(worker: Worker) -> int:
    for line in sys.stdin:
        try:
            worker.send(worker.handle(parse_json(line)))
        except RunPaused:
            worker.send({"ok": False, "status": Outcome.PAUSED})
            return EXIT_PAUSED
        except ValueError as error:
            worker.send({"ok": False, "error": f"not a JSON object: {error}"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
