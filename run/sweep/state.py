"""What has become of every run, from the files alone (and, on a cluster, one look at its queue).

``index.json`` remembers which ``result.json`` were found whole, by time and size, so that a look at thousands of
finished runs opens none of them again. It can be deleted at any time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcat_run.sweep import claims, files
from lcat_run.sweep.folder import SweepFolder
from lcat_run.sweep.plan import Run

#: In the order in which they are shown. ``paused`` has a checkpoint and waits to be started again.
STATES = ("done", "running", "queued", "unknown", "paused", "failed", "killed", "lost", "missing")
RESULT = "result.json"
SCHEMA = 1
#: How an error of a full disk reads; it is not the run's own.
NO_SPACE = "No space left on device"


@dataclass(frozen=True)
class RunState:
    state: str
    detail: str = ""
    seconds: float | None = None


@dataclass
class Snapshot:
    """The states of runs at one moment."""

    states: dict[str, RunState]
    complaints: list[str] = field(default_factory=list)

    def counts(self, runs: Iterable[Run] | None = None) -> Counter[str]:
        """How many of ``runs`` (default: of all) are in each state."""
        run_ids = self.states if runs is None else [run.run_id for run in runs]
        return Counter(self.states[run_id].state for run_id in run_ids)

    def of(self, *names: str) -> list[str]:
        return [run_id for run_id, state in self.states.items() if state.state in names]

    def is_done(self, run: Run) -> bool:
        return self.states[run.run_id].state == "done"


def scan(folder: SweepFolder, runs: Iterable[Run], queue: Mapping[str, RunState] | None = None) -> Snapshot:
    """Looks at the files of ``runs``; ``queue`` says which of those that did not start wait in a cluster's queue."""
    entries = _entries(folder.runs)
    index = _Index(folder.path / "index.json")
    snapshot = Snapshot({})
    for run in runs:
        if run.run_id in entries:
            state = _look(folder.run_dir(run.run_id), run.run_id, index, snapshot.complaints)
        else:
            state = RunState("missing")
        waiting = queue.get(run.run_id) if queue else None
        if waiting is not None and _says_more(waiting, state):
            state = waiting
        snapshot.states[run.run_id] = state
    index.save()
    records, damaged = folder.read_records()
    if damaged:
        snapshot.complaints.append(
            f"{folder.path / 'runs.jsonl'} has damaged lines ({damaged}); the same `lcat sweep` command writes it anew"
        )
    known = {record["run_id"] for record in records} | set(snapshot.states)
    strangers = sorted(entry for entry in entries if entry not in known and not entry.startswith("."))
    if strangers:
        snapshot.complaints.append(
            f"{folder.runs} has {len(strangers)} entries that are no run of this sweep, such as {strangers[0]}; ignored"
        )
    return snapshot


def _says_more(waiting: RunState, found: RunState) -> bool:
    """Whether the queue knows better than the files."""
    if waiting.state == "lost":
        return found.state == "missing"
    return found.state in ("missing", "paused", "killed")


def read_result(run_dir: Path) -> dict[str, Any] | None:
    """A whole ``result.json`` of this version, the only proof of a finished run."""
    result = files.read_json(run_dir / RESULT)
    return result if isinstance(result, dict) and result.get("schema") == SCHEMA else None


def _other_format(run_dir: Path) -> str | None:
    """The format of a result that another version has written."""
    result = files.read_json(run_dir / RESULT)
    found = result.get("schema", SCHEMA) if isinstance(result, dict) else SCHEMA
    return None if found == SCHEMA else str(found)


def _entries(path: Path) -> set[str]:
    try:
        return set(os.listdir(path))
    except FileNotFoundError:
        return set()


def _look(run_dir: Path, run_id: str, index: _Index, complaints: list[str]) -> RunState:
    try:
        stat = os.stat(run_dir / RESULT)
    except FileNotFoundError:
        return _unfinished(run_dir)
    except NotADirectoryError:
        complaints.append(f"{run_dir} should be the folder of a run but is a file; move it away")
        return RunState("failed", "its folder's place is taken by a file")
    known = index.get(run_id, stat)
    if known is not None:
        return known
    result = read_result(run_dir)
    if result is None and (other := _other_format(run_dir)):
        return RunState("failed", f"{RESULT} has format {other}, this version reads format {SCHEMA}: left as it is")
    if result is None:
        complaints.append(f"{run_dir / RESULT} is not whole and proves nothing: the run counts as not done")
        return _unfinished(run_dir)
    seconds = (result.get("timing") or {}).get("seconds")
    return index.put(run_id, stat, seconds if isinstance(seconds, (int, float)) else None)


def _unfinished(run_dir: Path) -> RunState:
    claimed, claim = claims.inspect(run_dir)
    if claimed:
        return RunState("running", _owner_text(claim))
    left = claim.get("left")
    failure = files.read_json(run_dir / "failed.json")
    if left in (None, "failed") and isinstance(failure, dict) and not _is_older(run_dir / "failed.json", claim):
        error = str(failure.get("error", "no error text"))
        return RunState("killed" if NO_SPACE in error else "failed", error)
    if left == "failed":
        return RunState("failed", str(claim.get("detail") or "no failed.json"))
    if left == "paused":
        return RunState("paused", str(claim.get("detail") or "stopped with a checkpoint"))
    if left == "killed":
        return RunState("killed", str(claim.get("detail") or ""))
    if claim.get("owner"):
        return RunState("killed", f"its launcher died: {_owner_text(claim)}")
    return RunState("missing")


def _is_older(failure: Path, claim: Mapping[str, Any]) -> bool:
    """Whether the run failed before the attempt that the claim is about, which then ended in another way."""
    return failure.stat().st_mtime < claim.get("since", 0)


def _owner_text(claim: Mapping[str, Any]) -> str:
    owner = claim.get("owner") or {}
    job = f", job {claim['job']}" if claim.get("job") else ""
    return f"process {owner.get('pid', '?')} on {owner.get('host', '?')}{job}"


class _Index:
    """Finished runs by the time and size of their ``result.json``."""

    def __init__(self, path: Path):
        self._path = path
        content = files.read_json(path)
        done = content.get("done") if isinstance(content, dict) else None
        self._done: dict[str, list[Any]] = done if isinstance(done, dict) else {}
        self._changed = False

    def get(self, run_id: str, stat: os.stat_result) -> RunState | None:
        entry = self._done.get(run_id)
        if not isinstance(entry, list) or entry[:2] != [stat.st_mtime_ns, stat.st_size] or len(entry) != 3:
            return None
        return RunState("done", seconds=entry[2])

    def put(self, run_id: str, stat: os.stat_result, seconds: float | None) -> RunState:
        self._done[run_id] = [stat.st_mtime_ns, stat.st_size, seconds]
        self._changed = True
        return RunState("done", seconds=seconds)

    def save(self) -> None:
        if not self._changed:
            return
        try:
            files.write_json(self._path, {"done": self._done}, indent=None)
        except OSError:  # a full or read-only disk: the next look will read the results again
            return
