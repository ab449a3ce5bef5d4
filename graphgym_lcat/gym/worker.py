"""A process that makes many runs, one after the other: ``python -m graphgym_lcat.gym.worker``.

Importing torch and PyG takes seconds, so a sweep starts few workers and gives each many runs. Requests come as one JSON object a
line on standard input, answers go as one a line to standard output; whatever else prints goes to standard error.

====================================================  ================================================================
request                                               answer
====================================================  ================================================================
``{"op": "describe", "base": path or null}``          ``{"ok": true, "defaults": {…}, "base": {…}, "note": …}``
``{"op": "check", "settings": [{…}, …]}``             ``{"ok": true}``, or ``index``, ``key`` and ``error`` of the first bad one
``{"op": "prepare", "settings": {…}}``                ``{"ok": true, "nodes": n, "edges": m}``
``{"op": "run", "run_dir", "model", "settings",       ``{"ok": …, "status": "done" | "failed" | "paused" | "busy"}``
"params", "threads"}``
====================================================  ================================================================

``{"ok": false, "error": "…"}`` answers what cannot be done. After SIGTERM or SIGUSR2 the current run is paused and the worker
exits with status 75, "go on later".
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

import graphgym_lcat  # noqa: F401  (registers everything with GraphGym)
from graphgym_lcat.gym.loader import load_graph
from graphgym_lcat.gym.runner import PAUSE_SIGNALS, Run, RunBusy, RunPaused, execute
from graphgym_lcat.gym.settings import (
    SettingsError,
    apply_settings,
    check_settings,
    default_settings,
    read_settings,
)
from graphgym_lcat.kernels import library

EXIT_PAUSED = 75

Answer = dict[str, Any]


class Worker:
    """Answers requests; ``send`` writes one answer."""

    def __init__(self, answers: TextIO):
        self._answers = answers

    def send(self, answer: Answer) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def handle(self, request: dict[str, Any]) -> Answer:
        operations = {"describe": self._describe, "check": self._check, "prepare": self._prepare, "run": self._run}
        operation = operations.get(request.get("op"))
        if operation is None:
            return {"ok": False, "error": f"unknown op {request.get('op')!r}; known: {', '.join(operations)}"}
        try:
            return operation(request)
        except RunPaused:
            raise
        except Exception as error:  # a worker outlives the mistakes of one request
            return {"ok": False, "status": "failed", "error": f"{type(error).__name__}: {error}"}

    def _describe(self, request: dict[str, Any]) -> Answer:
        base = request.get("base")
        try:
            settings = read_settings(base) if base else {}
        except SettingsError as error:
            return {"ok": False, "error": str(error)}
        return {"ok": True, "defaults": default_settings(), "base": settings, "note": library.why_unused()}

    def _check(self, request: dict[str, Any]) -> Answer:
        for index, settings in enumerate(request["settings"]):
            try:
                check_settings(settings)
            except SettingsError as error:
                return {"ok": False, "index": index, "key": error.key, "error": str(error)}
        return {"ok": True}

    def _prepare(self, request: dict[str, Any]) -> Answer:
        apply_settings(check_settings(request["settings"]))
        data = load_graph()
        return {"ok": True, "nodes": data.num_nodes, "edges": data.num_edges}

    def _run(self, request: dict[str, Any]) -> Answer:
        run = Run(
            run_dir=Path(request["run_dir"]),
            model=request["model"],
            settings=request["settings"],
            params=request["params"],
            threads=request.get("threads"),
        )
        try:
            execute(run)
        except RunBusy as error:
            return {"ok": False, "status": "busy", "error": str(error)}
        return {"ok": True, "status": "done"}


def main() -> int:
    # Answers keep the real standard output for themselves; prints of libraries join standard error.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for number in PAUSE_SIGNALS:  # between two runs there is nothing to save
        signal.signal(number, lambda *_: sys.exit(EXIT_PAUSED))
    worker = Worker(answers)
    for line in sys.stdin:
        try:
            worker.send(worker.handle(json.loads(line)))
        except RunPaused:
            worker.send({"ok": False, "status": "paused"})
            return EXIT_PAUSED
        except json.JSONDecodeError as error:
            worker.send({"ok": False, "error": f"not a JSON object: {error}"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
