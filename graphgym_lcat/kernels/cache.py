"""A cache of graph layouts, so that each ``edge_index`` is sorted once."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgym_lcat.kernels.graph import Graph

MAX_GRAPHS = 32


@dataclass
class _Entry:
    owner: weakref.ref[Tensor]
    state: tuple
    graph: Graph
    edges: Tensor | None  # a copy, if later tensors must be compared with it


class GraphCache:
    """A bounded cache of layouts; an entry lives at most as long as the tensor that it was built from.

    A layout is found by the identity of the tensor, as long as no torch operation has changed the tensor
    (``tensor._version``, shape, memory). Changes that torch does not count (through ``tensor.data`` or NumPy) go unnoticed:
    clear the cache after them. Inference tensors have no version, so their layouts are not cached.

    Compiled code reuses the memory, and the Python object, of a tensor that it no longer needs for another one, without counting
    a version. For the tensors that it passes, ``compare`` therefore compares the edges themselves, unless the layout was built in
    eager code, whose tensors compiled code does not reuse.
    """

    def __init__(self, max_graphs: int = MAX_GRAPHS):
        self.max_graphs = max_graphs
        self._entries: OrderedDict[tuple, _Entry] = OrderedDict()
        self._lock = threading.RLock()

    def find(
        self,
        edge_index: Tensor,
        num_src: int,
        num_dst: int,
        add_self_loops: bool,
        shared_nodes: bool,
        compare: bool = False,
    ) -> Graph:
        """The layout of ``edge_index``, from the cache if possible."""
        if edge_index.is_inference():
            return Graph.from_edge_index(edge_index, (num_src, num_dst), add_self_loops, shared_nodes)
        key = (id(edge_index), num_src, num_dst, add_self_loops, shared_nodes)
        state = (edge_index._version, edge_index.data_ptr(), edge_index.shape, edge_index.stride())
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.owner() is edge_index and entry.state == state:
                same_edges = not compare or entry.edges is None or torch.equal(entry.edges, edge_index)
                if same_edges:
                    self._entries.move_to_end(key)
                    return entry.graph
        graph = Graph.from_edge_index(edge_index, (num_src, num_dst), add_self_loops, shared_nodes)
        owner = weakref.ref(edge_index, lambda _: self._forget(key))
        with self._lock:
            self._entries[key] = _Entry(owner, state, graph, edge_index.clone() if compare else None)
            self._entries.move_to_end(key)
            while len(self._entries) > self.max_graphs:
                self._entries.popitem(last=False)
        return graph

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def _forget(self, key: tuple) -> None:
        with self._lock:
            entry = self._entries.get(key)
            # By now, the id may belong to another tensor.
            if entry is not None and entry.owner() is None:
                del self._entries[key]


_CACHE = GraphCache()


def find_graph(edge_index: Tensor, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool) -> Graph:
    """The layout of ``edge_index``, from the cache; compiled code builds it as part of its program."""
    if torch.compiler.is_compiling():
        return Graph.from_edge_index(edge_index, (num_src, num_dst), add_self_loops, shared_nodes)
    return _CACHE.find(edge_index, num_src, num_dst, add_self_loops, shared_nodes)


def find_graph_in_operator(
    edge_index: Tensor, num_src: int, num_dst: int, add_self_loops: bool, shared_nodes: bool
) -> Graph:
    """The layout of ``edge_index``, for an operator that compiled code calls."""
    return _CACHE.find(edge_index, num_src, num_dst, add_self_loops, shared_nodes, compare=True)


def clear_graph_cache() -> None:
    """Drops all layouts. Needed only after an ``edge_index`` was changed in a way that torch does not notice."""
    _CACHE.clear()
