"""Loading a finished run back into Python: its network with the weights of the best epoch, and its graph."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import torch
from torch_geometric.data import Data, HeteroData

from graphgym_lcat.data.tensor_file import DamagedFile, load_tensors
from graphgym_lcat.gym.build import build, select_device
from graphgym_lcat.gym.trained_attention import LayerAttention, attention_of
from lcat_core.errors import ResultsError
from lcat_core.run_folder import RESULT, WEIGHTS, read_result


class TrainedRun(NamedTuple):
    """A trained network in evaluation mode, and its graph; unpacks as ``model, data``."""

    model: torch.nn.Module
    data: Data | HeteroData

    def attention(self) -> list[LayerAttention]:
        """Return edges, coefficients and λ of every attention layer, in order."""
        return attention_of(self.model, self.data)


def load_run(run_dir: str | os.PathLike[str]) -> TrainedRun:
    """Return the network of a run with the weights of its best epoch, in evaluation mode, and the graph it was trained on.

    The run needs ``lcat.save_model: true``. GraphGym's ``cfg`` becomes that of the run. Like every network of GraphGym, this one
    changes the graph that it receives and returns a pair: ``outputs, labels = model(copy.copy(data))``.

    Raises:
        ResultsError: The run is not finished, did not save its weights, or they are damaged.
        DatasetError: Its dataset is missing.
    """
    run_dir = Path(run_dir)
    result = read_result(run_dir)
    if result is None:
        raise ResultsError(f"{run_dir} is not a finished run: it has no {RESULT} of this version")
    if not (run_dir / WEIGHTS).is_file():
        raise ResultsError(
            f"{run_dir} has no {WEIGHTS}: repeat the run with `lcat.save_model true`, which saves the weights of the best epoch"
        )
    parts = build(result.settings)
    device = select_device()
    try:
        parts.model.load_state_dict(load_tensors(run_dir / WEIGHTS, device))
    except DamagedFile as error:
        raise ResultsError(f"{error}; repeat the run in another folder to get its weights again") from error
    except (RuntimeError, TypeError, AttributeError) as error:
        raise ResultsError(
            f"{run_dir / WEIGHTS} does not fit the network of its run: {str(error).splitlines()[0]:.200}"
        ) from error
    return TrainedRun(parts.model.eval(), parts.data.to(device))
