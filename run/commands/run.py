"""`lcat run`: trains one configuration, with one or several seeds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from lcat_run.errors import UserError
from lcat_run.lookup import find_yaml

HELP = "train one model on one dataset; started again, it goes on where it stopped"
EXAMPLES = """\
  lcat run --cfg real.yaml dataset.name Cora
  lcat run --cfg real.yaml --repeat 3 dataset.name AmazonPhoto gnn.layer_type catconv
  lcat run --cfg my.yaml lcat.lambda1 1 lcat.lambda2 0 optim.max_epoch 500"""

EXIT_PAUSED = 75


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cfg", required=True, metavar="FILE", help="a YAML file, or the name of one that comes along")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="train with N seeds, from `seed` on")
    parser.add_argument("--threads", type=int, metavar="T", help="threads of torch (default: as many as it takes)")
    parser.add_argument(
        "settings", nargs=argparse.REMAINDER, metavar="KEY VALUE", help="settings over those of the file"
    )


def execute(args: argparse.Namespace) -> int:
    for name in ("repeat", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UserError(f"--{name} must be at least 1, got {value}")
    path = find_yaml(args.cfg, "lcat_configs")

    import graphgym_lcat  # noqa: F401  (registers everything with GraphGym)
    from graphgym_lcat.data.errors import DatasetError
    from graphgym_lcat.gym.runner import RunBusy, RunPaused, TrainingFailed
    from graphgym_lcat.gym.settings import SettingsError, check_settings, parse_overrides, read_settings

    try:
        where = f" in {path}" + (" or on the command line" if args.settings else "")
        settings = check_settings({**read_settings(path), **parse_overrides(args.settings)}, where=where)
        for seed in range(settings.get("seed", 0), settings.get("seed", 0) + args.repeat):
            _train({**settings, "seed": seed}, path.stem, args.threads)
    except (SettingsError, DatasetError, RunBusy) as error:
        raise UserError(str(error)) from error
    except RunPaused:
        print("paused; the same command goes on from the checkpoint", file=sys.stderr)
        return EXIT_PAUSED
    except TrainingFailed as error:
        print(
            f"lcat run: {error}; try a smaller optim.base_lr. failed.json in the run's folder has the rest",
            file=sys.stderr,
        )
        return 1
    return 0


def _train(settings: Mapping[str, object], name: str, threads: int | None) -> None:
    from graphgym_lcat.gym.runner import Run
    from graphgym_lcat.gym.runner import execute as execute_run
    from graphgym_lcat.gym.settings import default_settings
    from lcat_run.identity import run_id
    from lcat_run.models import model_name
    from lcat_run.progress import EpochProgress

    defaults = default_settings()
    model = model_name({**defaults, **settings})
    out_dir = Path(str(settings.get("out_dir", defaults["out_dir"]))) / name / "runs"
    run = Run(out_dir / run_id(model, settings, defaults), model, settings, params={}, threads=threads)
    every = settings.get("lcat.log_every", defaults["lcat.log_every"])
    with EpochProgress(run.run_dir.name, every) as progress:
        result = execute_run(run, progress.update)
    _print_result(result, run.run_dir)


def _print_result(result: Mapping, run_dir: Path) -> None:
    metrics = "  ".join(f"{name} {100 * value:.2f}" for name, value in result["test"].items() if name != "loss")
    name, best = result["dataset"]["name"], result["best_epoch"]
    print(f"{result['model']} on {name}, seed {result['seed']}: test {metrics} (best epoch {best})")
    for number, (lambda1, lambda2) in enumerate(result["lambdas"]):
        print(f"  layer {number}: λ1 {_number(lambda1)}  λ2 {_number(lambda2)}")
    print(f"  {run_dir}")


def _number(value: float | list[float]) -> str:
    return " ".join(f"{v:.3f}" for v in value) if isinstance(value, list) else f"{value:.3f}"
