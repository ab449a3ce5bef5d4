"""Everything that touches GraphGym: configuration, layers, networks, loader, optimizers and loops. Importing registers it all."""

from graphgym_lcat.gym import (
    adjacency_layers,
    classic,
    config,
    csbm,
    extra_metrics,
    layers,
    loader,
    network,
    optimizer,
    sampled_training,
    stacked_network,
    training,
)

__all__ = [
    "adjacency_layers",
    "classic",
    "config",
    "csbm",
    "extra_metrics",
    "layers",
    "loader",
    "network",
    "optimizer",
    "sampled_training",
    "stacked_network",
    "training",
]
