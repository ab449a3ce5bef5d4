"""One run from its settings to ``result.json``: claims its folder, goes on from its checkpoint, tells what happened."""

from __future__ import annotations

import logging
import platform
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from torch_geometric.graphgym.config import cfg
from yacs.config import CfgNode

from graphgym_lcat.data.errors import DatasetError
from graphgym_lcat.gym.batches import SamplerMissing
from graphgym_lcat.gym.checkpoint import load_checkpoint, remove_checkpoints
from graphgym_lcat.gym.csbm import SyntheticPoint
from graphgym_lcat.gym.files import read_json, remove_partial_files, write_atomically, write_json
from graphgym_lcat.gym.settings import Settings, SettingsError, apply_settings, check_settings, default_settings
from graphgym_lcat.gym.training import Training, TrainingFailed

SCHEMA = 1
LOOPS = {"train": Training, "csbm": SyntheticPoint}
RESULT = "result.json"
PAUSE_SIGNALS = (signal.SIGTERM, signal.SIGUSR2)
# Keys, and prefixes of keys, that may differ from the checkpoint's: those that do not count in a run's id, the device aside.
_FREE = (
    "out_dir",
    "run_dir",
    "cfg_dest",
    "dataset.dir",
    "num_threads",
    "num_workers",
    "gpu_mem",
    "print",
    "tensorboard_",
    "lcat.log_every",
    "lcat.checkpoint_seconds",
    "lcat.plugins",
    "train.ckpt_period",
    "train.ckpt_clean",
    "train.enable_ckpt",
    "train.auto_resume",
)

Loop = Training | SyntheticPoint
Progress = Callable[[Loop], None]
log = logging.getLogger("graphgym_lcat")


class RunPaused(Exception):
    """A signal asked the run to stop; its checkpoint is written."""


class RunBusy(RuntimeError):
    """Another process works on this run."""


@dataclass(frozen=True)
class Run:
    """What is to be run, and where.

    Attributes:
        run_dir: Its folder; the name is the run's id.
        model: Its name in tables.
        settings: Everything that differs from the defaults, flat, the seed included.
        params: What a grid varies (model and axes), flat; kept in ``result.json`` for the tables.
        threads: Of torch; None leaves them as they are.
    """

    run_dir: Path
    model: str
    settings: Mapping[str, Any]
    params: Mapping[str, Any]
    threads: int | None = None


def is_done(run_dir: Path) -> bool:
    """Whether the folder has a whole ``result.json``, the only proof of a finished run."""
    result = read_json(run_dir / RESULT)
    return isinstance(result, dict) and result.get("schema") == SCHEMA


def _refuse_other_format(path: Path) -> None:
    """A whole result that is not of this version's format is not for this one to replace."""
    result = read_json(path)
    if result is None:  # none, or a part of one
        return
    found = result.get("schema", "unknown") if isinstance(result, dict) else "unknown"
    raise SettingsError(
        f"{path} has format {found}, this version writes format {SCHEMA} and will not replace it; "
        "choose another `out_dir`, or use the version that wrote it",
        "out_dir",
    )


def prepare(settings: Mapping[str, Any]) -> None:
    """Builds all that a run with these settings needs, without its folder; the dataset is kept for the run.

    Raises ``SettingsError`` or ``DatasetError`` for what would keep it from starting.
    """
    settings = check_settings(settings)
    apply_settings(settings)
    if cfg.lcat.loop != "train":
        return
    try:
        Training(Path(), settings)
    except (SettingsError, DatasetError):
        raise
    except (ValueError, RuntimeError, MemoryError, SamplerMissing) as error:  # what layers, torch and NumPy refuse
        raise SettingsError(f"the run cannot start: {str(error).splitlines()[0]}") from error


def execute(run: Run, on_epoch: Progress | None = None) -> dict[str, Any]:
    """Runs, or goes on with, ``run``; returns its result. A finished run is not repeated.

    Raises:
        SettingsError: a setting cannot be.
        RunPaused: a signal asked to stop, the checkpoint is written.
        RunBusy: another process works on it.
        TrainingFailed, OSError, …: the run failed; ``failed.json`` says why.
    """
    settings = check_settings(run.settings)
    run.run_dir.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(run.run_dir / ".lock", timeout=0):
            remove_partial_files(run.run_dir)
            if is_done(run.run_dir):
                remove_checkpoints(run.run_dir)
                return read_json(run.run_dir / RESULT)
            _refuse_other_format(run.run_dir / RESULT)
            with _log_file(run.run_dir / "log.txt"):
                return _execute_locked(run, settings, on_epoch)
    except Timeout as error:
        raise RunBusy(f"{run.run_dir} is being run by another process") from error


