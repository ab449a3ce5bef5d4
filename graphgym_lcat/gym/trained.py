"""A finished run back in Python: its network with the weights of the best epoch, and its graph."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch_geometric.data import Data, HeteroData

from graphgym_lcat.gym.files import read_json
from graphgym_lcat.gym.runner import RESULT, is_done
from graphgym_lcat.gym.settings import SettingsError, apply_settings, check_settings
from graphgym_lcat.gym.training import Training

WEIGHTS = "model.pt"


def load_run(run_dir: str | os.PathLike) -> tuple[torch.nn.Module, Data | HeteroData]:
    """The network of a run with the weights of its best epoch, in evaluation mode, and the graph that it was trained on.

    The run must have been made with ``lcat.save_model: true``. GraphGym's ``cfg`` becomes that of the run. As every network of
    GraphGym, this one changes the graph that it is given and returns a pair: ``outputs, labels = model(copy.copy(data))``.

    Raises:
        SettingsError: the run is not finished, or has kept no weights.
        DatasetError: its dataset is not there.
    """
    run_dir = Path(run_dir)
    if not is_done(run_dir):
        raise SettingsError(f"{run_dir} is no finished run: it has no {RESULT} of this version")
    if not (run_dir / WEIGHTS).is_file():
        raise SettingsError(
            f"{run_dir} has no {WEIGHTS}: run it again with `lcat.save_model true`, which keeps the weights of the best epoch"
        )
    settings = check_settings(read_json(run_dir / RESULT)["settings"])
    apply_settings(settings)
    training = Training(run_dir, settings)
    weights = torch.load(run_dir / WEIGHTS, map_location=training.device, weights_only=True)
    training.model.load_state_dict(weights)
    return training.model.eval(), training.data
