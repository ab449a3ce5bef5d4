"""The contract of a backend: the operators that compute attention, and how a backend says which of them it can compute.

A backend is a module, or any other object, with the attributes of :class:`Backend`. Edges and nodes have the order of the input
everywhere in the contract; how a backend sorts them is its own affair.

A new operator is a method of :class:`Backend`, a name in ``Operator``, and an implementation in
:mod:`graphgym_lcat.kernels.torch_path`. Backends that do not list its name are not asked to compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from graphgym_lcat.kernels.graph import Graph

Operator = Literal["neighbor_mean", "convolve", "attend", "attend_convolved", "coefficients", "statistics"]

DESCRIPTIONS = {
    "neighbor_mean": "means over neighbours",
    "convolve": "convolved features",
    "attend": "sums weighted by attention",
    "attend_convolved": "convolution and attention in one call",
    "coefficients": "attention coefficients",
    "statistics": "statistics of messages",
}

#: What :meth:`Backend.statistics` can compute.
STATISTICS = ("sum", "mean", "min", "max", "var", "std")


class EdgeTerm(NamedTuple):
    """What edge features add to a score, before the LeakyReLU: their product with ``weight``.

    Attributes:
        features: ``[E, edge_dim]``, in the order of ``graph.edge_index``.
        loop_features: ``[self_loops, edge_dim]``, those of the added self-loops; or ``'mean'`` or ``'add'`` for that reduction of
            the features of a node's in-edges.
        weight: ``[H, edge_dim]`` for the score of GAT, ``[H, D, edge_dim]`` for that of GATv2.
    """

    features: Tensor
    loop_features: Tensor | str
    weight: Tensor


class EqualScore(NamedTuple):
    """The same score for all pairs. Heads, dtype and device are those of ``key`` ``[num_src, H, …]``."""

    key: Tensor
    edge: None = None

    @property
    def kind(self) -> str:
        return "equal"


class GATScore(NamedTuple):
    """``LeakyReLU(query_i + key_j)`` of numbers: query ``[num_dst, H]``, key ``[num_src, H]``."""

    query: Tensor
    key: Tensor
    negative_slope: float
    edge: EdgeTerm | None = None

    @property
    def kind(self) -> str:
        return "gat"


class GATv2Score(NamedTuple):
    """``att · LeakyReLU(query_i + key_j)`` of features: query ``[num_dst, H, D]``, key ``[num_src, H, D]``, att ``[H, D]``."""

    query: Tensor
    key: Tensor
    att: Tensor
    negative_slope: float
    edge: EdgeTerm | None = None

    @property
    def kind(self) -> str:
        return "gatv2"


class FunctionScore(NamedTuple):
    """``function(u, v)``, which turns features ``[edges, H, D]`` of receivers and senders into scores ``[edges, H]``."""

    query: Tensor
    key: Tensor
    function: Callable[[Tensor, Tensor], Tensor]
    edge: None = None

    @property
    def kind(self) -> str:
        return "function"


# `kind` is the name of a score in capabilities and requests.
PairScore = EqualScore | GATScore | GATv2Score | FunctionScore


class Lambda(NamedTuple):
    """λ1 or λ2 of a layer, as numbers.

    Attributes:
        values: One for all heads, or one per head.
        parameter: The parameter behind it, ``[len(values)]``; None if λ is fixed.
        derivatives: Those of the values by the parameter.
    """

    values: tuple[float, ...]
    parameter: Tensor | None = None
    derivatives: tuple[float, ...] = ()


class ConvolvedScore(NamedTuple):
    """The score of GAT or GATv2 between nodes of one set, with the convolution of its inputs still to be computed.

    Attributes:
        kind: ``'gat'`` or ``'gatv2'``.
        key: ``[nodes, H, C]``, before convolution.
        vectors: Attention vectors ``[1, H, C]``: those of sources and destinations for GAT, one for GATv2.
        lambda1, lambda2: Of the layer.
        negative_slope: Slope of the LeakyReLU.
    """

    kind: str
    key: Tensor
    vectors: tuple[Tensor, ...]
    lambda1: Lambda
    lambda2: Lambda
    negative_slope: float


class Dropout(NamedTuple):
    """Dropout of attention coefficients.

    Attributes:
        probability: Probability that a coefficient is dropped.
        seed: ``[1]``, int64. All backends draw the same mask from it: see :func:`graphgym_lcat.kernels.dropout.keep_mask`.
    """

    probability: float
    seed: Tensor


class Coefficients(NamedTuple):
    """Attention coefficients.

    Attributes:
        edges: ``[E, H]``, in the order of ``graph.edge_index``; 0 for self-loops of the input that the graph drops.
        loops: ``[self_loops, H]``, those of the added self-loops.
    """

    edges: Tensor
    loops: Tensor


class Request(NamedTuple):
    """What a call needs from a backend. ``device`` is a type of devices, ``device_index`` says which of them."""

    operator: Operator
    device: str
    dtypes: tuple[torch.dtype, ...]
    nodes: tuple[int, int]
    heads: int = 1
    score: str | None = None
    edge_term: bool = False
    dropout: bool = False
    derivatives: int = 1
    device_index: int | None = None
    transforms: bool = False


@dataclass(frozen=True)
class Capabilities:
    """What a backend can compute; None stands for no limit.

    Attributes:
        operators: Names of operators.
        scores: Kinds of scores, for the operators that take one.
        edge_term, dropout: Whether scores may have an edge term, and coefficients dropout.
        plain_operators: Operators that support neither of them.
        devices: Types of devices.
        dtypes: Types of numbers; all tensors of a call must then have the same, or some of ``mixed_dtypes``.
        max_heads, max_nodes: Largest numbers of heads and nodes.
        derivatives: Highest order of derivatives.
        transforms: Whether ``torch.func``, forward-mode derivatives and the export to ONNX work.
    """

    operators: frozenset[str]
    scores: frozenset[str]
    edge_term: bool
    dropout: bool
    plain_operators: frozenset[str] = frozenset()
    devices: frozenset[str] | None = None
    dtypes: tuple[torch.dtype, ...] | None = None
    mixed_dtypes: frozenset[torch.dtype] = frozenset()
    max_heads: int | None = None
    max_nodes: int | None = None
    derivatives: int | None = None
    transforms: bool = False

    def why_not(self, request: Request) -> str | None:
        """Why the request cannot be served, as a clause about "it"; None if it can."""
        return self._why_not_operator(request) or self._why_not_tensors(request)

    def _why_not_operator(self, request: Request) -> str | None:
        if request.operator not in self.operators:
            return f"it does not compute {DESCRIPTIONS[request.operator]}"
        if request.score is not None and request.score not in self.scores:
            return f"it computes the scores {_listed(sorted(self.scores))}, not {request.score!r}"
        plain = request.operator in self.plain_operators
        if request.edge_term and (plain or not self.edge_term):
            return "it does not support edge features"
        if request.dropout and (plain or not self.dropout):
            return "it does not support dropout of attention coefficients"
        if self.derivatives is not None and request.derivatives > self.derivatives:
            return f"it has derivatives up to order {self.derivatives}, not {request.derivatives}"
        if request.transforms and not self.transforms:
            return "it does not support torch.func, forward-mode derivatives and the export to ONNX"
        return None

    def _why_not_tensors(self, request: Request) -> str | None:
        if self.devices is not None and request.device not in self.devices:
            return f"it computes on {_listed(sorted(self.devices))}, the data is on {request.device!r}"
        if self.dtypes is not None:
            first = request.dtypes[0]
            for dtype in request.dtypes:
                if dtype not in self.dtypes:
                    names = " or ".join(str(known).removeprefix("torch.") for known in self.dtypes)
                    return f"it computes with {names}, the data is {dtype}"
                if dtype != first and not {dtype, first} <= self.mixed_dtypes:
                    return f"it computes with numbers of one type, the data is {first} and {dtype}"
        if self.max_heads is not None and request.heads > self.max_heads:
            return f"it computes up to {self.max_heads} heads, the layer has {request.heads}"
        if self.max_nodes is not None and not torch.compiler.is_compiling():  # there, the number may be unknown
            for count in request.nodes:
                if count > self.max_nodes:
                    return f"it counts up to {self.max_nodes} nodes, the graph has {count}"
        return None


class Backend(Protocol):
    """What computes attention.

    Attributes:
        name: What users call it, in ``backend='…'`` and ``LCAT_BACKEND``.
        can: What it can compute where it is available.
    """

    @property
    def name(self) -> str: ...

    @property
    def can(self) -> Capabilities: ...

    def unavailable(self) -> str | None:
        """Why it cannot be used at all on this machine; None if it can."""
        ...

    def describe(self) -> str:
        """What it is and how it computes here, in a few words for users."""
        ...

    def neighbor_mean(self, graph: Graph, value: Tensor) -> Tensor:
        """Mean of ``value`` ``[num_src, F]`` over the in-edges and the self-loop of each node; 0 where there are none.

        The result has the dtype of ``value``. bfloat16 and float16 should be summed in float32, here and in the
        other operators. The fused and the Triton kernels do; the torch path still adds some sums in the type of its inputs.
        """
        ...

    def convolve(self, graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
        r"""Equation 7: :math:`(t_i + \lambda_2 \sum_{\ell \in N_i} s_\ell) / (1 + \lambda_2 |N_i|)`.

        Args:
            graph: The graph; its self-loops, added or in the input, do not count as neighbours.
            target: ``[num_dst, F]``, the destinations' own features.
            source: ``[num_src, F]``, what their neighbours contribute.
            lambda2: A number, a tensor ``[1]``, or a tensor ``[F]``.

        The result has the dtype of target and source, whatever that of λ2.
        """
        ...

    def attend(self, graph: Graph, score: PairScore, value: Tensor, dropout: Dropout | None = None) -> Tensor:
        """``Σ_j γ_ij value_j`` for ``value`` ``[num_src, H, C]``, where γ is the softmax of the scores over the in-edges of i.

        The result has the dtype of ``value``, whatever that of the score.
        """
        ...

    def coefficients(self, graph: Graph, score: PairScore, dropout: Dropout | None = None) -> Coefficients:
        """γ itself, in the dtype of the scores' keys."""
        ...

    def statistics(
        self, graph: Graph, score: PairScore, receiver: Tensor, sender: Tensor, names: Sequence[str]
    ) -> Tensor:
        r"""Statistics of the messages :math:`n_i \gamma_{ij} (r_i + s_j)` over the in-edges of each node, channel by channel.

        :math:`n_i` is the number of in-edges; heads split the channels. Definitions and gradients are those of PyG's
        aggregators: 0 for nodes without in-edges, 0 for a standard deviation below 0.0032, and extremes that occur several times
        share the gradient.

        Args:
            graph: A graph without added self-loops.
            score: The score of :math:`\gamma`; with equal scores, :math:`n_i \gamma_{ij} = 1`.
            receiver: ``[num_dst, F]``.
            sender: ``[num_src, F]``.
            names: Different names from ``STATISTICS``.

        Returns:
            ``[num_dst, len(names) * F]``.
        """
        ...


class ConvolvingBackend(Backend, Protocol):
    """A backend that also lists ``'attend_convolved'``, which saves the calls between a layer and its kernels."""

    def attend_convolved(
        self, graph: Graph, score: ConvolvedScore, value: Tensor, bias: Tensor | None, dropout: Dropout | None
    ) -> Tensor:
        """:meth:`Backend.attend` with the score of convolved features, plus ``bias`` ``[H * C]``: ``[nodes, H * C]``.

        ``value`` may be ``score.key`` itself. The result shares no memory with what the backward pass needs.
        """
        ...


def why_not(backend: Backend, request: Request) -> str | None:
    """Why ``backend`` cannot serve ``request``, as a clause; None if it can."""
    return backend.unavailable() or backend.can.why_not(request)


def _listed(names: list[str]) -> str:
    return " and ".join(repr(name) for name in names)
