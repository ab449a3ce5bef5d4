"""The folder of a run, ``runs/<run id>/``: the names of its files, its result, and the state that they tell.

``result.json`` is written last and is the only proof that a run is done.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeGuard

from lcat_core.claims import inspect_claim
from lcat_core.errors import ResultsError
from lcat_core.files import MAX_LINES_BYTES, parse_json, read_bytes, read_json
from lcat_core.outcomes import Outcome

#: Version of the format of ``result.json`` and ``sweep.json``.
SCHEMA = 1

RESULT = "result.json"
CONFIG = "config.yaml"
FAILURE = "failed.json"
LOG = "log.txt"
LAMBDAS = "lambdas.csv"
STATS = "stats.json"
CHECKPOINT = "checkpoint.pt"
PREDICTIONS = "predictions.npz"
WEIGHTS = "model.pt"
SPLITS = ("train", "val", "test")

#: How versions before ``cause`` recorded a full disk in ``failed.json``.
_NO_SPACE = "No space left on device"


class State(StrEnum):
    """What has become of a run, in the order in which states are listed."""

    DONE = "done"
    RUNNING = "running"
    QUEUED = "queued"
    UNKNOWN = "unknown"  # submitted to a cluster that does not answer
    PAUSED = "paused"  # has a checkpoint and waits to be started again
    FAILED = "failed"  # by its own error
    KILLED = "killed"  # by a signal, or because memory or disk ran out
    LOST = "lost"  # submitted to a cluster, but neither queued nor finished
    MISSING = "missing"  # never started


@dataclass(frozen=True)
class RunState:
    """The state of one run, why, and how long it took if it is done."""

    state: State
    detail: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class RunResult:
    """The content of ``result.json``, schema 1, with checked types.

    Attributes:
        params: What the grid varies, by flat key; empty for ``lcat run``.
        settings: Everything that differs from the defaults.
        dataset: ``name``, ``nodes``, ``edges``, ``avg_degree``.
        metrics: ``test.accuracy`` and so on, as fractions; NaN where the file has null.
        lambdas: One pair per layer; a list in place of a number where heads have their own λ.
        document: The complete file.
    """

    run_id: str
    model: str
    seed: int
    split_seed: int
    dataset: Mapping[str, Any]
    best_epoch: int | None
    metrics: Mapping[str, float]
    lambdas: list[Any]
    params: Mapping[str, Any]
    settings: Mapping[str, Any]
    seconds: float | None
    extra: Any
    document: Mapping[str, Any] = field(repr=False)


def read_result(run_dir: Path) -> RunResult | None:
    """Return the result of a finished run; None without a complete ``result.json`` of this version."""
    try:
        return load_result(run_dir)
    except (OSError, ResultsError):
        return None


def is_done(run_dir: Path) -> bool:
    """Whether the run has a complete ``result.json`` of this version."""
    return read_result(run_dir) is not None


def load_result(run_dir: Path) -> RunResult:
    """Read ``result.json``.

    Raises:
        OSError: There is none, or it cannot be opened.
        ResultsError: It is incomplete, has another schema, or a field of the wrong type.
    """
    path = run_dir / RESULT
    data = read_bytes(path)
    try:
        document = parse_json(data)
    except ValueError as error:
        raise ResultsError(f"{path} is incomplete or not valid JSON ({error})") from error
    return parse_result(document, str(path))


def why_unusable(run_dir: Path) -> str | None:
    """Return why a complete ``result.json`` is not a result of this version; None if there is none, or only part of one.

    Such a file is left as it is: another version may have written it, so the run must not be repeated over it.
    """
    path = run_dir / RESULT
    try:
        parse_result(parse_json(read_bytes(path)), str(path))
    except FileNotFoundError:
        return None
    except OSError as error:  # a folder or a pipe in its place, or no permission to read it
        return f"{path} cannot be read: {error.strerror}"
    except ResultsError as error:
        return str(error)
    except ValueError:  # incomplete
        return None
    return None


def parse_result(document: Any, where: str) -> RunResult:
    """Check the content of a ``result.json``; ``where`` is its path, for messages.

    Raises:
        ResultsError: Another schema, or a field that is missing or has the wrong type.
    """
    if not isinstance(document, dict):
        raise ResultsError(f"{where} must hold a JSON object, got {_shown(document)}")
    if not _is_this_schema(document.get("schema")):
        raise ResultsError(
            f"{where} has schema {_shown(document.get('schema'))}, but this version reads schema {SCHEMA}"
        )
    check = _Fields(document, where)
    dataset = check.mapping("dataset")
    check_dataset = _Fields(dataset, f"{where}, dataset")
    check_dataset.text("name")
    for name in ("nodes", "edges", "avg_degree"):
        if dataset.get(name) is not None:
            check_dataset.number(name)
    lambdas = document.get("lambdas")
    if not isinstance(lambdas, list | None):
        raise ResultsError(f"{where}: `lambdas` must be a list, got {_shown(lambdas)}")
    return RunResult(
        run_id=check.text("run_id"),
        model=check.text("model"),
        seed=check.whole_number("seed"),
        split_seed=check.whole_number("split_seed") if document.get("split_seed") is not None else 0,
        dataset=dataset,
        best_epoch=check.whole_number("best_epoch") if document.get("best_epoch") is not None else None,
        metrics=_metrics(document, where),
        lambdas=lambdas or [],
        params=check.mapping("params", optional=True),
        settings=check.mapping("settings", optional=True),
        seconds=_seconds(document.get("timing")),
        extra=document.get("extra"),
        document=document,
    )


def _metrics(document: Mapping[str, Any], where: str) -> dict[str, float]:
    metrics = {}
    for split in SPLITS:
        for name, value in _Fields(document, where).mapping(split, optional=True).items():
            if value is not None and not _is_number(value):
                raise ResultsError(f"{where}: `{split}.{name}` must be a number or null, got {_shown(value)}")
            metrics[f"{split}.{name}"] = math.nan if value is None else float(value)
    return metrics


def _seconds(timing: Any) -> float | None:
    """Return the duration if it is known; a result is not less valid without it."""
    seconds = timing.get("seconds") if isinstance(timing, dict) else None
    return float(seconds) if _is_number(seconds) and math.isfinite(seconds) else None


def _is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a number that fits into a float; JSON allows integers of any length."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023)


def _is_this_schema(value: Any) -> bool:
    return value == SCHEMA and isinstance(value, int) and not isinstance(value, bool)


class _Fields:
    """Fields of a JSON object, by type."""

    def __init__(self, document: Mapping[str, Any], where: str):
        self._document = document
        self._where = where

    def text(self, name: str) -> str:
        value = self._document.get(name)
        if not isinstance(value, str) or not value:
            raise self._error(name, "text", value)
        return value

    def whole_number(self, name: str) -> int:
        value = self._document.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
            raise self._error(name, "a whole number", value)
        return value

    def number(self, name: str) -> float:
        value = self._document.get(name)
        if not _is_number(value) or not math.isfinite(value):
            raise self._error(name, "a finite number", value)
        return float(value)

    def mapping(self, name: str, optional: bool = False) -> dict[str, Any]:
        value = self._document.get(name)
        if optional and value is None:
            return {}
        if not isinstance(value, dict):
            raise self._error(name, "an object", value)
        return value

    def _error(self, name: str, expected: str, value: Any) -> ResultsError:
        return ResultsError(f"{self._where}: `{name}` must be {expected}, got {_shown(value)}")


def _shown(value: Any) -> str:
    return f"{value!r:.80}" if value is not None else "none"


def unfinished_state(run_dir: Path) -> RunState:
    """Return the state of a run that has no complete result; one with files that cannot be read has failed."""
    try:
        return _unfinished_state(run_dir)
    except OSError as error:
        return RunState(State.FAILED, str(error))


def _unfinished_state(run_dir: Path) -> RunState:
    claimed, claim = inspect_claim(run_dir)
    if claimed:
        return RunState(State.RUNNING, owner_text(claim))
    left = claim.get("left")
    failure = read_json(run_dir / FAILURE)
    if left in (None, Outcome.FAILED) and isinstance(failure, dict) and not _is_older(run_dir / FAILURE, claim):
        error = str(failure.get("error", "no error text"))
        disk_full = failure.get("cause") == "disk full" or _NO_SPACE in error
        return RunState(State.KILLED if disk_full else State.FAILED, error)
    if left == Outcome.FAILED:
        return RunState(State.FAILED, str(claim.get("detail") or f"no {FAILURE}"))
    if left == Outcome.PAUSED:
        return RunState(State.PAUSED, str(claim.get("detail") or "stopped with a checkpoint"))
    if left == Outcome.KILLED:
        return RunState(State.KILLED, str(claim.get("detail") or ""))
    if claim.get("owner"):
        return RunState(State.KILLED, f"its launcher died: {owner_text(claim)}")
    if (run_dir / CHECKPOINT).exists():
        return RunState(State.PAUSED, "stopped with a checkpoint")
    return RunState(State.MISSING)


def owner_text(claim: Mapping[str, Any]) -> str:
    """Describe the owner of a claim: process, host, and cluster job."""
    owner = claim.get("owner") or {}
    job = f", job {claim['job']}" if claim.get("job") else ""
    return f"process {owner.get('pid', '?')} on {owner.get('host', '?')}{job}"


def _is_older(failure: Path, claim: Mapping[str, Any]) -> bool:
    """Whether the failure belongs to an attempt before the one that the claim is about."""
    return failure.stat().st_mtime < claim.get("since", 0)


@dataclass(frozen=True)
class RunRecord:
    """One line of ``runs.jsonl``: a run that a sweep asks for; ``in_grid`` is false if only an earlier version of the grid did."""

    run_id: str
    model: str
    dataset: str
    seed: int
    split_seed: int
    params: Mapping[str, Any]
    in_grid: bool = True

    def settings(self, common: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything that the run sets; ``common`` is what all runs of its sweep share."""
        return {**common, **self.params, "seed": self.seed}

    def line(self) -> dict[str, Any]:
        """Return the JSON object to write; ``in_grid`` only where it is false."""
        content = dict(vars(self))
        if self.in_grid:
            del content["in_grid"]
        return content

    @classmethod
    def parse(cls, content: Any) -> RunRecord:
        """Check one line, and ignore fields that it does not know.

        Raises:
            ValueError: The line is not a run record.
        """
        try:
            fields = {name: content[name] for name in ("run_id", "model", "dataset", "seed", "split_seed", "params")}
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a run record: {_shown(content)}") from error
        names = all(isinstance(fields[name], str) for name in ("run_id", "model", "dataset"))
        numbers = all(type(fields[name]) is int for name in ("seed", "split_seed"))
        if not names or not numbers or not isinstance(fields["params"], dict) or os.sep in fields["run_id"]:
            raise ValueError(f"not a run record: {_shown(content)}")
        return cls(**fields, in_grid=bool(content.get("in_grid", True)))


def read_run_records(path: Path) -> tuple[list[RunRecord], int]:
    """Read ``runs.jsonl``; return the records and the number of damaged lines, which are skipped.

    Raises:
        ResultsError: Something else than a file is in its place, or it is too large.
    """
    try:
        data = read_bytes(path, MAX_LINES_BYTES)
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    records = []
    damaged = 0
    for line in io.BytesIO(data):
        try:
            records.append(RunRecord.parse(parse_json(line)))
        except ValueError:
            damaged += 1
    return records, damaged


def damaged_lines_text(path: Path, damaged: int) -> str:
    """Describe damaged lines of ``runs.jsonl`` and how to restore them."""
    lines = "1 damaged line" if damaged == 1 else f"{damaged} damaged lines"
    return f"{path} has {lines}, skipped; rerun the same `lcat sweep` command to restore the file"


def states_in_order(states: Iterable[State]) -> list[State]:
    """Sort states as they are listed everywhere."""
    order = list(State)
    return sorted(set(states), key=order.index)
