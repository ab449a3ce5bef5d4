"""One run, from checked settings to ``result.json``: it claims its folder and resumes from its checkpoint."""

from __future__ import annotations

import contextlib
import logging
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.graphgym.config import cfg

from graphgym_lcat.gym.build import build_loop
from graphgym_lcat.gym.checkpoint import load_checkpoint, remove_checkpoints, save_checkpoint, unusable
from graphgym_lcat.gym.history import History
from graphgym_lcat.gym.loops import Loop, ResumableLoop, Step
from graphgym_lcat.gym.metrics import unlisted_rows
from graphgym_lcat.gym.run_log import log_file, write_config, write_failure
from graphgym_lcat.gym.settings import import_plugins
from lcat_core.claims import Claim
from lcat_core.errors import RunBusy, SettingsError
from lcat_core.files import make_folder, remove_partial_files, write_json
from lcat_core.outcomes import PAUSE_SIGNALS, Outcome, RunPaused, handle_signals, is_disk_full
from lcat_core.run_folder import RESULT, SCHEMA, is_done, load_result, why_unusable
from lcat_core.versions import versions

#: Called after every epoch.
Progress = Callable[[Loop], None]
#: Called after every step of a loop that reports steps within its epochs.
StepProgress = Callable[[Loop, Step], None]
log = logging.getLogger("graphgym_lcat")


@dataclass(frozen=True)
class Run:
    """What to run, and where.

    Attributes:
        run_dir: Its folder; the name is the run's id.
        model: Its name in tables.
        settings: Everything that differs from the defaults, flat and checked, including the seed.
        params: What a grid varies (model and axes), flat; stored in ``result.json`` for the tables.
        threads: Threads of torch; None leaves their number unchanged.
    """

    run_dir: Path
    model: str
    settings: Mapping[str, Any]
    params: Mapping[str, Any]
    threads: int | None = None


def execute(
    run: Run,
    on_epoch: Progress | None = None,
    *,
    on_step: StepProgress | None = None,
    loop: Loop | None = None,
    claimed: bool = False,
) -> Mapping[str, Any]:
    """Start or resume a run and return its result; a finished run is not repeated.

    Args:
        run: What to run, and where.
        on_epoch: Called with the loop after every epoch.
        on_step: Called with the loop and the step after every step within an epoch.
        loop: The loop of the run, if :func:`build_loop` has already built it from the same settings.
        claimed: Whether the caller holds the claim of the run's folder; otherwise it is taken here.

    Raises:
        LcatError: The run cannot start, is busy, or fails; ``failed.json`` records why it failed.
        RunPaused: A signal asked it to stop, and its checkpoint is written.
    """
    make_folder(run.run_dir.parent)
    make_folder(run.run_dir)
    with contextlib.nullcontext() if claimed else _claim(run.run_dir):
        remove_partial_files(run.run_dir)
        if is_done(run.run_dir):
            remove_checkpoints(run.run_dir)
            return load_result(run.run_dir).document
        problem = why_unusable(run.run_dir)
        if problem is not None:
            raise SettingsError(
                f"{problem}; it is not replaced: choose another `out_dir`, or use the version that wrote it",
                "out_dir",
            )
        with log_file(run.run_dir):
            return _attempt(run, on_epoch, on_step, loop)


@contextmanager
def _claim(run_dir: Path) -> Iterator[None]:
    """Hold the claim of a run, and record how the attempt ended."""
    claim = Claim.take(run_dir)
    if claim is None:
        raise RunBusy(f"{run_dir} is being executed by another process")
    outcome, detail = Outcome.KILLED, "interrupted"
    try:
        yield
        outcome, detail = Outcome.DONE, ""
    except RunPaused:
        outcome, detail = Outcome.PAUSED, ""
        raise
    except Exception as error:
        outcome = Outcome.KILLED if is_disk_full(error) else Outcome.FAILED
        detail = f"{type(error).__name__}: {error}"
        raise
    finally:
        with contextlib.suppress(OSError):  # a full disk has already been reported
            claim.release(outcome, detail)


