"""Tiny graphs, and every operator of the Triton kernels beside dense attention in double precision."""

from dataclasses import dataclass

import torch
from dense_attention import aggregate, dropped, edge_list, gat_scores, gatv2_scores, softmax

from graphgym_lcat.kernels import Graph
from graphgym_lcat.kernels.backend import Dropout, EdgeTerm, GATScore, GATv2Score

SLOPE, EDGE_DIM = 0.2, 3
SEED = -0x123456789ABCDEF


@dataclass
class Case:
    edge_index: torch.Tensor
    num_src: int
    num_dst: int
    add_self_loops: bool

    @property
    def graph(self):
        return Graph.from_edge_index(
            self.edge_index, (self.num_src, self.num_dst), self.add_self_loops, self.shared_nodes
        )

    @property
    def shared_nodes(self):
        return self.add_self_loops or self.num_src == self.num_dst

    @property
    def loops(self):
        return min(self.num_src, self.num_dst) if self.add_self_loops else 0

    def listed(self):
        return edge_list(self.edge_index, self.num_src, self.num_dst, self.add_self_loops)

    def counts(self, neighbors_only):
        """How often each source is an in-neighbour of each destination, as a dense matrix."""
        src, dst, _ = self.listed()
        if neighbors_only and self.shared_nodes:
            src, dst = src[src != dst], dst[src != dst]
        counts = torch.zeros(self.num_dst, self.num_src, dtype=torch.float64)
        return counts.index_put((dst, src), torch.ones(len(src), dtype=torch.float64), accumulate=True)


_HUB = torch.tensor([[1, 2, 3, 4, 5, 1, 2, 3, 4, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0]])
GRAPHS = {
    # Node 0 has long rows in both directions, node 6 has no edge but its loop, edges repeat, a loop of the input is dropped.
    "hub": Case(torch.cat([_HUB, _HUB.flip(0)], dim=1), 7, 7, True),
    # Nobody has an added loop, those of the input count, destination 2 has no edges.
    "loops of the input": Case(torch.tensor([[0, 0, 1, 3, 3, 3], [0, 1, 1, 0, 3, 0]]), 4, 4, False),
    "bipartite": Case(torch.tensor([[0, 4, 1, 1, 2, 4, 0], [0, 0, 1, 2, 2, 1, 2]]), 5, 3, True),
    "no edges": Case(torch.empty(2, 0, dtype=torch.long), 3, 3, False),
}


def mean(backend, case, graph, value):
    if backend is not None:
        return backend.neighbor_mean(graph, value)
    counts = case.counts(neighbors_only=False)
    return counts @ value / counts.sum(1, keepdim=True).clamp(min=1)


def convolve(backend, case, graph, target, source, lambda2):
    if backend is not None:
        return backend.convolve(graph, target, source, lambda2)
    counts = case.counts(neighbors_only=True)
    return (target + lambda2 * (counts @ source)) / (1 + lambda2 * counts.sum(1, keepdim=True))


def gat(backend, case, graph, query, key, value, features=None, weight=None, probability=0.0, result="attend"):
    edge = None if features is None else EdgeTerm(features, "mean", weight)
    if backend is not None:
        return call(backend, graph, GATScore(query, key, SLOPE, edge), value, probability, result)
    src, dst, number = case.listed()
    term = None if features is None else with_loops(case, features, "mean") @ weight.t()
    gamma = softmax(gat_scores(src, dst, number, query, key, term, SLOPE), dst, case.num_dst)
    return finish(case, gamma, value, probability, result)


def gatv2(backend, case, graph, query, key, value, att, features=None, weight=None, probability=0.0, result="attend"):
    edge = None if features is None else EdgeTerm(features, "add", weight)
    if backend is not None:
        return call(backend, graph, GATv2Score(query, key, att, SLOPE, edge), value, probability, result)
    src, dst, number = case.listed()
    rows = None if features is None else with_loops(case, features, "add")
    flat = None if weight is None else weight.flatten(0, 1)
    gamma = softmax(gatv2_scores(src, dst, number, query, key, att, rows, flat, SLOPE), dst, case.num_dst)
    return finish(case, gamma, value, probability, result)


