"""The state of every run of a sweep, from the files and from what the engines know about their queues.

``index.json`` remembers the time and size of every complete ``result.json``, so that finished runs are not opened again.
It can be deleted at any time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcat_core.files import read_json, write_json
from lcat_core.run_folder import (
    RESULT,
    RunRecord,
    RunState,
    State,
    damaged_lines_text,
    read_result,
    unfinished_state,
    why_unusable,
)
from lcat_run.sweep.folder import SweepFolder


@dataclass
class Snapshot:
    """The states of runs at one moment, and notes on files that are not as they should be."""

    states: dict[str, RunState]
    notes: list[str] = field(default_factory=list)

    def counts(self, runs: Iterable[RunRecord] | None = None) -> Counter[State]:
        """Count the states of ``runs``, or of all runs."""
        run_ids = self.states if runs is None else [run.run_id for run in runs]
        return Counter(self.states[run_id].state for run_id in run_ids)

    def run_ids(self, *states: State) -> list[str]:
        """Return the ids of the runs in any of these states."""
        return [run_id for run_id, found in self.states.items() if found.state in states]

    def is_done(self, run: RunRecord) -> bool:
        return self.states[run.run_id].state is State.DONE


def scan(folder: SweepFolder, runs: Iterable[RunRecord], queued: Mapping[str, RunState] | None = None) -> Snapshot:
    """Determine the states of ``runs``; ``queued`` holds those that engines know, by run id."""
    entries = _entries(folder.runs)
    index = _Index(folder.path / "index.json")
    snapshot = Snapshot({})
    for run in runs:
        if run.run_id in entries:
            state = _state(folder.run_dir(run.run_id), run.run_id, index, snapshot.notes)
        else:
            state = RunState(State.MISSING)
        waiting = queued.get(run.run_id) if queued else None
        if waiting is not None and _knows_better(waiting, state):
            state = waiting
        snapshot.states[run.run_id] = state
    index.save()
    records, damaged = folder.read_records()
    if damaged:
        snapshot.notes.append(damaged_lines_text(folder.runs_file, damaged))
    known = {record.run_id for record in records} | set(snapshot.states)
    strangers = sorted(entry for entry in entries if entry not in known and not entry.startswith("."))
    if strangers:
        what = "an entry that is not a run" if len(strangers) == 1 else f"{len(strangers)} entries that are not runs"
        snapshot.notes.append(f"{folder.runs} has {what} of this sweep, such as {strangers[0]}; ignored")
    return snapshot


def _knows_better(queued: RunState, found: RunState) -> bool:
    """Whether an engine's queue is to be believed rather than the files."""
    if queued.state is State.LOST:
        return found.state is State.MISSING
    return found.state in (State.MISSING, State.PAUSED, State.KILLED)


def _entries(path: Path) -> set[str]:
    try:
        return set(os.listdir(path))
    except FileNotFoundError:
        return set()


def _state(run_dir: Path, run_id: str, index: _Index, notes: list[str]) -> RunState:
    try:
        stat = os.stat(run_dir / RESULT)
    except FileNotFoundError:
        return unfinished_state(run_dir)
    except NotADirectoryError:
        notes.append(f"{run_dir} should be the folder of a run but is a file; move it away")
        return RunState(State.FAILED, "a file is in the place of its folder")
    except OSError as error:  # a link to itself, or no permission
        unreadable = f"{run_dir / RESULT} cannot be read: {error.strerror}"
        notes.append(unreadable)
        return RunState(State.FAILED, unreadable)
    known = index.get(run_id, stat)
    if known is not None:
        return known
    result = read_result(run_dir)
    if result is not None:
        return index.put(run_id, stat, result.seconds)
    reason = why_unusable(run_dir)
    if reason is not None:
        return RunState(State.FAILED, f"{reason}; the file is left as it is")
    notes.append(f"{run_dir / RESULT} is incomplete, so the run counts as unfinished")
    return unfinished_state(run_dir)


class _Index:
    """Finished runs by the time and size of their ``result.json``."""

    def __init__(self, path: Path):
        self._path = path
        content = read_json(path)
        done = content.get("done") if isinstance(content, dict) else None
        self._done: dict[str, list[Any]] = done if isinstance(done, dict) else {}
        self._changed = False

    def get(self, run_id: str, stat: os.stat_result) -> RunState | None:
        entry = self._done.get(run_id)
        if not isinstance(entry, list) or entry[:2] != [stat.st_mtime_ns, stat.st_size] or len(entry) != 3:
            return None
        if not isinstance(entry[2], (int, float, type(None))):
            return None
        return RunState(State.DONE, seconds=entry[2])

    def put(self, run_id: str, stat: os.stat_result, seconds: float | None) -> RunState:
        self._done[run_id] = [stat.st_mtime_ns, stat.st_size, seconds]
        self._changed = True
        return RunState(State.DONE, seconds=seconds)

    def save(self) -> None:
        if not self._changed:
            return
        try:
            write_json(self._path, {"done": self._done}, indent=None)
        except OSError:  # a full or read-only disk: the results are read again next time
            return
