"""``lcat sweep`` from the command line to its last words, the same for every engine."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcat_core.run_folder import RunState, State
from lcat_core.text import count
from lcat_run.engines.engine import Engine, Launch
from lcat_run.engines.worker_pool import worker_log
from lcat_run.lookup import find_yaml
from lcat_run.results_folder import DEFAULT_RESULTS
from lcat_run.sweep.cost import longest_first
from lcat_run.sweep.dry_run import describe_launch
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.grid import read_grid
from lcat_run.sweep.known_runs import restore_known_runs
from lcat_run.sweep.plan import MAX_RUNS, Plan, make_plan
from lcat_run.sweep.prepare import prepare_datasets
from lcat_run.sweep.selection import select_runs
from lcat_run.sweep.state import scan
from lcat_run.sweep.worker import Worker, planning_worker


@dataclass(frozen=True)
class SweepRequest:
    """What a user asks for with ``lcat sweep``, whatever the engine.

    Attributes:
        grid: A path, or the name of an included grid.
        overrides: Settings of the command line, by flat key.
        only: Values by key; only runs with these values are started.
        known: Archives whose runs count as done.
        command: The words after ``lcat``.
    """

    grid: str
    overrides: dict[str, Any] = field(default_factory=dict)
    only: dict[str, list[Any]] = field(default_factory=dict)
    retry_failed: bool = False
    known: list[Path] = field(default_factory=list)
    max_runs: int = MAX_RUNS
    dry_run: bool = False
    command: list[str] = field(default_factory=list)


def run_sweep(request: SweepRequest, engine: Engine) -> int:
    """Plan the sweep and have the engine start its runs; return the exit status."""
    with planning_worker(engine.planning_threads) as worker:
        plan = make_plan(read_grid(find_yaml(request.grid, "lcat_grids"), request.overrides), worker, request.max_runs)
        if not request.overrides:  # which may leave conditions of the grid without a run
            _print_notes(plan.notes)
        engine.adapt(plan, worker)
        folder = sweep_folder(plan)
        known: set[str] = set()
        if request.known:
            known, note = restore_known_runs(request.known, plan, folder, write=not request.dry_run)
            _print_notes([note])
        launch = _look(request, plan, folder, engine, worker, known)
        if request.dry_run:
            return _describe(launch, engine)
        old = folder.write(plan, request.command)
        if old:
            _print_notes([f"{count(old, 'run')} of an earlier version of the grid kept in {folder.runs}"])
        worker.log.write_to(worker_log(folder, 0))
        counts = launch.snapshot.counts(launch.chosen)
        left_out = 0 if request.retry_failed else counts[State.FAILED]
        if not launch.runs:
            waiting = sum(counts[state] for state in engine.skipped_states)
            elsewhere = f"{waiting} waiting or running, " if waiting else ""
            print(f"nothing to do: {counts[State.DONE]} done, {elsewhere}{left_out} failed; results in {folder.path}")
            return 1 if left_out else 0
        at_once = count(min(engine.parallel_runs(len(launch.runs)), len(launch.runs)), "worker")
        print(f"{plan.grid.name}: {len(launch.runs)} of {len(plan.runs)} runs to do, {at_once}", file=sys.stderr)
        prepare_datasets(plan, launch.runs, worker)
        ending = engine.start(launch)
    print(ending.message)
    if left_out:
        print(f"{count(left_out, 'run')} that failed in an earlier launch left out; --retry-failed tries them again")
    return ending.exit_status or (1 if left_out else 0)


def sweep_folder(plan: Plan) -> SweepFolder:
    """Return the folder of the sweep, ``<out_dir>/<name>``."""
    out_dir = plan.common.get("out_dir") or plan.defaults.get("out_dir") or DEFAULT_RESULTS
    return SweepFolder(Path(out_dir) / plan.grid.name)


def _look(
    request: SweepRequest, plan: Plan, folder: SweepFolder, engine: Engine, worker: Worker, known: set[str]
) -> Launch:
    """Find out what is done, running or waiting, and choose the runs to start; ``known`` ones are done elsewhere."""
    chosen = select_runs(plan, request.only) if request.only else plan.runs
    if not request.dry_run:
        _print_notes(engine.reconcile(folder))
    queue = engine.look(folder)
    snapshot = scan(folder, plan.runs, queue.states)
    if request.dry_run:  # otherwise their results are in the folder by now
        snapshot.states.update(dict.fromkeys(known, RunState(State.DONE)))
    _print_notes([*queue.notes, *snapshot.notes])
    skipped = {State.DONE, *engine.skipped_states, *([] if request.retry_failed else [State.FAILED])}
    runs = [run for run in chosen if snapshot.states[run.run_id].state not in skipped]
    return Launch(folder, plan, chosen, longest_first(plan, runs), snapshot, worker, request.command)


def _describe(launch: Launch, engine: Engine) -> int:
    workers = engine.parallel_runs(len(launch.runs))
    print(describe_launch(launch.plan, launch.runs, launch.snapshot, workers))
    preview = engine.preview(launch) if launch.runs else ""
    if preview:
        print(f"\n{preview}")
    return 0


def _print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
