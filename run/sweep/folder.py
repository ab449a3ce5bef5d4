"""The folder of a sweep: what is in it, and how it is written so that a crash at any moment loses nothing."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from lcat_run.errors import UserError, nearest
from lcat_run.sweep import files
from lcat_run.sweep.plan import Plan, Run
from lcat_run.sweep.process import Process

DEFAULT_RESULTS = "results"


class SweepFolder:
    """``<out_dir>/<name>/``: ``grid.yaml``, ``sweep.json``, ``runs.jsonl``, ``events.jsonl`` and ``runs/<run id>/``."""

    def __init__(self, path: Path):
        self.path = path
        self.runs = path / "runs"
        self.slurm = path / "slurm"
        self.logs = path / "logs"
        self._launchers = path / "launchers"

    @classmethod
    def find(cls, name: str, results: str | None = None) -> SweepFolder:
        """The sweep of that path, or of that name in the results directory."""
        root = Path(results or DEFAULT_RESULTS)
        for path in (Path(name), root / name):
            if (path / "runs.jsonl").is_file():
                return cls(path)
        names = [entry.parent.name for entry in sorted(root.glob("*/runs.jsonl"))]
        known = f"sweeps in {root}: {', '.join(names)}" if names else f"there is no sweep in {root}"
        raise UserError(f"no sweep {name!r}: expected its folder or its name; {known}{nearest(name, names)}")

    def run_dir(self, run_id: str) -> Path:
        return self.runs / run_id

    def make_run_dir(self, run_id: str) -> Path:
        path = self.run_dir(run_id)
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def info(self) -> dict[str, Any]:
        content = files.read_json(self.path / "sweep.json")
        return content if isinstance(content, dict) else {}

    def read_runs(self, with_old: bool = False) -> list[Run]:
        """The runs that the grid asks for; ``with_old`` adds those that an earlier version of it asked for."""
        records, _ = self.read_records()
        return [Run.from_record(record) for record in records if record.get("in_grid", True) or with_old]

    def read_records(self) -> tuple[list[dict[str, Any]], int]:
        """The lines of ``runs.jsonl``, and how many of them are damaged and left out."""
        try:
            lines = (self.path / "runs.jsonl").read_bytes().splitlines()
        except FileNotFoundError:
            return [], 0
        records = []
        for line in lines:
            try:
                record = json.loads(line)
                Run.from_record(record)
            except (ValueError, TypeError, KeyError):
                continue
            records.append(record)
        return records, len(lines) - len(records)

    def write(self, plan: Plan, command: list[str]) -> int:
        """Records what is asked for, keeping started runs of an earlier grid; returns how many of those there are."""
        self.runs.mkdir(parents=True, exist_ok=True)
        with self._lock():
            asked = {run.run_id for run in plan.runs}
            old = [
                {**record, "in_grid": False}
                for record in self.read_records()[0]
                if record["run_id"] not in asked and self.run_dir(record["run_id"]).exists()
            ]
            lines = [json.dumps(record) for record in [*(run.record() for run in plan.runs), *old]]
            files.write_text(self.path / "runs.jsonl", "".join(line + "\n" for line in lines))
            files.write_text(
                self.path / "grid.yaml", yaml.safe_dump(plan.grid.document, sort_keys=False, allow_unicode=True)
            )
            before = self.info
            now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            content = {
                "schema": 1,
                "name": plan.grid.name,
                "source": plan.grid.source,
                "command": command,
                "created": before.get("created", now),
                "updated": now,
                "runs": len(plan.runs),
                "settings": plan.common,
                "versions": _versions(),
            }
            files.write_json(self.path / "sweep.json", content)
        return len(old)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with open(self.path / ".lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def note(self, event: str, run_id: str, **details: Any) -> None:
        """Appends to the journal; one short write, so that lines of several launchers do not mix."""
        line = json.dumps(
            {"time": round(time.time(), 3), "event": event, "run_id": run_id, "pid": os.getpid(), **details}
        )
        with open(self.path / "events.jsonl", "a", encoding="utf-8") as file:
            file.write(line + "\n")

    @contextmanager
    def launcher(self) -> Iterator[None]:
        """Says, while it lasts, that this process works on the sweep, so that ``lcat cancel`` finds it."""
        this = Process.current()
        self._launchers.mkdir(exist_ok=True)
        for path, process in self._known_launchers():
            if process is None or (process.is_here and not process.is_alive()):  # killed before it could clean up
                path.unlink(missing_ok=True)
        path = self._launchers / f"{this.host}-{this.pid}.json"
        files.write_json(path, this.record())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def live_launchers(self) -> list[Process]:
        """Launchers on this host that run now."""
        found = [process for _, process in self._known_launchers()]
        return [process for process in found if process is not None and process.is_here and process.is_alive()]

    def _known_launchers(self) -> list[tuple[Path, Process | None]]:
        return [(path, Process.from_record(files.read_json(path))) for path in sorted(self._launchers.glob("*.json"))]


def _versions() -> dict[str, str]:
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in ("graphgym-lcat", "torch", "torch-geometric", "numpy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
