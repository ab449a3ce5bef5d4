"""GraphGym's registries: configuration, layers, network, loader, optimizers, loop. Importing this registers everything."""

from graphgym_lcat.gym import classic, config, layers, loader, network, optimizer

__all__ = ["classic", "config", "layers", "loader", "network", "optimizer"]
