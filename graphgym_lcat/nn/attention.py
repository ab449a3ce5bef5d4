"""What all layers with attention have: the parameters of the score, λ, and a way to the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn.conv import MessagePassing

from graphgym_lcat.kernels import Graph, dispatch
from graphgym_lcat.kernels.backend import Coefficients, ConvolvedScore, Dropout, EqualScore, PairScore
from graphgym_lcat.kernels.dropout import draw_seed
from graphgym_lcat.nn.checks import check_choice, check_positive
from graphgym_lcat.nn.functional import EdgeFeatures, ScoreInputs, ScoreParameters
from graphgym_lcat.nn.init import INITS, Projection, init_attention_vector
from graphgym_lcat.nn.interpolation import Interpolation, Lambdas, describe
from graphgym_lcat.nn.scores import AnyScore, create_score, find_score, score_name

# All layers have these attributes, None where the score has no such vector. A registered score may add others.
VECTORS = ("att_src", "att_dst", "att", "att_edge")


# What a subclass may override to compute messages in another way, as in PyG.
MESSAGE_METHODS = ("propagate", "message", "aggregate", "update", "edge_update")


class ConvolvedAttention(Module):
    """Holds the parameters of the attention coefficients and hands them to pure functions.

    A layer calls :meth:`_init_attention` in its constructor, :meth:`_reset_attention` in ``reset_parameters``, and then
    :meth:`_attend` (values summed by attention) or :meth:`_coefficients`. The parameters belong to the layer itself, under the
    names of PyG's layers, so that state dicts can be exchanged with them.
    """

    att_src: Parameter | None
    att_dst: Parameter | None
    att: Parameter | None
    att_edge: Parameter | None
    lin_edge: Projection | None
    # Layer-wise inference sees, or replaces, the scores here.
    _score_hook: Callable[[PairScore], PairScore] | None = None

    def _init_attention(
        self,
        heads: int,
        channels: int,
        *,
        score: AnyScore = "gat",
        lambda1: float | str = "learn",
        lambda2: float | str = "learn",
        lambda_per_head: bool = False,
        negative_slope: float = 0.2,
        init: str = "uniform",
        backend: str = "auto",
        edge_dim: int | None = None,
    ) -> None:
        """Creates the parameters; the options are explained in :class:`LCATConv`."""
        heads = check_positive("heads", heads)
        check_choice("init", init, INITS)
        check_choice("backend", backend, dispatch.backend_names())
        self.heads = heads
        self.score_channels = channels
        self.score = create_score(score, heads, channels)  # a Module is registered with its parameters
        self.negative_slope = negative_slope
        self.init = init
        self.backend = backend
        self.interpolation = Interpolation(lambda1, lambda2, heads if lambda_per_head else 1)

        rule = find_score(self.score)
        if edge_dim is not None and not rule.takes_edges:
            raise ValueError(f"`edge_dim` needs a score that takes edge features, got {score_name(self.score)}")
        vectors = rule.vectors + (() if edge_dim is None else rule.edge_vectors)
        names = dict.fromkeys(VECTORS + vectors)
        for name in names:
            parameter = Parameter(torch.empty(1, heads, channels)) if name in vectors else None
            self.register_parameter(name, parameter)
        self._vector_names = tuple(name for name in names if name in vectors)
        self.lin_edge = None if edge_dim is None else Projection(edge_dim, heads * channels, init)

    def _reset_attention(self) -> None:
        self.interpolation.reset_parameters()
        for name in self._vector_names:
            init_attention_vector(getattr(self, name), self.init)
        if self.lin_edge is not None:
            self.lin_edge.reset_parameters()
        reset_score = getattr(self.score, "reset_parameters", None)
        if reset_score is not None:
            reset_score()

    def lambdas(self) -> Lambdas:
        """λ1 and λ2 as plain numbers: one each, or one per head with ``lambda_per_head=True``."""
        return self.interpolation.lambdas()

    def _describe_attention(self) -> str:
        return f"heads={self.heads}, score={score_name(self.score)}, {describe(self.interpolation)}"

    def _attend(
        self,
        graph: Graph,
        key: Tensor,
        query: Tensor | None,
        value: Tensor,
        edges: EdgeFeatures | None = None,
        dropout: float = 0.0,
        query_sources: Tensor | None = None,
    ) -> Tensor:
        """``Σ_j γ_ij value_j``, ``[num_dst, H, C]``. See :class:`.ScoreInputs` for the other arguments."""
        score = self._pair_score(ScoreInputs(graph, key, query, edges, query_sources))
        return dispatch.attend(self.backend, graph, score, value, _draw_dropout(dropout, key))

    def _attend_at_once(
        self, graph: Graph, key: Tensor, value: Tensor, bias: Tensor | None, dropout: float
    ) -> Tensor | None:
        """:meth:`_attend` for one set of nodes without edge features, plus ``bias``: ``[nodes, H * C]``.

        None if no backend computes it in one call.
        """
        rule = find_score(self.score)
        if rule.at_once is None or self.interpolation.fixed1 == 0 or self._score_hook is not None:
            return None
        vectors = tuple([getattr(self, name) for name in rule.vectors])
        parameters = bias, *vectors, self.interpolation.x, self.interpolation.y
        backend = dispatch.find_convolving(self.backend, graph, rule.at_once, bool(dropout), key, value, *parameters)
        if backend is None:
            return None
        score = ConvolvedScore(rule.at_once, key, vectors, *self.interpolation.numbers(), self.negative_slope)
        return backend.attend_convolved(graph, score, value, bias, _draw_dropout(dropout, value))

    def _attend_and_show(
        self,
        graph: Graph,
        key: Tensor,
        query: Tensor | None,
        value: Tensor,
        edges: EdgeFeatures | None = None,
        dropout: float = 0.0,
        query_sources: Tensor | None = None,
    ) -> tuple[Tensor, Coefficients]:
        """Both: ``Σ_j γ_ij value_j``, and γ itself."""
        score = self._pair_score(ScoreInputs(graph, key, query, edges, query_sources))
        drawn = _draw_dropout(dropout, key)
        out = dispatch.attend(self.backend, graph, score, value, drawn)
        return out, dispatch.coefficients(self.backend, graph, score, drawn)

    def _coefficients(
        self,
        graph: Graph,
        key: Tensor,
        query: Tensor | None,
        edges: EdgeFeatures | None = None,
        dropout: float = 0.0,
        query_sources: Tensor | None = None,
    ) -> Coefficients:
        """γ itself."""
        score = self._pair_score(ScoreInputs(graph, key, query, edges, query_sources))
        return dispatch.coefficients(self.backend, graph, score, _draw_dropout(dropout, key))

    def _pair_score(self, inputs: ScoreInputs) -> PairScore:
        if self.interpolation.fixed1 == 0:
            return EqualScore(inputs.key)
        lambda1, lambda2 = self.interpolation()
        vectors = {name: getattr(self, name)[0] for name in self._vector_names}
        edge_weight = None if self.lin_edge is None else self.lin_edge.weight
        parameters = ScoreParameters(vectors, lambda1, lambda2, self.negative_slope, edge_weight, self.backend)
        score = find_score(self.score).prepare(inputs, parameters)
        return score if self._score_hook is None else self._score_hook(score)


def _draw_dropout(probability: float, like: Tensor) -> Dropout | None:
    return Dropout(probability, draw_seed(like.device)) if probability else None


class AttentionLayer(ConvolvedAttention, MessagePassing):
    """A PyG layer with attention, which explainers and hooks can observe."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What PyG's layers have; they come without types."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Gives each class the ``propagate`` of PyG's base class, unless it defines its own.

        PyG compiles the method class by class, and keeps the one that it replaces for explainers. That of a subclass would be
        its parent's, compiled for the messages of the parent.
        """
        super().__init_subclass__(**kwargs)
        cls._defines_messages = any(name in vars(cls) for name in MESSAGE_METHODS)
        defines = [vars(base).get("_defines_messages", False) for base in cls.__mro__]
        cls._overridden = frozenset(base for i, base in enumerate(cls.__mro__) if any(defines[:i]))
        if "propagate" not in vars(cls):
            cls.propagate = MessagePassing.propagate

    def _is_observed(self) -> bool:
        """Whether an explainer or a hook wants to see messages, so that there must be some."""
        return bool(
            self.explain
            or self._message_forward_pre_hooks
            or self._message_forward_hooks
            or self._propagate_forward_pre_hooks
            or self._propagate_forward_hooks
            or self._aggregate_forward_pre_hooks
            or self._aggregate_forward_hooks
            or self._edge_update_forward_pre_hooks
            or self._edge_update_forward_hooks
        )

    def _has_own_messages(self, layer: type) -> bool:
        """Whether a subclass of ``layer`` computes messages in another way."""
        return layer in self._overridden

    def _in_flow(self, edges: Tensor) -> Tensor:
        """Edges from sources to destinations in the order that ``propagate`` expects."""
        return edges if self.flow == "source_to_target" else edges.flip(0)
