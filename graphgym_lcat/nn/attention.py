r"""The attention core: score, λ, softmax and aggregation, once for all layers.

=================  =====================================================================================
paper              here
=================  =====================================================================================
:math:`W_v h_j`    ``value``  ``[num_src, H, C]``
:math:`W_k h_j`    ``key``    ``[num_src, H, D]``, before convolution
:math:`W_q h_i`    ``query``  ``[num_dst, H, D]``, before convolution
:math:`a`          ``att_dst``, ``att_src`` (its halves for query and key; GAT) or ``att`` (GATv2)
:math:`\gamma`     ``gamma``, a pair: coefficients of the stored edges, coefficients of the added self-loops
=================  =====================================================================================

Convolution and projection are both linear, so the projected features are convolved, and for the score of GAT only their products
with ``att``: one number per node and head. GAT's and GATv2's score are positively homogeneous, so λ1 multiplies what goes into
them, not what comes out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.utils import scatter

from graphgym_lcat.kernels import Graph, reference
from graphgym_lcat.kernels.dispatch import BACKENDS, kernels_for
from graphgym_lcat.kernels.reference import Gamma
from graphgym_lcat.nn.checks import check_choice, check_positive
from graphgym_lcat.nn.init import INITS, Projection, init_attention_vector
from graphgym_lcat.nn.interpolation import Interpolation, Lambdas, describe

SCORES = ("gat", "gatv2")
FILL_REDUCTIONS = ("add", "sum", "mean", "min", "max", "mul")

Score = str | Callable[[Tensor, Tensor], Tensor]


class ConvolvedAttention:
    """Parameters and computation of the attention coefficients, mixed into the layers.

    A layer calls :meth:`_init_attention` in its constructor, :meth:`_reset_attention` in ``reset_parameters``, and then
    :meth:`_attend` (values summed by attention) or :meth:`_gamma` (the coefficients themselves).
    """

    def _init_attention(
        self,
        heads: int,
        channels: int,
        *,
        score: Score,
        lambda1: float | str,
        lambda2: float | str,
        lambda_per_head: bool,
        negative_slope: float,
        init: str,
        edge_dim: int | None = None,
        fill_value: float | Tensor | str = "mean",
        backend: str = "auto",
    ) -> None:
        heads = check_positive("heads", heads)
        check_choice("init", init, INITS)
        check_choice("backend", backend, BACKENDS)
        if not callable(score):
            check_choice("score", score, SCORES)
        elif edge_dim is not None:
            raise ValueError(f"`edge_dim` needs `score` to be 'gat' or 'gatv2', got the function {_name(score)}")
        if isinstance(fill_value, str):
            check_choice("fill_value", fill_value, FILL_REDUCTIONS)
        self.heads = heads
        self.score_channels = channels
        self.score = score  # a Module is registered with its parameters
        self.negative_slope = negative_slope
        self.edge_dim = edge_dim
        self.fill_value = fill_value
        self.init = init
        self.backend = backend
        self.interpolation = Interpolation(lambda1, lambda2, heads if lambda_per_head else 1)

        vectors = {"gat": ("att_src", "att_dst"), "gatv2": ("att",)}.get(score, ()) if isinstance(score, str) else ()
        if edge_dim is not None and score == "gat":
            vectors += ("att_edge",)
        for name in ("att_src", "att_dst", "att", "att_edge"):
            parameter = Parameter(torch.empty(1, heads, channels)) if name in vectors else None
            self.register_parameter(name, parameter)
        self.lin_edge = None if edge_dim is None else Projection(edge_dim, heads * channels, init)
        if isinstance(self, MessagePassing):
            # PyG compiles `propagate` class by class and takes for the original, which explainers need, what a class inherits:
            # for a subclass of a layer that is compiled already, that is the compiled one of its parent.
            type(self)._orig_propagate = MessagePassing.propagate

    def _reset_attention(self) -> None:
        self.interpolation.reset_parameters()
        for vector in (self.att_src, self.att_dst, self.att, self.att_edge):
            if vector is not None:
                init_attention_vector(vector, self.init)
        if self.lin_edge is not None:
            self.lin_edge.reset_parameters()
        if isinstance(self.score, Module) and hasattr(self.score, "reset_parameters"):
            self.score.reset_parameters()

    def lambdas(self) -> Lambdas:
        """λ1 and λ2 as plain numbers: one each, or one per head with ``lambda_per_head=True``."""
        return self.interpolation.lambdas()

    def _describe_attention(self) -> str:
        score = repr(self.score) if isinstance(self.score, str) else _name(self.score)
        return f"heads={self.heads}, score={score}, {describe(self.interpolation)}"

    def _is_observed(self) -> bool:
        """An explainer or a hook wants to see messages, so they must exist."""
        return bool(
            self.explain
            or self._message_forward_pre_hooks
            or self._message_forward_hooks
            or self._propagate_forward_pre_hooks
            or self._propagate_forward_hooks
            or self._aggregate_forward_pre_hooks
            or self._aggregate_forward_hooks
        )

    def _in_flow(self, edges: Tensor) -> Tensor:
        """Edges from sources to destinations in the order in which ``propagate`` wants them."""
        return edges if self.flow == "source_to_target" else edges.flip(0)

    def _attend(
        self,
        graph: Graph,
        key: Tensor,
        query: Tensor | None,
        value: Tensor,
        edge_attr: Tensor | None = None,
        dropout: float = 0.0,
    ) -> Tensor:
        """``Σ_j gamma_ij value_j``, ``[num_dst, H, C]``. ``query`` is ``key`` for one set of nodes, None for no features."""
        lambda1, lambda2 = self.interpolation()
        kernels = kernels_for(self.backend, value)
        if isinstance(lambda1, float) and lambda1 == 0 and not dropout:
            return kernels.neighbor_mean(graph, value.flatten(1)).view(-1, *value.shape[1:])
        if dropout or edge_attr is not None or not isinstance(self.score, str):
            gamma = self._gamma(graph, key, query, edge_attr)
            return reference.weighted_sum(graph, tuple(F.dropout(part, dropout) for part in gamma), value)
        if self.score == "gat":
            scaled_query, scaled_key = self._gat_inputs(graph, key, query, lambda1, lambda2)
            return kernels.attend_gat(graph, scaled_query, scaled_key, value, self.negative_slope)
        query, key = self._convolved_features(graph, key, query, lambda2)
        return kernels.attend_gatv2(graph, query, key, value, self._scaled_att(lambda1), self.negative_slope)

    def _gamma(self, graph: Graph, key: Tensor, query: Tensor | None, edge_attr: Tensor | None = None) -> Gamma:
        """The attention coefficients, edge by edge."""
        lambda1, lambda2 = self.interpolation()
        if isinstance(lambda1, float) and lambda1 == 0:
            return self._uniform_gamma(graph, key)
        if self.score == "gat":
            query, key = self._gat_inputs(graph, key, query, lambda1, lambda2)
            term = None if edge_attr is None else self._gat_edge_term(graph, edge_attr, lambda1)
            return reference.softmax(graph, *reference.gat_scores(graph, query, key, self.negative_slope, term))
        query, key = self._convolved_features(graph, key, query, lambda2)
        term = None if edge_attr is None else self._edge_features(graph, edge_attr)
        score = self._gatv2_score(lambda1) if self.score == "gatv2" else self._custom_score(lambda1)
        return reference.softmax(graph, *reference.pair_scores(graph, query, key, score, term))

    def _uniform_gamma(self, graph: Graph, key: Tensor) -> Gamma:
        equal = key.new_zeros(graph.num_edges, self.heads), key.new_zeros(graph.self_loops, self.heads)
        return reference.softmax(graph, *equal)

    def _gat_inputs(
        self,
        graph: Graph,
        key: Tensor,
        query: Tensor | None,
        lambda1: Tensor | float,
        lambda2: Tensor | float,
    ) -> tuple[Tensor, Tensor]:
        """``λ1 aᵀĥ`` of destinations and sources: ``[num_dst, H]``, ``[num_src, H]``."""
        heads = self.heads
        # Columns of one matrix product: the destinations' half of the attention vector, then the sources'.
        columns = torch.cat([_block_diagonal(self.att_dst[0]), _block_diagonal(self.att_src[0])], dim=1)
        if query is key:
            both = key.flatten(1) @ columns
            both = self._convolve(graph, both, both, lambda2)
            both = _scale(both, lambda1)
            return both[:, :heads], both[:, heads:]
        of_sources = key.flatten(1) @ columns
        own = of_sources.new_zeros(graph.num_dst, heads) if query is None else query.flatten(1) @ columns[:, :heads]
        scaled_query = self._convolve(graph, own, of_sources[:, :heads], lambda2)
        scaled_key = self._convolve_sources(graph, of_sources[:, heads:], lambda2)
        return _scale(scaled_query, lambda1), _scale(scaled_key, lambda1)

    def _convolved_features(
        self, graph: Graph, key: Tensor, query: Tensor | None, lambda2: Tensor | float
    ) -> tuple[Tensor, Tensor]:
        """``Wĥ`` of destinations and sources, ``[nodes, H, D]``."""
        shape = (-1, *key.shape[1:])
        flat = key.flatten(1)
        if query is key:
            convolved = self._convolve(graph, flat, flat, lambda2).view(shape)
            return convolved, convolved
        own = flat.new_zeros(graph.num_dst, flat.size(1)) if query is None else query.flatten(1)
        convolved_query = self._convolve(graph, own, flat, lambda2)
        return convolved_query.view(shape), self._convolve_sources(graph, flat, lambda2).view(shape)

    def _convolve(self, graph: Graph, target: Tensor, source: Tensor, lambda2: Tensor | float) -> Tensor:
        if isinstance(lambda2, float):
            if lambda2 == 0:
                return target
        elif lambda2.numel() > 1:
            copies = source.size(1) // self.heads
            # Columns are [head, channel] for features and [half, head] for the two scalars of GAT.
            lambda2 = (
                lambda2.repeat(copies) if copies == 2 and self.score == "gat" else lambda2.repeat_interleave(copies)
            )
        return kernels_for(self.backend, source).convolve(graph, target, source, lambda2)

    def _convolve_sources(self, graph: Graph, source: Tensor, lambda2: Tensor | float) -> Tensor:
        """Convolves the sources that are destinations too; of the others no in-edges are known, they stay as they are."""
        if not graph.shared_nodes:
            return source
        shared = min(graph.num_src, graph.num_dst)
        target = F.pad(source[:shared], (0, 0, 0, graph.num_dst - shared))
        convolved = self._convolve(graph, target, source, lambda2)[:shared]
        return torch.cat([convolved, source[shared:]])

    def _scaled_att(self, lambda1: Tensor | float) -> Tensor:
        return _scale(self.att[0].t(), lambda1).t()

    def _gatv2_score(self, lambda1: Tensor | float) -> Callable[..., Tensor]:
        att = self._scaled_att(lambda1)

        def score(u: Tensor, v: Tensor, edge_attr: Tensor | None = None) -> Tensor:
            both = u + v
            if edge_attr is not None:
                both = both + self.lin_edge(edge_attr).view_as(both)
            return (F.leaky_relu(both, self.negative_slope) * att).sum(dim=-1)

        return score

    def _custom_score(self, lambda1: Tensor | float) -> Callable[[Tensor, Tensor], Tensor]:
        def score(u: Tensor, v: Tensor) -> Tensor:
            result = self.score(u, v)
            if not isinstance(result, Tensor) or result.shape != u.shape[:-1]:
                got = list(result.shape) if isinstance(result, Tensor) else type(result).__name__
                raise ValueError(
                    f"`score` must turn [edges, heads, channels] = {list(u.shape)} into [edges, heads] = "
                    f"{list(u.shape[:-1])}, got {got}"
                )
            return _scale(result, lambda1)

        return score

    def _gat_edge_term(self, graph: Graph, edge_attr: Tensor, lambda1: Tensor | float) -> tuple[Tensor, Tensor]:
        # att_edge and lin_edge are folded into one [edge_dim, H] matrix, so that no edge ever has H·C features.
        weight = self.lin_edge.weight.view(self.heads, self.score_channels, -1)
        folded = _scale((weight * self.att_edge[0].unsqueeze(-1)).sum(dim=1).t(), lambda1)
        attr, loop_attr = self._edge_features(graph, edge_attr)
        return attr @ folded, loop_attr @ folded

    def _edge_features(self, graph: Graph, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        """Features of the stored edges in the order of their slots, and ``fill_value`` for the added self-loops."""
        attr = edge_attr.index_select(0, graph.edge_id)
        n = graph.self_loops
        if not isinstance(self.fill_value, str):
            fill = torch.as_tensor(self.fill_value, dtype=attr.dtype, device=attr.device)
            return attr, fill.expand(n, attr.size(1))
        loops = scatter(attr, graph.dst, dim=0, dim_size=graph.num_dst + 1, reduce=self.fill_value)
        return attr, loops[:n]


def edge_list(graph: Graph, gamma: Gamma) -> tuple[Tensor, Tensor]:
    """Edges and coefficients in the order of PyG's ``GATConv``: the input's without dropped self-loops, then the added ones.

    In compiled code, where no shape may depend on data, dropped self-loops stay, with coefficient 0.
    """
    dst, coefficients = graph.dst, gamma[0]
    if graph.parked:
        dropped = dst == graph.num_dst
        dst = torch.where(dropped, graph.src, dst)
        coefficients = coefficients.masked_fill(dropped.unsqueeze(-1), 0.0)
    order = torch.argsort(graph.edge_id)
    loops = torch.arange(graph.self_loops, device=graph.device)
    edges = torch.stack([torch.cat([graph.src[order], loops]), torch.cat([dst[order], loops])])
    return edges, torch.cat([coefficients[order], gamma[1]])


def neighborhood_sizes(graph: Graph) -> Tensor:
    """``[num_dst]``, the number of edges that a softmax runs over: stored ones and the added self-loop."""
    count = graph.rowptr.diff()
    return count + (torch.arange(graph.num_dst, device=count.device) < graph.self_loops)


def _block_diagonal(vectors: Tensor) -> Tensor:
    """``[H, C] → [H·C, H]``, so that ``features @ result`` are the products of each head's features with its vector."""
    heads, channels = vectors.shape
    eye = torch.eye(heads, dtype=vectors.dtype, device=vectors.device)
    return (vectors.unsqueeze(-1) * eye.unsqueeze(1)).view(heads * channels, heads)


def _scale(columns: Tensor, lambda1: Tensor | float) -> Tensor:
    """Multiplies ``[…, H]`` or ``[…, 2H]`` by λ1, which is one number or one per head."""
    if isinstance(lambda1, float):
        return columns if lambda1 == 1 else columns * lambda1
    if lambda1.numel() > 1 and columns.size(-1) != lambda1.numel():
        lambda1 = lambda1.repeat(columns.size(-1) // lambda1.numel())
    return columns * lambda1


def _name(function: Callable) -> str:
    return getattr(function, "__name__", None) or type(function).__name__
