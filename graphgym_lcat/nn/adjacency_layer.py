"""What the layers over the attention adjacency share."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn.attention import AttentionLayer
from graphgym_lcat.nn.checks import check_choice, check_positive
from graphgym_lcat.nn.functional import attention_adjacency, edge_list
from graphgym_lcat.nn.init import Projection
from graphgym_lcat.nn.scores import SCORE_WEIGHTS

OPTIONS = ("heads", "score", "lambda1", "lambda2", "negative_slope", "init", "lambda_per_head", "backend")


def pop_attention_options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Takes the options of attention, which are the same for all layers, out of a constructor's keyword arguments."""
    return {name: kwargs.pop(name) for name in OPTIONS if name in kwargs}


class AdjacencyLayer(AttentionLayer):
    r"""The first base class of a layer that aggregates over :math:`A^{att}_{ij} = n_i \gamma_{ij}`; the second is a PyG layer.

    The heads split the channels of a message. The constructor calls :meth:`_init_score` after that of the PyG layer. ``forward``
    calls :meth:`_sum_neighbors`, which is fast, or passes the result of :meth:`_edge_weights` to ``propagate``, which explainers
    and hooks can observe.
    """

    lin_score: Projection | None

    def _init_score(
        self, in_channels: int, width: int, score_weights: str = "separate", heads: int = 1, **options: Any
    ) -> None:
        """Creates the parameters of the score.

        Args:
            in_channels: Channels of the input.
            width: Channels of a message.
            score_weights: ``'separate'`` for a weight ``lin_score`` of the score, ``'shared'`` if it uses one of the layer's.
            heads: Number of heads; must divide ``width``.
            **options: The other options of :func:`pop_attention_options`.
        """
        check_choice("score_weights", score_weights, SCORE_WEIGHTS)
        heads = check_positive("heads", heads)
        if width % heads:
            raise ValueError(f"`heads` must divide the {width} channels of a message, got {heads}")
        self.score_weights = score_weights
        self._init_attention(heads, width // heads, **options)
        self.lin_score = Projection(in_channels, width, self.init) if score_weights == "separate" else None
        self._reset_score()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if hasattr(self, "lin_score"):  # the constructors of PyG's layers call this before there is a score
            self._reset_score()

    def _reset_score(self) -> None:
        self._reset_attention()
        if self.lin_score is not None:
            self.lin_score.reset_parameters()

    def _split_heads(self, x: Tensor) -> Tensor:
        """``[nodes or edges, …] → [nodes or edges, heads, channels]``."""
        return x.view(-1, self.heads, self.score_channels)

    def _sum_neighbors(self, graph: Graph, key: Tensor, value: Tensor) -> Tensor:
        """``Σ_j A_ij value_j`` for key and value ``[num_src, heads, channels]``; destinations are the first nodes."""
        sizes = graph.neighborhood_sizes.to(value.dtype).view(-1, 1, 1)
        return self._attend(graph, key, _queries(graph, key), value) * sizes

    def _edge_weights(self, graph: Graph, key: Tensor) -> tuple[Tensor, Tensor]:
        """Edges ``[2, E']``, added self-loops last, and their entries of A, ``[E', heads]``."""
        return edge_list(graph, attention_adjacency(graph, self._coefficients(graph, key, _queries(graph, key))))

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return (self._split_heads(x_j) * alpha.unsqueeze(-1)).flatten(1)


def _queries(graph: Graph, key: Tensor) -> Tensor:
    return key if graph.num_dst == graph.num_src else key[: graph.num_dst]
