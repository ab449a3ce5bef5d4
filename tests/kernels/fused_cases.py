"""Random graphs and inputs for the operators, and how two backends are compared."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

from graphgym_lcat.kernels import Graph, fused
from graphgym_lcat.kernels.backend import GATScore, GATv2Score

HEADS = (1, 2, 3, 4, 5, 8, 9, 16)
CHANNELS = (1, 7, 8, 16, 20, 32, 40)
REALS = tuple(dtype for dtype in (torch.float32, torch.float64) if dtype in fused.can.dtypes)
PRIMITIVES = ("neighbor_mean", "convolve", "attend_gat", "attend_gatv2")


@dataclass
class Case:
    graph: Graph
    heads: int
    channels: int
    seed: int
    scale: float = 1.0

    def inputs(self, primitive: str, dtype: torch.dtype) -> list[Tensor]:
        """Random tensors in the order of the primitive's arguments."""
        generator = torch.Generator().manual_seed(self.seed)
        num_src, num_dst = self.graph.num_src, self.graph.num_dst
        heads, channels = self.heads, self.channels
        shapes = {
            "neighbor_mean": [(num_src, heads * channels)],
            "convolve": [(num_dst, heads * channels), (num_src, heads * channels)],
            "attend_gat": [(num_dst, heads), (num_src, heads), (num_src, heads, channels)],
            "attend_gatv2": [
                (num_dst, heads, channels),
                (num_src, heads, channels),
                (num_src, heads, channels),
                (heads, channels),
            ],
        }[primitive]
        tensors = [torch.randn(shape, generator=generator) for shape in shapes]
        if primitive == "convolve":
            tensors.append(torch.rand(1, generator=generator))
        elif primitive != "neighbor_mean":
            tensors[:2] = [t * self.scale for t in tensors[:2]]
        return [t.to(dtype).requires_grad_() for t in tensors]


def compute(backend, primitive: str, graph: Graph, inputs: Sequence[Tensor], slope: float = 0.2) -> Tensor:
    """The value of a primitive: an operator, with its score."""
    if primitive == "attend_gat":
        query, key, value = inputs
        return backend.attend(graph, GATScore(query, key, slope), value)
    if primitive == "attend_gatv2":
        query, key, value, att = inputs
        return backend.attend(graph, GATv2Score(query, key, att, slope), value)
    return getattr(backend, primitive)(graph, *inputs)


def run(backend, primitive: str, graph: Graph, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Value and gradients of a primitive."""
    out = compute(backend, primitive, graph, inputs)
    generator = torch.Generator().manual_seed(1)
    direction = torch.randn(out.shape, generator=generator).to(out.dtype)
    return out.detach(), *torch.autograd.grad(out, inputs, direction)


def assert_all_same(actual: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float) -> None:
    """Equal up to ``tolerance`` times the largest number: what vanishes does so up to the rounding of the others."""
    scale = max([1.0, *(t.abs().max().item() for t in expected if t.numel())])
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e.to(a.dtype), rtol=0, atol=tolerance * scale)


@st.composite
def graphs(draw) -> Graph:
    """Directed multigraphs: isolated nodes, repeated edges, self-loops, one or two sets of nodes."""
    num_src = draw(st.integers(1, 12))
    one_set = draw(st.booleans())
    num_dst = num_src if one_set else draw(st.integers(1, 12))
    count = draw(st.integers(0, 60))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    src = torch.randint(num_src, (count,), generator=generator)
    dst = torch.randint(num_dst, (count,), generator=generator)
    return Graph.from_edge_index(
        torch.stack([src, dst]), num_src if one_set else (num_src, num_dst), add_self_loops=draw(st.booleans())
    )


@st.composite
def cases(draw) -> Case:
    return Case(
        draw(graphs()),
        draw(st.sampled_from(HEADS)),
        draw(st.sampled_from(CHANNELS)),
        draw(st.integers(0, 10**6)),
    )
