"""The paper's settings of a dataset, and in what a run departs from them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from lcat_analysis.run_config import read_config
from lcat_core.run_folder import CONFIG, read_result
from lcat_core.settings import Settings
from lcat_core.stock_graphgym import DEFAULTS

#: Groups of settings on which a published number depends.
_GROUPS = ("gnn.", "optim.", "dataset.split")
#: What makes the model, numbers the splits, or is chosen by validation.
_FREE = ("gnn.layer_type", "dataset.split_seed", "optim.base_lr")


def departures(run_dir: Path, dataset: str) -> dict[str, str]:
    """Return the settings of a run that are not the paper's, as text such as ``100 instead of 2500``."""
    ours = _recorded_settings(run_dir)
    paper = paper_settings(dataset)
    return {key: f"{ours[key]} instead of {value}" for key, value in paper.items() if ours.get(key, value) != value}


@cache
def paper_settings(dataset: str) -> Settings:
    """Return what the included configuration of the dataset, else that of the eleven datasets, sets."""
    own = files("lcat_configs").joinpath(f"{dataset}.yaml")
    path = own if own.is_file() else files("lcat_configs").joinpath("real.yaml")
    settings = read_config(Path(str(path)))
    return {key: value for key, value in settings.items() if key.startswith(_GROUPS) and key not in _FREE}


def _recorded_settings(run_dir: Path) -> Settings:
    """Return the settings of a run, from its configuration or, in an archive, from its result."""
    if (run_dir / CONFIG).exists():
        return read_config(run_dir / CONFIG)
    result = read_result(run_dir)
    return {} if result is None or not result.settings else {**DEFAULTS, **result.settings}
