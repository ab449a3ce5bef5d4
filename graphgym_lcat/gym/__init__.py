"""GraphGym's registries: configuration, layers, network, loader, optimizers. Importing this registers everything."""

from graphgym_lcat.gym import config, layers, loader, network, optimizer

__all__ = ["config", "layers", "loader", "network", "optimizer"]