def _attempt(run: Run, on_epoch: Progress | None, on_step: StepProgress | None, loop: Loop | None) -> dict[str, Any]:
    history = None
    try:
        import_plugins(run.settings)
        checkpoint = load_checkpoint(run.run_dir, run.settings)
        threads = _set_threads(run.threads, checkpoint)
        loop = loop or build_loop(run.settings)
        cfg.run_dir, cfg.num_threads = str(run.run_dir), threads
        write_config(run.run_dir)
        history = History(run.run_dir, loop)
        _start(loop, history, checkpoint, run.run_dir)
        _train(run, loop, history, on_epoch, on_step)
        history.flush()
        history.close()
        result = _result(run, loop)
        write_json(run.run_dir / RESULT, result)
        remove_checkpoints(run.run_dir)
        log.info("done: best epoch %d, test %s", result["best_epoch"], result["test"])
        return result
    except RunPaused:
        raise
    except Exception as error:
        log.error("failed: %s", error)
        write_failure(run.run_dir, error, None if loop is None else loop.epoch)
        raise
    finally:
        if history is not None:
            history.close()


def _set_threads(threads: int | None, checkpoint: Mapping[str, Any] | None) -> int:
    """Set the number of threads; sums depend on it, so a resumed run keeps the number that it started with."""
    if checkpoint is not None:
        started_with = checkpoint["threads"]
        if threads not in (None, started_with):
            log.warning("the run started with %d threads and resumes with them, not with %d", started_with, threads)
        threads = started_with
    if threads is not None and threads != torch.get_num_threads():
        torch.set_num_threads(threads)
    return torch.get_num_threads()


def _start(loop: Loop, history: History, checkpoint: Mapping[str, Any] | None, run_dir: Path) -> None:
    if checkpoint is None or not isinstance(loop, ResumableLoop):
        history.start()
        return
    try:
        loop.resume(checkpoint)
        history.start(loop.epoch, checkpoint["positions"])
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise unusable(run_dir, f"{type(error).__name__}: {str(error).splitlines()[0]}") from error
    log.info("resuming after epoch %d of %d", loop.epoch, loop.max_epoch)


def _train(run: Run, loop: Loop, history: History, on_epoch: Progress | None, on_step: StepProgress | None) -> None:
    saved = time.monotonic()
    with _pause_requests() as requested:
        for item in loop.epochs():
            history.add(item)
            if isinstance(item, Step):
                if on_step is not None:
                    on_step(loop, item)
            elif on_epoch is not None:
                on_epoch(loop)
            if requested:
                _save(run, loop, history)
                within = f" and {item.done} of {item.total} steps" if isinstance(item, Step) else ""
                log.info("paused after epoch %d of %d%s", loop.epoch, loop.max_epoch, within)
                raise RunPaused
            if time.monotonic() - saved >= cfg.lcat.checkpoint_seconds:
                _save(run, loop, history)
                saved = time.monotonic()


def _save(run: Run, loop: Loop, history: History) -> None:
    if isinstance(loop, ResumableLoop):
        own = {"positions": history.flush(), "settings": dict(run.settings), "threads": torch.get_num_threads()}
        save_checkpoint(run.run_dir, {**loop.state(), **own})


@contextmanager
def _pause_requests() -> Iterator[list[int]]:
    """Collect the signals that ask for a pause, instead of dying from them."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # the caller handles signals
        yield received
        return
    with handle_signals(PAUSE_SIGNALS, lambda number, _: received.append(number)):
        yield received


def _result(run: Run, loop: Loop) -> dict[str, Any]:
    outcome = loop.finish(run.run_dir)
    rows = unlisted_rows(outcome["test"])
    return {
        "schema": SCHEMA,
        "run_id": run.run_dir.name,
        "model": run.model,
        "seed": cfg.seed,
        "split_seed": cfg.dataset.split_seed,
        "params": dict(run.params),
        "settings": dict(run.settings),
        **outcome,
        **({"metrics": rows} if rows else {}),
        "versions": versions(),
        "timing": {"seconds": loop.seconds, "threads": torch.get_num_threads(), "host": platform.node()},
    }
