"""Read results folders into one table with one row per finished run, and a list of all runs that are missing from it.

Every run that failed, stopped, cannot be read or has never started is a row of `Results.problems`.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import tempfile
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pandas as pd

from lcat_analysis.experiments import distinguishing_settings, groupable
from lcat_analysis.run_row import read_run_row
from lcat_analysis.scores_file import DECLARED, is_scores_file, read_scores
from lcat_analysis.sweep_folder import Sweep, find_sweeps, merge_grids
from lcat_core.archive import is_archive, read_archive, unpack_archive
from lcat_core.datasets import SIZES
from lcat_core.errors import ResultsError
from lcat_core.metrics import METRICS
from lcat_core.run_folder import (
    RESULT,
    RunState,
    State,
    load_result,
    unfinished_state,
    why_unusable,
)

FIXED_COLUMNS = (
    "sweep", "run_id", "model", "dataset", "nodes", "edges", "avg_degree", "seed", "split_seed", "split",
    "best_epoch", "test_epoch", "epoch_by", "seconds", "lambdas", "extra", "diverged", "path",
    "test_per_train",
)  # fmt: skip
PROBLEM_COLUMNS = ("sweep", "run_id", "state", "exclusion", "detail", "path")


class Exclusion(StrEnum):
    """Why the analysis does not use a run, or one of its metrics, whatever its state."""

    UNREADABLE = "unreadable"  # its files are damaged, or written by another version
    SUPERSEDED = "superseded"  # only an earlier version of the grid asked for it
    REPEATED = "repeated"  # another run has the same settings, split and seed, and the same result
    CONFLICTING = "conflicting"  # another run has the same settings, split and seed, but another result
    DIVERGED = "diverged"  # a metric is not a number


#: Runs that are in the table all the same.
_KEPT = (Exclusion.CONFLICTING, Exclusion.DIVERGED)


@dataclass
class Results:
    """Everything that `load` found.

    Attributes:
        runs: One row per finished run. Metrics are columns such as ``test.accuracy`` (fractions); hyperparameters are columns
            named by their key (``optim.base_lr``).
        problems: One row per run without a usable result. ``state`` is the state that ``lcat status`` shows; ``exclusion`` is
            the `Exclusion` if the analysis leaves the run out for another reason, else empty. Diverged and conflicting runs
            are finished, so they are in ``runs`` as well.
        sweeps: The folders that were read.
        param_keys: The columns of ``runs`` that are hyperparameters.
        recorded_metrics: Direction, scale and label of metrics that runs describe themselves.
    """

    runs: pd.DataFrame
    problems: pd.DataFrame
    sweeps: list[Sweep]
    param_keys: list[str]
    recorded_metrics: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return ", ".join(sweep.name for sweep in self.sweeps)

    @property
    def grid(self) -> dict[str, Any]:
        """What the grids of all sweeps declare."""
        return merge_grids(self.sweeps)

    @property
    def metrics(self) -> list[str]:
        """Names of the test metrics, without ``test.``."""
        return [column.removeprefix("test.") for column in self.runs.columns if column.startswith("test.")]

    @property
    def declared_metrics(self) -> dict[str, dict[str, Any]]:
        """What runs and grids say about metrics (see `find_measure`); a grid takes precedence."""
        return self.recorded_metrics | self.grid["metrics"]

    def is_described(self, metric: str) -> bool:
        """Whether the direction of a metric is known."""
        return metric in METRICS or "higher_is_better" in self.declared_metrics.get(metric, {})

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the files of the sweeps, apart from their runs."""
        return [text for sweep in self.sweeps for text in sweep.warnings]

    def counts(self) -> dict[str, int]:
        """Count runs by exclusion, else by state; ``done`` first, without diverged and conflicting runs."""
        flawed = int(self.problems["exclusion"].isin([str(kind) for kind in _KEPT]).sum())
        kinds = self.problems["exclusion"].where(self.problems["exclusion"] != "", self.problems["state"])
        found = kinds.value_counts()
        order = [str(kind) for kind in (*State, *Exclusion) if kind in found.index]
        return {"done": len(self.runs) - flawed, **{kind: int(found[kind]) for kind in order}}


