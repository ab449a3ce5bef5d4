"""The layers, as plain PyG modules: no GraphGym, no global configuration, no files."""

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn.cat_conv import CATConv
from graphgym_lcat.nn.lcat_conv import LCATConv

__all__ = ["CATConv", "Graph", "LCATConv"]
