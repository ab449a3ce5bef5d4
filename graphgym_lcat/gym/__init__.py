"""GraphGym's registries: configuration, layers, network, loader, optimizers, loop. Importing this registers everything."""

from graphgym_lcat.gym import adjacency_layers, classic, config, layers, loader, network, optimizer, stacked_network

__all__ = ["adjacency_layers", "classic", "config", "layers", "loader", "network", "optimizer", "stacked_network"]
