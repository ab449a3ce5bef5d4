"""``train_dict["lcat"]``: our loop for mains that build loaders, model, optimizer and scheduler themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import train_dict

from graphgym_lcat.gym.files import write_json
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.gym.training import Training


def train_lcat(
    loggers: Sequence[Any],
    loaders: Sequence[Any],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
) -> dict[str, Any]:
    """Trains ``model`` on the one graph of ``loaders[0]`` as ``lcat run`` does, without checkpoints.

    ``loggers`` are not used: the same ``stats.json`` lines, ``lambdas.csv`` and a ``result.json`` are written to
    ``cfg.run_dir``. Returns the result: best epoch, metrics of all splits there, λ.
    """
    data = next(iter(loaders[0]))
    run_dir = Path(cfg.run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    training = Training(run_dir, {}, parts=(data, model, optimizer, scheduler))
    training.start(None)
    for _ in training.epochs():
        pass
    result = training.finish()
    write_json(run_dir / "result.json", result)
    return result


register_once(train_dict, "lcat", train_lcat)