def load(*paths: str | os.PathLike[str]) -> Results:
    """Read every sweep at or below ``paths``, archives of `lcat export`, result trees of stock GraphGym and GraphGPS, and tables of
    scores (CSV).

    Raises:
        ResultsError: A path does not exist or contains no run, or two folders contain the same run.
    """
    return load_sweeps(sweeps_below(*paths))


def sweeps_below(*paths: str | os.PathLike[str]) -> list[Sweep]:
    """Find what `load` reads.

    Raises:
        ResultsError: A path does not exist or contains no run.
    """
    sweeps: list[Sweep] = []
    for path in map(Path, paths):
        if is_scores_file(path) and path.is_file():
            rows, notes = read_scores(path)
            sweeps.append(Sweep(path.stem, path, [], grid={"metrics": DECLARED}, warnings=notes, rows=rows))
            continue
        if is_archive(path) and path.is_file():
            path = _unpacked(path)
        if not path.is_dir():
            found = "a file" if path.exists() else "missing"
            raise ResultsError(f"expected a results directory, but {path} is {found}")
        below = list(find_sweeps(path))
        if not below:
            raise ResultsError(
                f"no runs in {path}: expected runs/<run id>/{RESULT} in it or in a folder below, "
                "or GraphGym's <run>/<seed>/<split>/stats.json"
            )
        sweeps += below
    return sweeps


def load_sweeps(sweeps: list[Sweep]) -> Results:
    """Read these sweeps together.

    Raises:
        ResultsError: Two folders contain the same run.
    """
    rows: list[dict[str, Any]] = []
    problems: list[dict[str, str]] = []
    for sweep in sweeps:
        sweep_rows, sweep_problems = _read_sweep(sweep)
        rows += [*sweep.rows, *sweep_rows]
        problems += sweep_problems
    return _assemble(sweeps, rows, problems)


def _unpacked(path: Path) -> Path:
    """Unpack an archive into a temporary folder that lives as long as this process: figures read its curves later."""
    folder = tempfile.TemporaryDirectory(prefix="lcat-")
    atexit.register(folder.cleanup)
    unpack_archive(read_archive(path), Path(folder.name))
    return Path(folder.name)


def _read_sweep(sweep: Sweep) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    rows = []
    firsts: dict[tuple[Any, ...], dict[str, Any]] = {}
    problems = []
    seen = set()
    for run_dir in sweep.run_dirs:
        seen.add(run_dir.name)
        row, problem = _read_run(sweep, run_dir)
        if row is not None:
            seen.add(row["run_id"])
            first = firsts.setdefault(_identity(row), row)
            if first is not row:
                exclusion, detail = _compare_repetition(first, row)
                problem = _problem(sweep, row["run_id"], RunState(State.DONE, detail), run_dir, exclusion)
            if first is row or exclusion is not Exclusion.REPEATED:
                rows.append(row)
        if problem is not None:
            problems.append(problem)
    never_started = RunState(State.MISSING, "in the grid, never started")
    problems += [_problem(sweep, record.run_id, never_started) for record in sweep.records if record.run_id not in seen]
    return rows, problems


def _compare_repetition(first: dict[str, Any], row: dict[str, Any]) -> tuple[Exclusion, str]:
    """Decide about a run with the settings, split and seed of an earlier one; the same experiment counts once."""
    same = f"same settings, split and seed as {first['run_id']}"
    for name, value in row["metrics"].items():
        other = first["metrics"].get(name, math.nan)
        if name.startswith("test.") and value != other and not (math.isnan(value) and math.isnan(other)):
            return Exclusion.CONFLICTING, f"{same}, but {name} is {value:.6g} instead of {other:.6g}"
    return Exclusion.REPEATED, f"{same}, left out"


