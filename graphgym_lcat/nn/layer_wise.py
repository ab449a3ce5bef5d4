"""Layer-wise inference: a layer computes all nodes of a graph in blocks, exactly, with memory for one block at a time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric.nn.conv import MessagePassing

from graphgym_lcat.kernels.backend import PairScore
from graphgym_lcat.kernels.sampling import InEdges, Numbering
from graphgym_lcat.nn.attention import ConvolvedAttention
from graphgym_lcat.nn.checks import check_positive
from graphgym_lcat.nn.trimming import reach, uses_degrees_of_neighbors

_NODE_ARGUMENTS = ("x", "x_0")
_EDGE_ARGUMENTS = ("edge_attr", "edge_weight")
# The in-edges of graphs that were computed before: an evaluation is repeated in every epoch.
_IN_EDGES: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


@contextmanager
def layer_wise(model: Module, batch_size: int) -> Iterator[None]:
    """Within the context, the graph layers of a model compute their nodes in blocks of ``batch_size``; see :func:`infer_layer`.

    The model runs on the complete graph. The features of all nodes stay in memory, but nothing that grows with the edges.

    .. code-block:: python

        model.eval()
        with layer_wise(model, 10_000):
            outputs = model(data.x, data.edge_index)

    Raises:
        TypeError: The model has a graph layer whose blocks are not known to be exact.
    """
    layers = [module for module in model.modules() if isinstance(module, MessagePassing)]
    for layer in layers:
        if reach(layer) is None:
            raise TypeError(
                f"layer-wise inference of {type(layer).__name__} may not be exact; use the layers of graphgym_lcat or one of "
                "GATConv, GATv2Conv, GCNConv, GCN2Conv, GINConv, GINEConv, GraphConv, PNAConv, SAGEConv, TransformerConv"
            )
    replaced = [vars(layer).get("forward") for layer in layers]
    try:
        for layer in layers:
            layer.forward = functools.partial(_infer, layer, layer.forward, batch_size)
        yield
    finally:
        for layer, forward in zip(layers, replaced, strict=True):
            vars(layer).pop("forward", None)
            if forward is not None:
                layer.forward = forward


def infer_layer(layer: MessagePassing, *arguments: Any, batch_size: int, **keywords: Any) -> Tensor:
    """Compute ``layer(*arguments, **keywords)`` for all nodes in blocks, without gradients; the result is exact.

    A block holds ``batch_size`` nodes and all their neighbours. A layer of this package with :math:`\\lambda_2 \\neq 0` runs
    twice: the first time to compute the convolved features of all nodes, which the second one uses. Node features may be on another
    device than the layer: they are moved block by block, and so are the results.

    Args:
        layer: A graph layer.
        *arguments, **keywords: As for a call of the layer: ``x`` or a pair of them, ``edge_index``, ``edge_attr``, …
        batch_size: Nodes per block.
    """
    return _infer(layer, layer.forward, batch_size, *arguments, **keywords)


@dataclass(frozen=True)
class _Block:
    """Nodes to compute, and what they depend on: sources (for one set of nodes, the nodes themselves first) and edges."""

    nodes: Tensor
    sources: Tensor
    edge_index: Tensor
    edge_numbers: Tensor


class _Recorded(Exception):
    """Ends the first pass of a layer as soon as its scores are known."""


@torch.no_grad()
def _infer(layer: MessagePassing, forward: Any, batch_size: int, *arguments: Any, **keywords: Any) -> Tensor:
    check_positive("batch_size", batch_size)
    call = inspect.signature(type(layer).forward).bind(layer, *arguments, **keywords).arguments
    call.pop("self")
    x, edge_index = call["x"], call["edge_index"]
    twice = not isinstance(x, Tensor) and x[0] is x[1]  # one set of nodes
    if twice:
        x = call["x"] = x[0]
    _check_call(layer, call)
    pair = not isinstance(x, Tensor)
    x_src, x_dst = x if pair else (x, x)
    in_edges = _find_in_edges(edge_index, x_src.size(0), x_dst.size(0))
    hops = 2 if uses_degrees_of_neighbors(layer) and not pair else 1
    convolves = isinstance(layer, ConvolvedAttention) and reach(layer) == 2 and hops == 1 and not pair
    device = next((p.device for p in layer.parameters()), x_src.device)

    def run(block: _Block) -> Tensor:
        parts = {name: _part(name, value, block, device) for name, value in call.items()}
        if twice:
            parts["x"] = (parts["x"], parts["x"])
        with _without_cache(layer):
            return forward(**parts)

    scores = _NodeScores(x_src.size(0)) if convolves else None
    if scores is not None:
        with scores.recorded_by(layer):
            for block in _blocks(in_edges, batch_size, hops, pair):
                scores.record(block.nodes, lambda block=block: run(block))
    out: Tensor | None = None
    for block in _blocks(in_edges, batch_size, hops, pair):
        if scores is None:
            result = run(block)
        else:
            with scores.replayed_by(layer, block.sources.to(device)):
                result = run(block)
        if out is None:
            out = torch.empty(x_dst.size(0), *result.shape[1:], dtype=result.dtype, device=x_dst.device)
        out[block.nodes] = result[: block.nodes.numel()].to(out.device)
    return forward(*arguments, **keywords) if out is None else out  # without nodes, the layer knows the shape


@contextmanager
def _without_cache(layer: MessagePassing) -> Iterator[None]:
    """The normalised edges that ``cached=True`` keeps are those of one graph: a block must neither use nor replace them."""
    off = {"cached": False, "_cached_edge_index": None, "_cached_adj_t": None}
    before = {name: vars(layer)[name] for name in off if name in vars(layer)}
    try:
        vars(layer).update({name: off[name] for name in before})
        yield
    finally:
        vars(layer).update(before)


class _NodeScores:
    """The inputs of a layer's score, query and key, of all nodes of a graph."""

    def __init__(self, num_nodes: int):
        self.num_nodes = num_nodes
        self._nodes: Tensor | None = None
        self._query: Tensor | None = None
        self._key: Tensor | None = None

    @contextmanager
    def recorded_by(self, layer: ConvolvedAttention) -> Iterator[None]:
        with _score_hook(layer, self._keep):
            yield

    def record(self, nodes: Tensor, run: Any) -> None:
        """Run the layer until it has its scores, and keep those of the first nodes of its block."""
        self._nodes = nodes
        try:
            run()
        except _Recorded:
            return
        raise AssertionError("the layer has computed no scores")

    @contextmanager
    def replayed_by(self, layer: ConvolvedAttention, sources: Tensor) -> Iterator[None]:
        """Give the layer the scores of all nodes of a block."""
        assert self._query is not None and self._key is not None
        query = self._query[sources]
        key = query if self._key is self._query else self._key[sources]
        with _score_hook(layer, lambda score: score._replace(query=query, key=key)):
            yield

    def _keep(self, score: Any) -> PairScore:
        assert self._nodes is not None
        if self._query is None or self._key is None:
            self._query = score.query.new_empty(self.num_nodes, *score.query.shape[1:])
            # One tensor for both, if it is one: kernels take less time then.
            self._key = self._query if score.key is score.query else torch.empty_like(self._query)
        count = self._nodes.numel()
        self._query[self._nodes] = score.query[:count]
        if self._key is not self._query:
            self._key[self._nodes] = score.key[:count]
        raise _Recorded


