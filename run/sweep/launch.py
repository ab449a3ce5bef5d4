"""From a command line to a finished sweep: plan, folder, datasets, engine, last words."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lcat_run.errors import UserError
from lcat_run.lookup import find_yaml
from lcat_run.sweep.cost import cost, duration_text, guess_seconds, longest_first
from lcat_run.sweep.folder import DEFAULT_RESULTS, SweepFolder
from lcat_run.sweep.grid import read_grid
from lcat_run.sweep.local import LocalEngine, Outcome, SweepFailed
from lcat_run.sweep.plan import Plan, Run, make_plan
from lcat_run.sweep.progress import Progress
from lcat_run.sweep.state import RunState, Snapshot, scan
from lcat_run.sweep.worker import Worker, WorkerDied

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Launch:
    """What a user asks for with ``lcat sweep``."""

    grid: str
    overrides: dict[str, Any] = field(default_factory=dict)
    only: dict[str, list[Any]] = field(default_factory=dict)
    jobs: int | None = None
    threads: int | None = None
    retry_failed: bool = False

    def plan(self, worker: Worker) -> Plan:
        """The runs of the grid; remarks are told on standard error."""
        plan = make_plan(read_grid(find_yaml(self.grid, "lcat_grids"), self.overrides), worker)
        for note in plan.notes if not self.overrides else []:  # which may well leave rules without a run
            print(f"note: {note}", file=sys.stderr)
        return plan

    def folder(self, plan: Plan) -> SweepFolder:
        out_dir = plan.common.get("out_dir") or plan.defaults.get("out_dir") or DEFAULT_RESULTS
        return SweepFolder(Path(out_dir) / plan.grid.name)

    def chosen(self, plan: Plan) -> list[Run]:
        """The runs that ``only`` names."""
        return plan.select(self.only) if self.only else plan.runs

    def to_do(self, plan: Plan, snapshot: Snapshot) -> list[Run]:
        """The runs to start: chosen by ``only``, neither done nor, unless they are to be retried, failed."""
        skipped = {"done"} if self.retry_failed else {"done", "failed"}
        return longest_first(
            plan, [run for run in self.chosen(plan) if snapshot.states[run.run_id].state not in skipped]
        )

    def workers_and_threads(self, cores: int) -> tuple[int, int]:
        """How many workers, of how many threads each; together no more than ``cores`` unless both are given."""
        if self.jobs is None:
            threads = self.threads or 1
            return max(1, cores // threads), threads
        return self.jobs, self.threads or max(1, cores // self.jobs)


def parse_overrides(words: Sequence[str]) -> dict[str, Any]:
    """``["optim.base_lr", "0.005"]`` → ``{"optim.base_lr": 0.005}``."""
    if len(words) % 2:
        raise UserError(f"settings come in pairs of a key and a value, got a last key without one: {words[-1]!r}")
    return {key: _value(value) for key, value in zip(words[::2], words[1::2], strict=True)}


def parse_only(entries: Sequence[str]) -> dict[str, list[Any]]:
    """``["dataset.name=Cora,model=lcat"]``; a key that comes twice may have either value."""
    chosen: dict[str, list[Any]] = {}
    for part in (part for entry in entries for part in entry.split(",")):
        key, sign, value = part.partition("=")
        if not sign or not key or not value:
            raise UserError(f"--only takes key=value, several with commas between them, got {part!r}")
        chosen.setdefault(key.strip(), []).append(value if key == "model" else _value(value))
    return chosen


def _value(word: str) -> Any:
    try:
        return yaml.safe_load(word)
    except yaml.YAMLError as error:
        raise UserError(f"the value {word!r} is not valid YAML") from error


def available_cores() -> int:
    """The cores this process may use, which on a shared machine are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def planning_worker(threads: int) -> Iterator[Worker]:
    """A worker that answers questions about settings before the sweep has a folder."""
    with tempfile.TemporaryDirectory(prefix="lcat-") as scratch:
        worker = Worker(threads, log=Path(scratch) / "worker.log")
        try:
            yield worker
        except WorkerDied as death:
            raise SweepFailed(f"the worker that checks settings and prepares datasets is gone: {death}") from death
        finally:
            worker.close()


