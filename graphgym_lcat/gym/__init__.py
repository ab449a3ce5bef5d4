"""GraphGym's registries: configuration, layers, optimizers. Importing this registers everything."""

from graphgym_lcat.gym import config, layers, optimizer

__all__ = ["config", "layers", "optimizer"]
