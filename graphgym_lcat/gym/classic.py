"""``train_dict["lcat"]``: our loop for mains that build loaders, model, optimizer and scheduler themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import train_dict

from graphgym_lcat.gym.build import Parts
from graphgym_lcat.gym.history import History
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.gym.training import Training
from lcat_core.files import make_folder, write_json
from lcat_core.run_folder import RESULT


def train_lcat(
    loggers: Sequence[Any],
    loaders: Sequence[Any],
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: Any,
) -> dict[str, Any]:
    """Train ``model`` on the one graph of ``loaders[0]`` as ``lcat run`` does, but without checkpoints.

    ``loggers`` are not used: the same ``stats.json`` lines, ``lambdas.csv`` and a ``result.json`` are written to ``cfg.run_dir``.
    Returns the result: best epoch, its metrics on all splits, and λ.
    """
    run_dir = Path(cfg.run_dir)
    make_folder(run_dir)
    training = Training(Parts(next(iter(loaders[0])), model, optimizer, scheduler))
    history = History(run_dir, training)
    history.start()
    for epoch in training.epochs():
        history.add(epoch)
    history.flush()
    history.close()
    result = training.finish(run_dir)
    write_json(run_dir / RESULT, result)
    return result


register_once(train_dict, "lcat", train_lcat)
