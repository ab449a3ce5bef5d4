"""How attention is computed: the layout of a graph, and the backends behind one contract."""

from graphgym_lcat.kernels.cache import clear_graph_cache, find_graph
from graphgym_lcat.kernels.graph import Graph

__all__ = ["Graph", "clear_graph_cache", "find_graph"]