def _read_run(sweep: Sweep, run_dir: Path) -> tuple[dict[str, Any] | None, dict[str, str] | None]:
    """Return the row of a run, or what is wrong with it; a diverged run has both."""
    if run_dir.name in sweep.superseded:
        state = RunState(_state(run_dir).state, "only an earlier version of the grid asked for it, left out")
        return None, _problem(sweep, run_dir.name, state, run_dir, Exclusion.SUPERSEDED)
    try:
        row = read_run_row(run_dir)
    except (ResultsError, OSError) as error:
        state = RunState(_state(run_dir).state, str(error))
        return None, _problem(sweep, run_dir.name, state, run_dir, Exclusion.UNREADABLE)
    if row is None:
        return None, _problem(sweep, run_dir.name, unfinished_state(run_dir), run_dir)
    row["sweep"] = sweep.name
    scored = {name: value for name, value in row["metrics"].items() if not name.startswith("train.")}
    row["diverged"] = tuple(name for name, value in scored.items() if not math.isfinite(value))
    if not row["diverged"]:
        return row, None
    state = RunState(State.DONE, f"not a number: {', '.join(row['diverged'])}")
    return row, _problem(sweep, row["run_id"], state, run_dir, Exclusion.DIVERGED)


def _state(run_dir: Path) -> RunState:
    """Return the state that ``lcat status`` shows for a run whose result the analysis does not use."""
    if why_unusable(run_dir) is not None:
        return RunState(State.FAILED)
    try:
        load_result(run_dir)
    except (ResultsError, OSError):
        return unfinished_state(run_dir)
    return RunState(State.DONE)


def _identity(row: dict[str, Any]) -> tuple[Any, ...]:
    """Runs that agree in this repeat each other."""
    params = json.dumps([row["params"], row.get("settings", {})], sort_keys=True, default=str)
    return row["model"], row["dataset"], row["split_seed"], row["seed"], params


def _problem(
    sweep: Sweep, run_id: str, state: RunState, path: Path | str = "", exclusion: Exclusion | str = ""
) -> dict[str, str]:
    detail = state.detail or "no result yet"
    values = (sweep.name, run_id, str(state.state), str(exclusion), detail, str(path))
    return dict(zip(PROBLEM_COLUMNS, values, strict=True))


def _assemble(sweeps: list[Sweep], rows: list[dict[str, Any]], problems: list[dict[str, str]]) -> Results:
    described: dict[str, dict[str, Any]] = {}
    for row in rows:
        described |= row.pop("recorded_metrics", {})
    metrics = pd.DataFrame([row.pop("metrics") for row in rows])
    params = pd.DataFrame([{k: groupable(v) for k, v in row.pop("params").items()} for row in rows])
    settings = [row.pop("settings", {}) for row in rows]
    params = params.drop(columns=[key for key in params if key in FIXED_COLUMNS or key in metrics])
    fixed = pd.DataFrame(rows, columns=list(FIXED_COLUMNS))
    params = distinguishing_settings(fixed, params, settings) if rows else params
    runs = pd.concat([fixed, metrics, params], axis=1)
    # Stock result trees do not record the degree; those of known datasets are looked up by name.
    known = {name: size.avg_degree for name, size in SIZES.items()}
    runs["avg_degree"] = runs["avg_degree"].fillna(runs["dataset"].map(known))
    twice = runs[runs.duplicated("run_id", keep=False)]
    if len(twice):
        first = twice.iloc[0]["run_id"]
        where = " and ".join(sorted(twice.loc[twice["run_id"] == first, "path"]))
        raise ResultsError(f"the same run, {first}, is in two folders: {where}; give only one of their sweeps")
    table = pd.DataFrame(problems, columns=list(PROBLEM_COLUMNS))
    return Results(runs, table, sweeps, list(params.columns), described)
