"""Results folders → one tidy table, a row a finished run, and a list of all that is not finished.

Nothing is dropped in silence: a run that failed, stopped half-way, wrote a file that cannot be read, or was
asked for and never began, is a row of `Results.problems`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from lcat_analysis.errors import AnalysisError
from lcat_analysis.graphgym import find_graphgym_runs, read_graphgym_run
from lcat_analysis.history import read_json_lines
from lcat_analysis.published import published_degrees
from lcat_analysis.run_config import parameters, read_config

SCHEMA = 1  # of result.json
SPLITS = ("train", "val", "test")
FIXED_COLUMNS = (
    "sweep", "run_id", "model", "dataset", "nodes", "edges", "avg_degree", "seed", "split_seed",
    "best_epoch", "test_epoch", "seconds", "lambdas", "extra", "path",
)  # fmt: skip
PROBLEM_COLUMNS = ("sweep", "run_id", "state", "detail", "path")


@dataclass
class Sweep:
    """One folder of runs: its grid, its versions (``info``), and the runs asked for, a dict each."""

    name: str
    path: Path
    grid: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def expected(self) -> int | None:
        """How many runs the grid asks for, where the sweep has written them down."""
        return len(self.asked) or None


@dataclass
class Results:
    """What `load` found.

    Attributes:
        runs: a row a finished run; metrics are columns such as ``test.accuracy`` (fractions),
            hyperparameters are columns named by their key (``optim.base_lr``).
        problems: a row for each run that gave no result: ``state`` is failed, unfinished, broken, missing,
            superseded (by a changed grid), repeated (the same settings, split and seed again) or diverged. A
            diverged run is finished, so it is in ``runs`` too, with a metric that is not a number.
        sweeps: the folders that were read.
        param_keys: the columns of ``runs`` that are hyperparameters.
    """

    runs: pd.DataFrame
    problems: pd.DataFrame
    sweeps: list[Sweep]
    param_keys: list[str]

    @property
    def name(self) -> str:
        return ", ".join(sweep.name for sweep in self.sweeps)

    @property
    def grid(self) -> dict[str, Any]:
        """The declarations of all grids together: ``compare`` merged, ``select`` and ``match`` united."""
        compare: dict[str, str] = {}
        over: list[str] = []
        match: list[str] = []
        by = None
        models: list[str] = []
        axes: dict[str, list] = {}
        for sweep in self.sweeps:
            compare.update(_mapping(sweep.grid.get("compare")))
            select = _mapping(sweep.grid.get("select"))
            over += [key for key in _keys(sweep.grid, select.get("over")) if key not in over]
            by = by or select.get("by")
            match += [key for key in _keys(sweep.grid, sweep.grid.get("match")) if key not in match]
            models += [str(model) for model in sweep.grid.get("models") or {} if str(model) not in models]
            for key, values in _mapping(sweep.grid.get("axes")).items():
                known = axes.setdefault(key, [])
                known += [v for v in (values if isinstance(values, list) else [values]) if v not in known]
        select = {"over": over, "by": by}
        return {"compare": compare, "select": select, "match": match, "models": models, "axes": axes}

    @property
    def metrics(self) -> list[str]:
        """Names of the test metrics, without ``test.``."""
        return [column.removeprefix("test.") for column in self.runs.columns if column.startswith("test.")]

    def counts(self) -> dict[str, int]:
        """Runs by state, ``done`` first; a diverged run is finished, and counted as diverged only."""
        states = self.problems["state"].value_counts()
        done = len(self.runs) - int(states.get("diverged", 0))
        return {"done": done, **{str(state): int(n) for state, n in states.items()}}


def load(*paths: str | os.PathLike[str]) -> Results:
    """Read every sweep found at or below ``paths``, and result trees of stock GraphGym and GraphGPS.

    Raises:
        AnalysisError: a path does not exist, holds no run at all, or two folders hold the same run.
    """
    sweeps, rows, problems = [], [], []
    for path in map(Path, paths):
        if not path.is_dir():
            raise AnalysisError(
                f"expected a results directory, but {path} is {'a file' if path.exists() else 'missing'}"
            )
        found = list(_find_sweeps(path))
        for sweep, run_dirs in found:
            sweeps.append(sweep)
            sweep_rows, sweep_problems = _read_sweep(sweep, run_dirs)
            rows += sweep_rows
            problems += sweep_problems
        if not found:
            raise AnalysisError(
                f"no runs in {path}: expected runs/<run id>/result.json in it or in a folder below, "
                "or GraphGym's <run>/<seed>/<split>/stats.json"
            )
    return _assemble(sweeps, rows, problems)


def _find_sweeps(root: Path) -> Iterable[tuple[Sweep, list[Path]]]:
    folders = [root, *sorted(p for p in root.iterdir() if p.is_dir())]
    own = [folder for folder in folders if (folder / "runs").is_dir()]
    for folder in own:
        run_dirs = sorted(Path(entry.path) for entry in os.scandir(folder / "runs") if entry.is_dir())
        yield _describe_sweep(folder), run_dirs
    if not own:
        run_dirs = find_graphgym_runs(root)
        if run_dirs:
            yield Sweep(name=root.resolve().name, path=root), run_dirs


def _describe_sweep(folder: Path) -> Sweep:
    grid = _read_mapping(folder / "grid.yaml", yaml.safe_load)
    info = _read_mapping(folder / "sweep.json", json.loads)
    return Sweep(name=str(grid.get("name") or folder.resolve().name), path=folder, grid=grid, info=info)


def _read_mapping(path: Path, parse: Callable[[bytes], Any]) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return _mapping(parse(path.read_bytes()))
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not JSON, or not UTF-8
        problem = " ".join(str(error).split())  # YAML's messages have several lines
        raise AnalysisError(f"{path} is not valid {path.suffix[1:].upper()}: {problem}") from error


def _read_sweep(sweep: Sweep, run_dirs: list[Path]) -> tuple[list[dict], list[dict]]:
    rows, problems = [], []
    listed = _read_list(sweep.path / "runs.jsonl")
    sweep.asked = [run for run in listed if run.get("in_grid", True)]
    earlier = {str(run["run_id"]) for run in listed if not run.get("in_grid", True)}
    for run_dir in run_dirs:
        if run_dir.name in earlier:
            detail = "asked for by an earlier version of the grid, left out"
            problems.append(_problem(sweep, run_dir.name, "superseded", detail, run_dir))
            continue
        try:
            row = _read_run(run_dir)
        except (ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:  # not what a run writes
            detail = f"{type(error).__name__}: {error}"
            problems.append(_problem(sweep, run_dir.name, "broken", detail, run_dir))
            continue
        if row is None:
            state, detail = _why_unfinished(run_dir)
            problems.append(_problem(sweep, run_dir.name, state, detail, run_dir))
            continue
        row["sweep"] = sweep.name
        rows.append(row)
        scored = {name: v for name, v in row["metrics"].items() if not name.startswith("train.")}
        if nan := [name for name, value in scored.items() if not math.isfinite(value)]:
            detail = f"not a number: {', '.join(nan)}"
            problems.append(_problem(sweep, row["run_id"], "diverged", detail, run_dir))
    rows, repeated = _without_repeated(sweep, rows)
    problems += repeated
    problems += _missing_runs(sweep, {row["run_id"] for row in rows} | {p["run_id"] for p in problems})
    return rows, problems


def _without_repeated(sweep: Sweep, rows: list[dict]) -> tuple[list[dict], list[dict]]:
    """The same experiment made twice, once to keep its weights say, counts once."""
    kept: dict[tuple, dict] = {}
    problems = []
    for row in rows:
        params = json.dumps(row["params"], sort_keys=True, default=str)
        first = kept.setdefault((row["model"], row["dataset"], row["split_seed"], row["seed"], params), row)
        if first is not row:
            detail = f"same settings, split and seed as {first['run_id']}, left out"
            problems.append(_problem(sweep, row["run_id"], "repeated", detail, Path(row["path"])))
    return list(kept.values()), problems


def _read_list(path: Path) -> list[dict[str, Any]]:
    runs = read_json_lines(path) if path.exists() else []
    if nameless := [run for run in runs if "run_id" not in run]:
        raise AnalysisError(f"{path}: expected a run_id in every line, got {json.dumps(nameless[0])[:60]}")
    return runs


def _read_run(run_dir: Path) -> dict | None:
    path = run_dir / "result.json"
    try:
        result = json.loads(path.read_bytes())
    except FileNotFoundError:
        return read_graphgym_run(run_dir)
    if (schema := result.get("schema", SCHEMA)) != SCHEMA:
        raise ValueError(f"result.json has format {schema}, this version reads format {SCHEMA}")
    dataset = result["dataset"]
    metrics = {}
    for split in SPLITS:
        for name, value in (result.get(split) or {}).items():
            metrics[f"{split}.{name}"] = math.nan if value is None else float(value)
    return {
        "run_id": str(result["run_id"]),
        "model": str(result["model"]),
        "dataset": str(dataset["name"]),
        "nodes": dataset.get("nodes"),
        "edges": dataset.get("edges"),
        "avg_degree": _number(dataset.get("avg_degree")),
        "seed": int(result["seed"]),
        "split_seed": int(result.get("split_seed") or 0),
        "best_epoch": result.get("best_epoch"),
        "test_epoch": result.get("best_epoch"),
        "seconds": _number((result.get("timing") or {}).get("seconds")),
        "lambdas": result.get("lambdas"),
        "extra": result.get("extra"),
        "path": str(run_dir),
        "metrics": metrics,
        "params": dict(result.get("params") or _own_parameters(run_dir)),
    }


def _own_parameters(run_dir: Path) -> dict[str, Any]:
    """Of a run that no grid has made: whatever differs between such runs must not be averaged over."""
    config = run_dir / "config.yaml"
    return parameters(read_config(config)) if config.exists() else {}


def _why_unfinished(run_dir: Path) -> tuple[str, str]:
    failed = run_dir / "failed.json"
    if failed.exists():
        try:
            failure = json.loads(failed.read_text(encoding="utf-8"))
            attempts = failure.get("attempts")
            suffix = f" ({attempts} attempts)" if isinstance(attempts, int) and attempts > 1 else ""
            return "failed", f"{failure.get('error', 'no error text')}{suffix}"
        except (ValueError, AttributeError):
            return "failed", "failed.json cannot be read"
    if (run_dir / "checkpoint.pt").exists():
        return "unfinished", "has a checkpoint, no result yet"
    return "unfinished", "no result yet"


def _missing_runs(sweep: Sweep, known: set[str]) -> list[dict]:
    return [
        _problem(sweep, str(run["run_id"]), "missing", "asked for by the grid, never started", None)
        for run in sweep.asked
        if str(run["run_id"]) not in known
    ]


def _problem(sweep: Sweep, run_id: str, state: str, detail: str, path: Path | None) -> dict:
    values = (sweep.name, run_id, state, detail, str(path or ""))
    return dict(zip(PROBLEM_COLUMNS, values, strict=True))


def _assemble(sweeps: list[Sweep], rows: list[dict], problems: list[dict]) -> Results:
    metrics = pd.DataFrame([row.pop("metrics") for row in rows])
    params = pd.DataFrame([{k: _scalar(v) for k, v in row.pop("params").items()} for row in rows])
    params = params.drop(columns=[key for key in params if key in FIXED_COLUMNS or key in metrics])
    runs = pd.concat([pd.DataFrame(rows, columns=FIXED_COLUMNS), metrics, params], axis=1)
    # Stock result trees do not say the degree; the paper's datasets are known by name.
    runs["avg_degree"] = runs["avg_degree"].fillna(runs["dataset"].map(published_degrees()))
    twice = runs[runs.duplicated("run_id", keep=False)]
    if len(twice):
        first = twice.iloc[0]["run_id"]
        where = " and ".join(sorted(twice.loc[twice["run_id"] == first, "path"]))
        raise AnalysisError(f"the same run, {first}, is in two folders: {where}; give only one of their sweeps")
    return Results(runs, pd.DataFrame(problems, columns=PROBLEM_COLUMNS), sweeps, list(params.columns))


def _scalar(value: Any) -> Any:
    """A hyperparameter as something that can be grouped by."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def _keys(grid: dict[str, Any], names: list[str] | None) -> list[str]:
    """Axes by their hyperparameters: an axis of mappings has a name of its own and sets several keys."""
    keys = []
    for name in names or []:
        values = _mapping(grid.get("axes")).get(name)
        mappings = [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
        keys += [key for value in mappings for key in value] or [name]
    return list(dict.fromkeys(keys))


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