def describe(plan: Plan, runs: Sequence[Run], snapshot: Snapshot, workers: int) -> str:
    """What ``--dry-run`` prints: counts, the first run in full, an estimate."""
    grid = plan.grid
    lines = [f"{grid.name}: {len(plan.runs)} runs, {sum(map(snapshot.is_done, plan.runs))} of them done"]
    first = grid.blocks[0]
    lines.append(f"  {len(first.models)} models: {', '.join(first.models)}")
    lines += [f"  {axis.name}: {', '.join(_point_text(point) for point in axis.points)}" for axis in first.axes]
    lines.append(f"  {len(first.seeds)} seeds: {', '.join(map(str, first.seeds))}")
    if len(grid.blocks) > 1:
        lines.append(f"  and {len(grid.blocks) - 1} included blocks")
    if not runs:
        return "\n".join([*lines, "nothing to do"])
    first_run = runs[0]
    settings = first_run.settings(plan.common)
    lines += ["", f"{len(runs)} to start, first {first_run.run_id}:"]
    lines += [f"  {key}: {value}" for key, value in sorted(settings.items())]
    workers = min(workers, len(runs))
    seconds = guess_seconds(plan, runs, snapshot) / workers
    lines += ["", f"roughly {duration_text(seconds)} with {workers} worker{'s' if workers > 1 else ''}"]
    return "\n".join(lines)


def _point_text(point: Mapping[str, Any]) -> str:
    return "/".join(str(value) for value in point.values())


def prepare_datasets(plan: Plan, runs: Sequence[Run], worker: Worker) -> None:
    """Downloads and processes every dataset that the runs need, once, before any of them starts.

    Raises:
        UserError: for those that cannot be had.
    """
    datasets: dict[str, tuple[Run, dict[str, Any]]] = {}
    for run in runs:
        settings = run.settings(plan.common)
        about_data = {key: value for key, value in settings.items() if key.startswith(("dataset.", "block_model."))}
        about_data.pop("dataset.label", None)
        datasets.setdefault(repr(sorted(about_data.items())), (run, settings))
    problems = {}
    for run, settings in datasets.values():
        reply = worker.prepare(settings)
        if not reply.get("ok"):
            problems[run.dataset] = re.sub(r"^\w+Error: ", "", str(reply.get("error")))
    if problems:
        listed = "; ".join(problems.values())
        raise UserError(
            f"nothing was started, since {len(problems)} of {len(datasets)} datasets cannot be had: {listed}"
        )


def run_locally(
    launch: Launch, plan: Plan, folder: SweepFolder, runs: Sequence[Run], snapshot: Snapshot, worker: Worker
) -> Outcome:
    """Makes the runs on this machine until all are done, or the user stops it."""
    jobs, threads = launch.workers_and_threads(available_cores())
    chosen = launch.chosen(plan)
    costs = {run.run_id: cost(plan, run) for run in runs}
    progress = Progress(len(chosen), snapshot.counts(chosen)["done"], costs)
    engine = LocalEngine(folder, plan.common, runs, jobs, threads, progress, first_worker=worker)
    try:
        with folder.launcher(), _stop_on_signals(engine):
            return engine.run()
    finally:
        progress.close()


@contextmanager
def _stop_on_signals(engine: LocalEngine) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM, or a closed terminal) asks for checkpoints, the second does not wait for them."""
    received = []

    def handle(number: int, _: object) -> None:
        received.append(number)
        if len(received) == 1:
            print("\nstopping: writing checkpoints (again to kill)", file=sys.stderr, flush=True)
        engine.stop(patience=30.0 if len(received) == 1 else 0.0)

    caught = [number for number in _STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # as nohup has it
    before = {number: signal.signal(number, handle) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def last_words(outcome: Outcome, folder: SweepFolder, command: Sequence[str]) -> str:
    """How it went, and what to do next."""
    counts = [f"{len(outcome.done)} done"]
    if outcome.done_elsewhere:
        counts.append(f"{len(outcome.done_elsewhere)} done by others")
    counts += [
        f"{len(getattr(outcome, name))} {name}" for name in ("failed", "killed", "paused") if getattr(outcome, name)
    ]
    if outcome.retries:
        counts.append(f"{outcome.retries} retries of killed runs")
    text = f"{', '.join(counts)}; results in {folder.path}"
    if outcome.stopped or outcome.killed:
        text += f"\ngo on with: lcat {shlex.join(command)}"
    if outcome.failed:
        text += f"\nsee why with: lcat logs {folder.path}\ntry them again with --retry-failed"
    return text


def look(folder: SweepFolder, runs: Sequence[Run], queue: Mapping[str, RunState] | None = None) -> Snapshot:
    """The states of the runs, complaints told on standard error."""
    snapshot = scan(folder, runs, queue)
    for complaint in snapshot.complaints:
        print(f"note: {complaint}", file=sys.stderr)
    return snapshot
