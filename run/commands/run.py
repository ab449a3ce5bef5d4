"""`lcat run`: train one configuration, with one or several seeds."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from lcat_core.errors import LcatError, TrainingFailed, UserError
from lcat_core.metrics import metric, recorded_metrics
from lcat_core.outcomes import EXIT_PAUSED, PAUSE_SIGNALS, RunPaused, handle_signals
from lcat_core.run_folder import CHECKPOINT, FAILURE, is_done
from lcat_core.stock_graphgym import split_note
from lcat_run.lookup import find_yaml
from lcat_run.threads import let_threads_sleep, threads_for

HELP = "train one model on one dataset; rerun the same command to resume"
EXAMPLES = """\
  lcat run --cfg real.yaml dataset.name Cora
  lcat run --cfg real.yaml --repeat 3 dataset.name AmazonPhoto gnn.layer_type catconv
  lcat run --cfg my.yaml lcat.lambda1 1 lcat.lambda2 0 optim.max_epoch 500"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cfg", required=True, metavar="FILE", help="a YAML file, or the name of an included one")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="train with N seeds, starting at `seed`")
    parser.add_argument(
        "--threads",
        type=int,
        metavar="T",
        help="threads of torch (default: `num_threads` of the settings, else as many as pay on the graph)",
    )
    parser.add_argument(
        "settings", nargs=argparse.REMAINDER, metavar="KEY VALUE", help="settings that override those of the file"
    )


def execute(args: argparse.Namespace) -> int:
    for name in ("repeat", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UserError(f"--{name} must be at least 1, got {value}")
    for word in args.settings[::2]:
        if word.startswith("--"):
            raise UserError(f"options come before the settings, got {word!r} after {args.settings[0]!r}")
    path = find_yaml(args.cfg, "lcat_configs")
    with handle_signals(PAUSE_SIGNALS, _stop), handle_signals((signal.SIGINT,), _pause):
        return _execute(args, path)


def _pause(number: int, frame: FrameType | None) -> None:
    """Turn the first Ctrl-C into a pause, which writes a checkpoint; a second one ends the command at once."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("\nstopping: writing a checkpoint (again to kill)", file=sys.stderr)
    os.kill(os.getpid(), signal.SIGTERM)


def _stop(number: int, frame: FrameType | None) -> None:
    """End the command with the status of a pause if a signal arrives before training, which would write a checkpoint first."""
    print("stopped; rerun the same command to resume", file=sys.stderr)
    raise SystemExit(EXIT_PAUSED)


def _execute(args: argparse.Namespace, path: Path) -> int:
    let_threads_sleep(os.environ)
    import graphgym_lcat  # noqa: F401  (registers everything with GraphGym)
    from graphgym_lcat.gym.settings import check_settings, default_settings, parse_overrides, read_settings

    where = f" in {path}" + (" or on the command line" if args.settings else "")
    settings = check_settings({**read_settings(path), **parse_overrides(args.settings)}, where=where)
    if (note := split_note(settings, default_settings())) is not None:
        print(f"note: {note}", file=sys.stderr)
    try:
        for seed in range(settings.get("seed", 0), settings.get("seed", 0) + args.repeat):
            _train({**settings, "seed": seed}, path.stem, args.threads or settings.get("num_threads"))
    except RunPaused:
        print("paused; rerun the same command to resume from the checkpoint", file=sys.stderr)
        return EXIT_PAUSED
    return 0


def _train(settings: Mapping[str, Any], name: str, threads: int | None) -> None:
    from graphgym_lcat.gym.build import build_loop
    from graphgym_lcat.gym.runner import Run
    from graphgym_lcat.gym.runner import execute as execute_run
    from graphgym_lcat.gym.settings import default_settings
    from lcat_core.identity import run_id
    from lcat_core.models import model_name
    from lcat_run.progress import EpochProgress

    defaults = default_settings()
    model = model_name({**defaults, **settings})
    out_dir = Path(str(settings.get("out_dir", defaults["out_dir"]))) / name / "runs"
    run_dir = out_dir / run_id(model, settings, defaults)
    done_before = is_done(run_dir)
    loop = None if done_before else build_loop(settings)  # first, so that a mistake leaves no folder behind
    if threads is None and loop is not None and not (run_dir / CHECKPOINT).exists():  # a checkpoint says how many
        threads = threads_for(getattr(loop, "dataset", {}).get("edges", 0))
    run = Run(run_dir, model, settings, params={}, threads=threads)
    every = settings.get("lcat.log_every", defaults["lcat.log_every"])
    try:
        with EpochProgress(run.run_dir.name, every) as progress, _warnings_on_stderr():
            result = execute_run(run, progress.update, on_step=progress.update, loop=loop)
    except (RunPaused, OSError):
        raise
    except Exception as error:
        if isinstance(error, LcatError) and not isinstance(error, TrainingFailed):
            raise
        raise _failed(error, run.run_dir / FAILURE) from error
    _print_result(result, run.run_dir, done_before)


def _failed(error: Exception, failure: Path) -> TrainingFailed:
    first_line = (str(error).splitlines() or [""])[0]
    advice = "; try a smaller optim.base_lr" if isinstance(error, TrainingFailed) else f" ({type(error).__name__})"
    return TrainingFailed(f"{first_line}{advice}. See the traceback in {failure}")


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Show warnings of the run, for example about a damaged checkpoint; everything else goes to its log.txt only."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("lcat run: %(message)s"))
    handler.addFilter(lambda record: record.levelno == logging.WARNING)
    log = logging.getLogger("graphgym_lcat")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _print_result(result: Mapping[str, Any], run_dir: Path, done_before: bool) -> None:
    rows = recorded_metrics(result)
    metrics = "  ".join(
        f"{name} {(rows.get(name) or metric(name)).format(value)}"
        for name, value in result["test"].items()
        if name != "loss"
    )
    name, best = result["dataset"]["name"], result["best_epoch"]
    print(f"{result['model']} on {name}, seed {result['seed']}: test {metrics} (best epoch {best})")
    for number, (lambda1, lambda2) in enumerate(result["lambdas"], start=1):
        print(f"  layer {number}: λ1 {_number(lambda1)}  λ2 {_number(lambda2)}")
    print(f"  {run_dir}" + (" (was done already)" if done_before else ""))


def _number(value: float | list[float]) -> str:
    return " ".join(f"{v:.3f}" for v in value) if isinstance(value, list) else f"{value:.3f}"
