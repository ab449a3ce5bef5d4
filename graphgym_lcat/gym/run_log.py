"""What a run leaves behind besides its results: its log, its configuration, and the reason of a failure."""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch_geometric.graphgym.config import cfg
from yacs.config import CfgNode

from lcat_core.files import open_to_append, read_json, write_json, write_text
from lcat_core.outcomes import is_disk_full
from lcat_core.run_folder import CONFIG, FAILURE, LOG

log = logging.getLogger("graphgym_lcat")


def write_config(run_dir: Path) -> None:
    """Write the complete configuration, without what depends on the process."""
    complete = {key: value for key, value in cfg.items() if key not in ("share", "params", "run_dir")}
    write_text(run_dir / CONFIG, CfgNode(complete).dump())


def write_failure(run_dir: Path, error: Exception, epoch: int | None) -> None:
    """Record an error that is being handled: its traceback, the epoch, and how many attempts have failed."""
    earlier = read_json(run_dir / FAILURE)
    attempts = earlier.get("attempts") if isinstance(earlier, dict) else 0
    content = {
        "error": f"{type(error).__name__}: {error}",
        "epoch": epoch,
        "attempts": attempts + 1 if isinstance(attempts, int) else 1,
        "traceback": traceback.format_exc(),
        **({"cause": "disk full"} if is_disk_full(error) else {}),
    }
    try:
        write_json(run_dir / FAILURE, content)
    except OSError as second:  # a full disk, for example: the first error is the one to report
        log.error("%s could not be written: %s", FAILURE, second)


class _LogHandler(logging.StreamHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore a full disk, which fails the run anyway; logging would print a traceback for every line."""


@contextmanager
def log_file(run_dir: Path) -> Iterator[None]:
    """Log to the folder of a run."""
    file = io.TextIOWrapper(open_to_append(run_dir / LOG), encoding="utf-8", errors="backslashreplace")
    handler = _LogHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        handler.close()
        file.close()
