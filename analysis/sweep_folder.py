"""Folders of runs: where they are below a path, and what the grid of a sweep declares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcat_analysis.graphgym import find_graphgym_runs
from lcat_core.errors import ResultsError
from lcat_core.files import parse_json, read_bytes
from lcat_core.run_folder import RunRecord, damaged_lines_text, read_run_records
from lcat_core.strict_yaml import read_generated_yaml


@dataclass
class Sweep:
    """One folder of runs.

    Attributes:
        name: The name in the grid, else that of the folder.
        run_dirs: The folders of its runs.
        grid: The content of ``grid.yaml``; empty for runs without a grid.
        info: The content of ``sweep.json``: when the sweep began, and its versions.
        records: The runs that the grid asks for.
        superseded: Ids of runs that only an earlier version of the grid asked for.
        warnings: What is wrong with the files of the folder itself.
        rows: Runs that were read already, from a table of scores.
    """

    name: str
    path: Path
    run_dirs: list[Path]
    grid: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    records: list[RunRecord] = field(default_factory=list)
    superseded: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def expected(self) -> int | None:
        """The number of runs that the grid asks for, if the sweep recorded them."""
        return len(self.records) or None


def find_sweeps(root: Path) -> Iterator[Sweep]:
    """Find the sweeps at ``root`` and directly below it, and runs of stock GraphGym or GraphGPS at any depth.

    Stock runs in the folder of a sweep belong to it; all others are one sweep more.
    """
    folders = [root, *sorted(path for path in root.iterdir() if path.is_dir())]
    with_runs = [folder for folder in folders if (folder / "runs").is_dir()]
    stock = find_graphgym_runs(root, skipped=[folder / "runs" for folder in with_runs])
    for folder in sorted(with_runs, key=lambda path: path == root):  # the root takes what the others have left
        sweep = _open_sweep(folder)
        own = [run_dir for run_dir in stock if run_dir.is_relative_to(folder)]
        stock = [run_dir for run_dir in stock if run_dir not in own]
        sweep.run_dirs += own
        yield sweep
    if stock:
        yield Sweep(name=root.resolve().name, path=root, run_dirs=stock)


def _open_sweep(folder: Path) -> Sweep:
    grid, info = _read_mapping(folder / "grid.yaml"), _read_mapping(folder / "sweep.json")
    records, damaged = read_run_records(folder / "runs.jsonl")
    return Sweep(
        name=str(grid.get("name") or folder.resolve().name),
        path=folder,
        run_dirs=[folder / "runs" / name for name in sorted(e.name for e in os.scandir(folder / "runs") if e.is_dir())],
        grid=grid,
        info=info,
        records=[record for record in records if record.in_grid],
        superseded={record.run_id for record in records if not record.in_grid},
        warnings=[damaged_lines_text(folder / "runs.jsonl", damaged)] if damaged else [],
    )


def _read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML or JSON file; a missing file, or another kind of document, counts as empty."""
    try:
        return _mapping(read_generated_yaml(path) if path.suffix == ".yaml" else parse_json(read_bytes(path)))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ResultsError(f"{path} is not valid {path.suffix[1:].upper()}: {error}") from error


def merge_grids(sweeps: list[Sweep]) -> dict[str, Any]:
    """Merge what the grids declare: ``compare``, ``select``, ``match``, ``models`` (in order), ``axes`` and ``metrics``."""
    compare: dict[str, str] = {}
    over: list[str] = []
    by = None
    match: list[str] = []
    models: list[str] = []
    axes: dict[str, list[Any]] = {}
    metrics: dict[str, dict[str, Any]] = {}
    for sweep in sweeps:
        compare.update(_mapping(sweep.grid.get("compare")))
        select = _mapping(sweep.grid.get("select"))
        _add_new(over, _setting_keys(sweep.grid, select.get("over")))
        by = by or select.get("by")
        _add_new(match, _setting_keys(sweep.grid, sweep.grid.get("match")))
        _add_new(models, map(str, sweep.grid.get("models") or {}))
        for key, values in _mapping(sweep.grid.get("axes")).items():
            _add_new(axes.setdefault(key, []), values if isinstance(values, list) else [values])
        metrics |= {str(name): _mapping(fields) for name, fields in _mapping(sweep.grid.get("metrics")).items()}
    return {
        "compare": compare,
        "select": {"over": over, "by": by},
        "match": match,
        "models": models,
        "axes": axes,
        "metrics": metrics,
    }


def _add_new(known: list[Any], values: Any) -> None:
    known += [value for value in values if value not in known]


def _setting_keys(grid: dict[str, Any], axes: list[str] | None) -> list[str]:
    """Return the settings of some axes: an axis of mappings has its own name and sets several keys."""
    keys: list[str] = []
    for name in axes or []:
        values = _mapping(grid.get("axes")).get(name)
        mappings = [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []
        keys += [key for value in mappings for key in value] or [name]
    return list(dict.fromkeys(keys))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