@contextmanager
def _score_hook(layer: ConvolvedAttention, hook: Any) -> Iterator[None]:
    layer._score_hook = hook
    try:
        yield
    finally:
        layer._score_hook = None


def _blocks(in_edges: InEdges, batch_size: int, hops: int, pair: bool) -> Iterator[_Block]:
    numbering = Numbering(in_edges.num_src, in_edges.native)
    threads = torch.get_num_threads()
    for nodes in torch.arange(in_edges.num_dst).split(batch_size):
        if not pair:
            numbering.number_(nodes.clone())
        edges = in_edges.draw(nodes, -1, 0, 0, threads)
        numbering.number_(edges.source)
        if hops == 2:
            known = edges.source.numel()
            first, border = numbering.take_new()
            edges = in_edges.draw(border[nodes.numel() :], -1, 0, first + nodes.numel(), threads, edges)
            numbering.number_(edges.source[known:])
        yield _Block(nodes, numbering.finish(), torch.stack([edges.source, edges.target]), edges.number)


def _find_in_edges(edge_index: Tensor, num_src: int, num_dst: int) -> InEdges:
    state = (None if edge_index.is_inference() else edge_index._version, num_src, num_dst)
    known, in_edges = _IN_EDGES.get(edge_index, (None, None))
    if in_edges is None or known != state or state[0] is None:
        in_edges = InEdges(edge_index, num_src, num_dst)
        _IN_EDGES[edge_index] = (state, in_edges)
    return in_edges


def _check_call(layer: MessagePassing, call: dict[str, Any]) -> None:
    edge_index = call["edge_index"]
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise TypeError(f"layer-wise inference needs `edge_index` as a tensor [2, E], got {type(edge_index).__name__}")
    if layer.flow != "source_to_target":
        raise ValueError(f"layer-wise inference needs flow='source_to_target', got {layer.flow!r}")
    if not isinstance(call["x"], Tensor) and (call["x"][1] is None or getattr(layer, "add_self_loops", False)):
        raise ValueError(
            "layer-wise inference of a bipartite graph needs features of both sides and add_self_loops=False"
        )
    known = (*_NODE_ARGUMENTS, *_EDGE_ARGUMENTS, "edge_index")
    for name, value in call.items():
        if name not in known and value is not None:
            raise ValueError(f"layer-wise inference does not support the argument `{name}` of {type(layer).__name__}")


def _part(name: str, value: Any, block: _Block, device: torch.device) -> Any:
    """What a block needs of an argument."""
    if value is None:
        return None
    if name == "edge_index":
        return block.edge_index.to(device)
    if name in _EDGE_ARGUMENTS:
        return value[block.edge_numbers.to(value.device)].to(device)
    if isinstance(value, Sequence):
        return tuple(
            _rows(part, nodes, device) for part, nodes in zip(value, (block.sources, block.nodes), strict=True)
        )
    return _rows(value, block.sources, device)


def _rows(x: Tensor, nodes: Tensor, device: torch.device) -> Tensor:
    return x[nodes.to(x.device)].to(device)


__all__ = ["infer_layer", "layer_wise"]
