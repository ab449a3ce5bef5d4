"""Finished runs of one or several sweeps in one small file, to publish, to merge, or to continue a sweep elsewhere.

An archive is JSON Lines, compressed if its name ends in ``.gz``: a header, then one line per run with the complete
``result.json`` and, on request, the recorded curves. Runs are sorted by id and nothing depends on time or place, so equal results
give equal bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcat_core.errors import ResultsError
from lcat_core.files import parse_json, read_bytes, write_atomically
from lcat_core.run_folder import RunResult, parse_result

FORMAT = "lcat-results"
SCHEMA = 1
#: Names of archives; anything else is a folder or a table.
SUFFIXES = (".jsonl", ".jsonl.gz")
_MAX_BYTES = 4 * 2**30


@dataclass(frozen=True)
class ArchivedRun:
    """One run: its result, the dataset's name in tables, and its curves (file name → text) if they were exported."""

    result: RunResult
    dataset: str
    curves: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Archive:
    """What a file holds: the grids by sweep name, and the runs by id."""

    grids: Mapping[str, Mapping[str, Any]]
    runs: Mapping[str, ArchivedRun]


def is_archive(path: Path) -> bool:
    """Whether a name is that of an archive."""
    return path.name.endswith(SUFFIXES)


def write_archive(path: Path, archive: Archive) -> None:
    """Write the runs, sorted; the file appears complete or not at all."""
    text = "".join(f"{line}\n" for line in _lines(archive))
    data = text.encode()
    if path.name.endswith(".gz"):
        buffer = io.BytesIO()
        with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, filename="") as file:
            file.write(data)
        data = buffer.getvalue()
    write_atomically(path, lambda file: file.write(data))


def read_archive(path: Path) -> Archive:
    """Read and check an archive.

    Raises:
        ResultsError: The file is missing, damaged, incomplete, or not an archive of this version.
    """
    lines = iter(_read_lines(path))
    header = _parse(next(lines, b"{}"), f"{path}, line 1")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ResultsError(f"{path} is not an archive of results: its first line must say {FORMAT!r}")
    if header.get("schema") != SCHEMA:
        raise ResultsError(f"{path} has schema {header.get('schema')!r}, but this version reads schema {SCHEMA}")
    grids = header.get("grids")
    if not isinstance(grids, dict) or not all(isinstance(grid, dict) for grid in grids.values()):
        raise ResultsError(f"{path}, line 1: `grids` must map names of sweeps to grids")
    runs: dict[str, ArchivedRun] = {}
    for number, line in enumerate(lines, start=2):
        where = f"{path}, line {number}"
        run = _parse_run(_parse(line, where), where)
        if run.result.run_id in runs:
            raise ResultsError(f"{where}: the run {run.result.run_id} appears twice")
        runs[run.result.run_id] = run
    if header.get("runs") != len(runs):
        raise ResultsError(f"{path} is incomplete: it announces {header.get('runs')!r} runs and holds {len(runs)}")
    return Archive(grids, runs)


def merge_archives(archives: Iterable[tuple[str, Archive]]) -> Archive:
    """Join archives (name for messages, archive).

    Raises:
        ResultsError: They disagree about a run, or about the grid of a sweep.
    """
    grids: dict[str, Mapping[str, Any]] = {}
    runs: dict[str, ArchivedRun] = {}
    for name, archive in archives:
        for run_id, run in archive.runs.items():
            if run_id in runs and _scores(runs[run_id].result) != _scores(run.result):
                raise ResultsError(f"{name} has other numbers for the run {run_id} than another source")
            runs.setdefault(run_id, run)
        for sweep, grid in archive.grids.items():
            if grids.setdefault(sweep, grid) != grid:
                raise ResultsError(f"{name} has another grid for the sweep {sweep!r} than another source")
    return Archive(grids, runs)


def _scores(result: RunResult) -> tuple[object, ...]:
    return result.best_epoch, sorted((k, repr(v)) for k, v in result.metrics.items() if not k.startswith("train."))


def _lines(archive: Archive) -> Iterator[str]:
    header = {"format": FORMAT, "schema": SCHEMA, "runs": len(archive.runs), "grids": archive.grids}
    yield _dump(header)
    for run_id in sorted(archive.runs):
        run = archive.runs[run_id]
        line: dict[str, Any] = {"result": run.result.document, "dataset": run.dataset}
        if run.curves:
            line["curves"] = dict(run.curves)
        yield _dump(line)


def _dump(content: Any) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _read_lines(path: Path) -> list[bytes]:
    try:
        data = read_bytes(path, _MAX_BYTES)
        if path.name.endswith(".gz"):
            data = _decompress(data, path)
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror or error}") from error
    return data.splitlines()


def _decompress(data: bytes, path: Path) -> bytes:
    """Decompress at most ``_MAX_BYTES``: a small file can pretend to be a huge one."""
    worker = zlib.decompressobj(wbits=31)
    try:
        text = worker.decompress(data, _MAX_BYTES)
    except zlib.error as error:
        raise ResultsError(f"{path} is damaged: {error}") from error
    if worker.unconsumed_tail:
        raise ResultsError(f"{path} is larger than {_MAX_BYTES} bytes when decompressed")
    if not worker.eof:
        raise ResultsError(f"{path} is incomplete: the compressed data ends early")
    return text


def _parse(line: bytes, where: str) -> Any:
    try:
        return parse_json(line)
    except ValueError as error:
        raise ResultsError(f"{where} is not valid JSON: {error}") from error


def _parse_run(content: Any, where: str) -> ArchivedRun:
    if not isinstance(content, dict):
        raise ResultsError(f"{where} must hold a JSON object")
    result = parse_result(content.get("result"), where)
    dataset = content.get("dataset", result.dataset["name"])
    curves = content.get("curves", {})
    if not isinstance(dataset, str) or not isinstance(curves, dict):
        raise ResultsError(f"{where}: `dataset` must be text and `curves` an object")
    if not all(isinstance(name, str) and isinstance(text, str) for name, text in curves.items()):
        raise ResultsError(f"{where}: `curves` must map file names to text")
    return ArchivedRun(result, dataset, curves)