def _execute_locked(run: Run, settings: Settings, on_epoch: Progress | None) -> dict[str, Any]:
    training = None
    try:
        apply_settings({**settings, "run_dir": str(run.run_dir)})
        checkpoint = _usable_checkpoint(run.run_dir, settings)
        _set_threads(run.threads, checkpoint)
        _write_config(run.run_dir)
        training = LOOPS[cfg.lcat.loop](run.run_dir, settings)
        _start(training, checkpoint, run.run_dir)
        if checkpoint is not None:
            log.info("going on after epoch %d of %d", training.epoch, training.max_epoch)
        _train(training, on_epoch)
        result = _result(run, settings, training)
        write_json(run.run_dir / RESULT, result)
        remove_checkpoints(run.run_dir)
        log.info("done: best epoch %d, test %s", result["best_epoch"], result["test"])
        return result
    except RunPaused:
        log.info("paused after epoch %d of %d", training.epoch, training.max_epoch)
        raise
    except Exception as error:
        log.error("failed: %s", error)
        _write_failure(run.run_dir, error, None if training is None else training.epoch)
        raise
    finally:
        if training is not None:
            training.close()


def _train(training: Loop, on_epoch: Progress | None) -> None:
    saved = time.monotonic()
    with _pause_requests() as requested:
        for _ in training.epochs():
            if on_epoch is not None:
                on_epoch(training)
            if requested:
                training.save()
                raise RunPaused
            if time.monotonic() - saved >= cfg.lcat.checkpoint_seconds:
                training.save()
                saved = time.monotonic()


@contextmanager
def _pause_requests() -> Iterator[list[int]]:
    """Collects SIGTERM and SIGUSR2 instead of dying by them; a cluster sends them before it kills."""
    received: list[int] = []
    try:
        earlier = {number: signal.signal(number, lambda n, _: received.append(n)) for number in PAUSE_SIGNALS}
    except ValueError:  # not in the main thread: the caller looks after signals
        earlier = {}
    try:
        yield received
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _usable_checkpoint(run_dir: Path, settings: Settings) -> dict[str, Any] | None:
    checkpoint, complaints = load_checkpoint(run_dir)
    for complaint in complaints:
        log.warning("%s", complaint)
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, dict) or not {"settings", "threads"} <= checkpoint.keys():
        raise _does_not_fit(run_dir, "it does not say of which run it is")
    defaults = default_settings()
    then, now = ({**defaults, **s} for s in (checkpoint["settings"], settings))
    for key in sorted(now.keys() | then.keys()):
        if key.startswith(_FREE) or then.get(key) == now.get(key):
            continue
        raise SettingsError(
            f"the checkpoint in {run_dir} belongs to other settings: `{key}` is {then.get(key)!r} there and "
            f"{now.get(key)!r} here; use another output folder, or delete the checkpoint",
            key,
        )
    return checkpoint


def _start(training: Loop, checkpoint: dict[str, Any] | None, run_dir: Path) -> None:
    try:
        training.start(checkpoint)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if checkpoint is None:
            raise
        raise _does_not_fit(run_dir, f"{type(error).__name__}: {str(error).splitlines()[0]}") from error


def _does_not_fit(run_dir: Path, reason: str) -> SettingsError:
    return SettingsError(
        f"the checkpoint in {run_dir} cannot be used by this version ({reason}); use the version that wrote it, "
        "or delete the checkpoint and the run begins again"
    )


def _set_threads(threads: int | None, checkpoint: dict[str, Any] | None) -> None:
    """Sums depend on the number of threads, so a run ends with the number it began with."""
    if checkpoint is not None:
        began_with = checkpoint["threads"]
        if threads not in (None, began_with):
            log.warning("the run began with %d threads and goes on with them, not with %d", began_with, threads)
        threads = began_with
    if threads is not None and threads != torch.get_num_threads():
        torch.set_num_threads(threads)
    cfg.num_threads = torch.get_num_threads()  # for config.yaml


def _result(run: Run, settings: Settings, training: Loop) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run_id": run.run_dir.name,
        "model": run.model,
        "seed": cfg.seed,
        "split_seed": cfg.dataset.split_seed,
        "params": dict(run.params),
        "settings": settings,
        **training.finish(),
        "versions": versions(),
        "timing": {"seconds": training.seconds, "threads": torch.get_num_threads(), "host": platform.node()},
    }


def versions() -> dict[str, str]:
    """What the numbers were computed with."""
    names = ("graphgym-lcat", "torch", "torch-geometric", "numpy")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def _write_config(run_dir: Path) -> None:
    complete = {key: value for key, value in cfg.items() if key not in ("share", "params", "run_dir")}
    text = CfgNode(complete).dump()
    write_atomically(run_dir / "config.yaml", lambda file: file.write(text.encode()))


def _write_failure(run_dir: Path, error: Exception, epoch: int | None) -> None:
    earlier = read_json(run_dir / "failed.json")
    attempts = earlier.get("attempts") if isinstance(earlier, dict) else 0
    content = {
        "error": f"{type(error).__name__}: {error}",
        "epoch": epoch,
        "attempts": attempts + 1 if isinstance(attempts, int) else 1,
        "traceback": traceback.format_exc(),
    }
    try:
        write_json(run_dir / "failed.json", content)
    except OSError as second:  # a full disk: the first error is the one to tell
        log.error("failed.json could not be written: %s", second)


class _LogFile(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk fails the run too, and that is told; logging would add a traceback for every line."""


@contextmanager
def _log_file(path: Path) -> Iterator[None]:
    handler = _LogFile(path, encoding="utf-8")
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


__all__ = ["Run", "RunBusy", "RunPaused", "TrainingFailed", "execute", "is_done", "prepare", "versions"]
