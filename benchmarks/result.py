"""The document that every benchmark returns, prints as a table, draws, and writes as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lcat_benchmarks.measure import machine

SCHEMA = 1

Row = dict[str, Any]
Result = dict[str, Any]
#: Receives everything that is measured so far; a complete comparison takes long.
Keep = Callable[[Result], None]
#: Receives a description of each step.
Progress = Callable[[str], None]


def new_result(kind: str, settings: Row) -> Result:
    """Return a document without measurements."""
    return {"schema": SCHEMA, "kind": kind, "machine": machine(), "settings": settings, "measurements": []}


def ignore(_: object) -> None:
    """Do nothing with progress or with a result so far."""


def write_result(result: Result, folder: Path) -> None:
    """Write ``<kind>.json``."""
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{result['kind']}.json").write_text(text, encoding="utf-8")


def read_result(kind: str, folder: Path) -> Result | None:
    """Read ``<kind>.json``, if it exists."""
    path = folder / f"{kind}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
