"""How attention is computed: the layout of a graph, the torch path, fused C for the CPU."""

from graphgym_lcat.kernels.cache import clear_graph_cache, find_graph
from graphgym_lcat.kernels.graph import Graph

__all__ = ["Graph", "clear_graph_cache", "find_graph"]
