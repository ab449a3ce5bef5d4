"""Whether the Triton kernels compute on a device what the torch path computes there, on one small graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from graphgym_lcat.kernels import torch_path
from graphgym_lcat.kernels.backend import Dropout, GATScore, GATv2Score
from graphgym_lcat.kernels.graph import Graph
from graphgym_lcat.kernels.triton import backend as triton_backend
from graphgym_lcat.kernels.triton import layout

NODES, HEADS, CHANNELS = 12, 2, 8
TOLERANCE = 1e-3

#: Operators by name: the sizes of their inputs, and the call of a backend. The graph has a long row, an empty one, and loops.
CASES: dict[str, tuple[tuple[tuple[int, ...], ...], Callable]] = {
    "mean": (((NODES, HEADS * CHANNELS),), lambda backend, graph, value: backend.neighbor_mean(graph, value)),
    "convolution": (
        ((NODES, HEADS * CHANNELS), (NODES, HEADS * CHANNELS), (1,)),
        lambda backend, graph, target, source, lambda2: backend.convolve(graph, target, source, lambda2.sigmoid()),
    ),
    "attention of GAT": (
        ((NODES, HEADS), (NODES, HEADS), (NODES, HEADS, CHANNELS)),
        lambda backend, graph, query, key, value: backend.attend(
            graph, GATScore(query, key, 0.2), value, Dropout(0.3, torch.tensor([7]))
        ),
    ),
    "attention of GATv2": (
        ((NODES, HEADS, CHANNELS),) * 3 + ((HEADS, CHANNELS),),
        lambda backend, graph, query, key, value, att: backend.attend(graph, GATv2Score(query, key, att, 0.2), value),
    ),
}


def find_failure(device: torch.device) -> str | None:
    """Why the kernels must not be used on ``device``, as a clause about "it"; None if they may."""
    if device.type != "cuda":
        return "it is chosen automatically for GPUs only"
    return compare_with_torch_path(device)


def compare_with_torch_path(device: torch.device) -> str | None:
    """What went wrong, as a clause about "it"; None if values and gradients are the same."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        for name, (shapes, compute) in CASES.items():
            try:
                difference = _difference(device, shapes, compute)
            except Exception as error:  # whatever a compiler or a driver may raise: there is another backend
                return f"its {name} failed in a test on this device ({type(error).__name__}: {error})"
            if not difference <= TOLERANCE:
                return f"its {name} differs from that of the torch path by {difference:.2g} in a test on this device"
    return None


def _difference(device: torch.device, shapes: tuple[tuple[int, ...], ...], compute: Callable) -> float:
    """The largest difference of values and gradients, relative to the largest number."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).to(device) for shape in shapes]
    graph = _graph().to(device)
    ours, expected = (_values(compute, backend, graph, inputs) for backend in (triton_backend, torch_path))
    scale = max(float(t.abs().max()) for t in expected)
    return max(float((a - e).abs().max()) for a, e in zip(ours, expected, strict=True)) / scale


def _values(compute: Callable, backend: object, graph: Graph, inputs: list[Tensor]) -> list[Tensor]:
    inputs = [t.clone().requires_grad_() for t in inputs]
    out = compute(backend, graph, *inputs)
    direction = torch.linspace(-1, 1, out.numel(), device=out.device).view_as(out)
    return [out.detach(), *torch.autograd.grad(out, inputs, direction)]


def _graph() -> Graph:
    neighbors = torch.arange(layout.CHUNK + 8) % NODES
    hub = torch.stack([neighbors, torch.zeros_like(neighbors)])
    others = torch.tensor([[0, 3, 3, 5, 7, 9, 2, 1], [1, 1, 2, 4, 4, 8, 2, 10]])
    return Graph.from_edge_index(torch.cat([hub, hub.flip(0), others], dim=1), NODES)
