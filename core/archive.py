"""Finished runs of one or several sweeps in one small file, to publish, to merge, or to continue a sweep elsewhere.

An archive is JSON Lines, compressed if its name ends in ``.gz``: a header, then one line per run with the complete
``result.json`` and, on request, the recorded curves. Runs are sorted by id and nothing depends on time or place, so equal results
give equal bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcat_core.errors import ResultsError
from lcat_core.files import make_folder, parse_json, read_bytes, write_atomically, write_text
from lcat_core.run_folder import (
    LAMBDAS,
    RESULT,
    SPLITS,
    STATS,
    RunResult,
    damaged_lines_text,
    load_result,
    parse_result,
    read_run_records,
)
from lcat_core.strict_yaml import read_generated_yaml

FORMAT = "lcat-results"
SCHEMA = 1
#: Names of archives; anything else is a folder or a table.
SUFFIXES = (".jsonl", ".jsonl.gz")
_MAX_BYTES = 4 * 2**30
#: Run ids become names of folders.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class ArchivedRun:
    """One run: its result, its curves (file name → text) if they were exported, and the name of its sweep."""

    result: RunResult
    curves: Mapping[str, str] = field(default_factory=dict)
    sweep: str = ""


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
    if bad := [name for name in grids if name in ("", ".", "..") or "/" in name or "\0" in name]:
        raise ResultsError(f"{path}, line 1: {bad[0]!r} is not the name of a sweep")
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


def collect_runs(folder: Path, with_curves: bool = False) -> tuple[Archive, list[str]]:
    """Collect the finished runs of a sweep's folder; also return what was skipped and why, one sentence each.

    Runs that only an earlier version of the grid asked for are left out. The archive names no folder and no host.

    Raises:
        ResultsError: The grid, or the list of runs, cannot be read.
    """
    records, damaged = read_run_records(folder / "runs.jsonl")
    skipped = [damaged_lines_text(folder / "runs.jsonl", damaged)] if damaged else []
    superseded = {record.run_id for record in records if not record.in_grid}
    try:
        grid = read_generated_yaml(folder / "grid.yaml")
    except FileNotFoundError:
        grid = {}
    except (OSError, ValueError) as error:
        raise ResultsError(f"{folder / 'grid.yaml'} cannot be read: {error}") from error
    grid = grid if isinstance(grid, dict) else {}
    name = str(grid.get("name") or folder.resolve().name)
    runs: dict[str, ArchivedRun] = {}
    for run_dir in sorted((folder / "runs").iterdir()):
        if run_dir.name in superseded or not run_dir.is_dir():
            continue
        try:
            result = load_result(run_dir)
        except OSError:
            continue  # not finished
        except ResultsError as error:
            skipped.append(str(error))
            continue
        if result.run_id != run_dir.name:
            skipped.append(f"{run_dir / RESULT} belongs to another run, {result.run_id}")
            continue
        result = parse_result(_without_host(result.document), str(run_dir))
        curves = _read_curves(run_dir) if with_curves else {}
        runs[result.run_id] = ArchivedRun(result, curves, name)
    return Archive({name: grid}, runs), skipped


def _without_host(document: Mapping[str, Any]) -> dict[str, Any]:
    timing = document.get("timing")
    kept = {key: value for key, value in timing.items() if key != "host"} if isinstance(timing, dict) else {}
    return {**document, "timing": kept}


def _read_curves(run_dir: Path) -> dict[str, str]:
    names = [LAMBDAS, *(f"{split}/{STATS}" for split in SPLITS)]
    return {name: read_bytes(run_dir / name).decode() for name in names if (run_dir / name).is_file()}


def restore_run(run: ArchivedRun, run_dir: Path, durable: bool = True) -> None:
    """Write an archived run as a folder, ``result.json`` last; everything in it is as the run wrote it, the host aside.

    Args:
        durable: Force every file to the disk, as a run does; not needed in a temporary folder.
    """
    make_folder(run_dir)
    allowed = {LAMBDAS, *(f"{split}/{STATS}" for split in SPLITS)}
    files = {name: text for name, text in run.curves.items() if name in allowed}
    for name, text in {**files, RESULT: _dump(run.result.document) + "\n"}.items():
        make_folder((run_dir / name).parent)
        if durable:
            write_text(run_dir / name, text)
        else:
            (run_dir / name).write_text(text, encoding="utf-8")


def unpack_archive(archive: Archive, folder: Path) -> None:
    """Write the runs as one folder per sweep, as far as the grids tell them apart; meant for a temporary folder."""
    for number, (name, grid) in enumerate(archive.grids.items()):
        sweep = folder / name
        runs = sweep / "runs"
        runs.mkdir(parents=True)
        (sweep / "grid.yaml").write_text(json.dumps(grid), encoding="utf-8")  # JSON is YAML
        for run_id, run in archive.runs.items():
            if run.sweep == name or (not run.sweep and number == 0):
                restore_run(run, runs / run_id, durable=False)


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
    grids = {name: archive.grids[name] for name in sorted(archive.grids)}
    header = {"format": FORMAT, "schema": SCHEMA, "runs": len(archive.runs), "grids": grids}
    yield _dump(header, sort_keys=False)  # the order of models in a grid is that of the tables
    for run_id in sorted(archive.runs):
        run = archive.runs[run_id]
        line: dict[str, Any] = {"result": run.result.document, "sweep": run.sweep}
        if run.curves:
            line["curves"] = dict(run.curves)
        yield _dump(line)


def _dump(content: Any, sort_keys: bool = True) -> str:
    return json.dumps(content, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


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
    curves, sweep = content.get("curves", {}), content.get("sweep", "")
    if not isinstance(sweep, str) or not isinstance(curves, dict):
        raise ResultsError(f"{where}: `sweep` must be text and `curves` an object")
    if not _PLAIN_NAME.fullmatch(result.run_id):
        raise ResultsError(f"{where}: {result.run_id!r} is not the id of a run")
    if not all(isinstance(name, str) and isinstance(text, str) for name, text in curves.items()):
        raise ResultsError(f"{where}: `curves` must map file names to text")
    return ArchivedRun(result, curves, sweep)