def call(backend, graph, score, value, probability, result):
    dropout = Dropout(probability, torch.tensor([SEED])) if probability else None
    if result == "attend":
        return backend.attend(graph, score, value, dropout)
    return torch.cat(backend.coefficients(graph, score, dropout)) + 0 * value.sum()


def finish(case, gamma, value, probability, result):
    src, dst, number = case.listed()
    gamma = dropped(gamma, number, torch.tensor([SEED]), probability)
    if result == "attend":
        return aggregate(gamma, src, dst, value, case.num_dst)
    rows = case.edge_index.size(1) + case.loops
    return gamma.new_zeros(rows, gamma.size(1)).index_put((number,), gamma) + 0 * value.sum()


def with_loops(case, features, reduction):
    """The features of the edges, then those of the added self-loops."""
    counts = torch.zeros(case.num_dst, features.size(0), dtype=features.dtype)
    src, dst = case.edge_index
    number = torch.arange(len(src))[src != dst] if case.add_self_loops else torch.arange(len(src))
    counts = counts.index_put((dst[number], number), torch.ones(len(number), dtype=features.dtype))
    total = counts @ features
    if reduction == "mean":
        total = total / counts.sum(1, keepdim=True).clamp(min=1)
    return torch.cat([features, total[: case.loops]])


#: Operator, inputs by the sizes of the case, and options.
OPERATORS = {
    "mean": (mean, "source", {}),
    "convolve": (convolve, "convolve", {}),
    "convolve by column": (convolve, "convolve columns", {}),
    "gat": (gat, "gat", {}),
    "gat, edges, dropout": (gat, "gat edges", {"probability": 0.7}),
    "gatv2": (gatv2, "gatv2", {}),
    "gatv2, edges, dropout": (gatv2, "gatv2 edges", {"probability": 0.3}),
    "coefficients of gat": (gat, "gat edges", {"probability": 0.3, "result": "coefficients"}),
    "coefficients of gatv2": (gatv2, "gatv2 edges", {"result": "coefficients"}),
}


def shapes(kind, case, heads, channels):
    s, d, e, f = case.num_src, case.num_dst, case.edge_index.size(1), heads * channels
    by_kind = {
        "source": [(s, f)],
        "convolve": [(d, f), (s, f), (1,)],
        "convolve columns": [(d, f), (s, f), (f,)],
        "gat": [(d, heads), (s, heads), (s, heads, channels)],
        "gatv2": [(d, heads, channels), (s, heads, channels), (s, heads, channels), (heads, channels)],
    }
    if not kind.endswith("edges"):
        return by_kind[kind]
    weight = (heads, EDGE_DIM) if kind == "gat edges" else (heads, channels, EDGE_DIM)
    return [*by_kind[kind.removesuffix(" edges")], (e, EDGE_DIM), weight]


def random_inputs(name, case, heads=3, channels=5, dtype=torch.float32):
    _, kind, _ = OPERATORS[name]
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(shape, generator=generator) for shape in shapes(kind, case, heads, channels)]
    if kind.startswith("convolve"):
        tensors[-1] = tensors[-1].sigmoid()
    return [t.to(dtype) for t in tensors]


def values(name, backend, case, inputs, graph=None):
    """Value and gradients of an operator; with ``backend=None``, densely in double precision."""
    compute, _, options = OPERATORS[name]
    inputs = [(t.double() if backend is None else t).detach().requires_grad_() for t in inputs]
    out = compute(backend, case, graph, *inputs, **options)
    direction = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view_as(out).to(out.dtype)
    grads = torch.autograd.grad(out, inputs, direction.to(out.device), allow_unused=True)
    return [out.detach(), *(torch.zeros_like(i) if g is None else g for i, g in zip(inputs, grads, strict=True))]
