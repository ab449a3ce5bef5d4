"""Files that are either whole or not there."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Writes beside ``path``, forces it to the disk, and renames it into place.

    A file name that is not text (bytes that the locale cannot decode) is written with escapes, as JSON and YAML have them.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.partial")
    try:
        with open(partial, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        error.filename = str(path)  # a full disk gives no name, the others that of the partial file
        raise
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, content: Any, indent: int | None = 2) -> None:
    write_text(path, json.dumps(content, indent=indent, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any | None:
    """The document, or None where there is none that can be read whole."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
