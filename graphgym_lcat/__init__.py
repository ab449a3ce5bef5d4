"""L-CAT for PyTorch Geometric and GraphGym: layers that learn whether to convolve or attend.

Importing this package registers its layers, configuration keys and training loop with GraphGym. The layers themselves are plain PyG
modules in :mod:`graphgym_lcat.nn`.
"""

from importlib.metadata import version

from graphgym_lcat import gym, nn

__all__ = ["__version__", "gym", "nn"]
__version__ = version("graphgym-lcat")
