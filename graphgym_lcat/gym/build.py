"""Building what a run needs from its settings: graph, network, optimizer and schedule, or the complete loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric import seed_everything
from torch_geometric.data import Data, HeteroData
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.graphgym.optim import create_optimizer, create_scheduler

from graphgym_lcat.gym.loader import dataset_title, labelled_nodes, load_graph
from graphgym_lcat.gym.loops import LOOPS, Loop
from graphgym_lcat.gym.settings import apply_settings
from lcat_core.errors import LcatError, SettingsError


@dataclass
class Parts:
    """What a training run works with."""

    data: Data | HeteroData
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any


def build_loop(settings: Mapping[str, Any]) -> Loop:
    """Make checked settings GraphGym's ``cfg`` and build the loop that they select; nothing is written.

    Raises:
        LcatError: The dataset is unavailable, the network does not fit it, or something else prevents a start.
    """
    apply_settings(settings)
    try:
        return LOOPS[cfg.lcat.loop]()
    except LcatError:
        raise
    except (ValueError, RuntimeError, MemoryError) as error:  # refused by a layer, torch or NumPy
        raise SettingsError(f"the run cannot start: {str(error).splitlines()[0]}") from error


def build(settings: Mapping[str, Any]) -> Parts:
    """Make checked settings GraphGym's ``cfg`` and build graph, network, optimizer and schedule."""
    apply_settings(settings)
    return build_from_cfg()


def build_from_cfg() -> Parts:
    """Build what ``cfg`` describes; ``cfg.seed`` is set first, so equal settings give equal weights."""
    device = select_device()
    data = load_graph(sparse=cfg.train.sampler == "full_batch")
    _check_edge_features(data)
    _share_sizes(data)
    seed_everything(cfg.seed)
    model = create_model(to_device=False).to(device)
    optimizer = _fuse(create_optimizer(model.parameters(), cfg.optim), device)
    return Parts(data, model, optimizer, create_scheduler(optimizer, cfg.optim))


def _share_sizes(data: Data | HeteroData) -> None:
    """Tell GraphGym's networks the sizes of the graph, through ``cfg.share``."""
    target = labelled_nodes(data)
    cfg.share.dim_in = target.x.size(1)
    cfg.share.dim_out = target.y.size(1) if target.y.dim() == 2 else int(target.y.max()) + 1
    if isinstance(data, HeteroData):
        cfg.share.target, cfg.share.relations = target._key, data.edge_types
        cfg.share.node_types = data.node_types
        cfg.share.embedded = [0 if "x" in data[kind] else data[kind].num_nodes for kind in data.node_types]


def select_device() -> torch.device:
    """Return the device that ``cfg.accelerator`` names.

    Raises:
        SettingsError: This machine does not have it.
    """
    if cfg.accelerator == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=cfg.accelerator).device
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for the device
        raise SettingsError(
            f"`accelerator` is {cfg.accelerator!r}, but torch has no such device here; use 'auto' or 'cpu'",
            "accelerator",
        ) from error


def _check_edge_features(data: Data | HeteroData) -> None:
    found = data.get("edge_attr") if isinstance(data, Data) else None
    size = 0 if found is None else found.size(-1)
    if cfg.lcat.edge_dim not in (0, size):
        raise SettingsError(
            f"`lcat.edge_dim` is {cfg.lcat.edge_dim}, but the edges of {dataset_title()} have {size} features",
            "lcat.edge_dim",
        )


def _fuse(optimizer: torch.optim.Optimizer, device: torch.device) -> torch.optim.Optimizer:
    """Use one kernel for all parameters instead of a dozen operations for each."""
    if isinstance(optimizer, torch.optim.Adam) and device.type in ("cpu", "cuda"):
        for group in optimizer.param_groups:
            group["fused"] = True
    return optimizer
