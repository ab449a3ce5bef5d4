"""The folder of a sweep: what is in it, and how to write it so that a crash at any moment loses nothing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import yaml

from lcat_core.files import append_line, exclusive_lock, make_folder, read_json, write_json, write_text
from lcat_core.outcomes import is_disk_full
from lcat_core.run_folder import SCHEMA, RunRecord, read_run_records
from lcat_core.strict_yaml import read_generated_yaml
from lcat_core.versions import versions
from lcat_run.results_folder import find_results
from lcat_run.sweep.plan import Plan

_RUNS_FILE = "runs.jsonl"


class SweepFolder:
    """``<out_dir>/<name>/``: ``grid.yaml``, ``sweep.json``, ``runs.jsonl``, ``events.jsonl`` and ``runs/<run id>/``."""

    def __init__(self, path: Path):
        self.path = path
        self.runs = path / "runs"
        self.logs = path / "logs"
        self.runs_file = path / _RUNS_FILE

    @classmethod
    def find(cls, name: str, results_dir: Path) -> SweepFolder:
        """Return the sweep with that path, or with that name in the results directory."""
        return cls(find_results(name, results_dir, lambda path: (path / _RUNS_FILE).is_file()))

    def engine_folder(self, engine: str) -> Path:
        """Return the folder in which an engine keeps its own records."""
        return self.path / engine

    def run_dir(self, run_id: str) -> Path:
        return self.runs / run_id

    def make_run_dir(self, run_id: str) -> Path:
        path = self.run_dir(run_id)
        make_folder(self.runs)
        make_folder(path)
        return path

    @property
    def info(self) -> dict[str, Any]:
        """The content of ``sweep.json``."""
        content = read_json(self.path / "sweep.json")
        return content if isinstance(content, dict) else {}

    @property
    def searches(self) -> bool:
        """Whether the grid has hyperparameters that validation chooses."""
        try:
            grid = read_generated_yaml(self.path / "grid.yaml")
        except (OSError, ValueError):  # the analysis says what is wrong with it
            return False
        select = grid.get("select") if isinstance(grid, dict) else None
        return isinstance(select, dict) and bool(select.get("over"))

    def read_runs(self, with_old: bool = False) -> list[RunRecord]:
        """Return the runs that the grid asks for; ``with_old`` adds those that an earlier version of it asked for."""
        return [run for run in self.read_records()[0] if run.in_grid or with_old]

    def read_records(self) -> tuple[list[RunRecord], int]:
        """Return the records of ``runs.jsonl`` and the number of damaged lines, which are skipped."""
        return read_run_records(self.runs_file)

    def write(self, plan: Plan, command: list[str]) -> int:
        """Record what is asked for; return how many started runs of an earlier version of the grid are kept."""
        make_folder(self.runs)
        with exclusive_lock(self.path / ".lock"):
            wanted = {run.run_id for run in plan.runs}
            old = [
                {**record.line(), "in_grid": False}
                for record in self.read_records()[0]
                if record.run_id not in wanted and self.run_dir(record.run_id).exists()
            ]
            lines = [json.dumps(line) for line in [*(run.line() for run in plan.runs), *old]]
            write_text(self.runs_file, "".join(line + "\n" for line in lines))
            grid = yaml.safe_dump(plan.grid.document, sort_keys=False, allow_unicode=True)
            write_text(self.path / "grid.yaml", grid)
            now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            content = {
                "schema": SCHEMA,
                "name": plan.grid.name,
                "source": plan.grid.source,
                "command": command,
                "created": self.info.get("created", now),
                "updated": now,
                "runs": len(plan.runs),
                "settings": plan.common,
                "versions": versions(),
            }
            write_json(self.path / "sweep.json", content)
        return len(old)

    def record_event(self, event: str, run_id: str, **details: Any) -> None:
        """Append one line to the journal, ``events.jsonl``, which serves people only; a sweep can do without it."""
        content = {"time": round(time.time(), 3), "event": event, "run_id": run_id, "pid": os.getpid(), **details}
        try:
            append_line(self.path / "events.jsonl", json.dumps(content))
        except OSError as error:
            if is_disk_full(error):
                raise
