r"""Convolved attention as pure functions of tensors: score inputs, coefficients, aggregation.

=================  =====================================================================================
paper              here
=================  =====================================================================================
:math:`W_v h_j`    ``value``  ``[num_src, H, C]``
:math:`W_k h_j`    ``key``    ``[num_src, H, D]``, before convolution
:math:`W_q h_i`    ``query``  ``[num_dst, H, D]``, before convolution
:math:`a`          ``att_dst``, ``att_src`` (its halves for query and key; GAT) or ``att`` (GATv2), ``[H, D]``
:math:`\gamma`     :class:`~graphgym_lcat.kernels.backend.Coefficients`
=================  =====================================================================================

Convolution and projection are both linear, so the projected features are convolved, and for the score of GAT only their products
with ``att``: one number per node and head. The scores of GAT and GATv2 are positively homogeneous, so λ1 multiplies their inputs,
not their results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import scatter

from graphgym_lcat.kernels import Graph, dispatch
from graphgym_lcat.kernels.backend import Coefficients, EdgeTerm, FunctionScore, GATScore, GATv2Score

Lambda = Tensor | float
PairFunction = Callable[[Tensor, Tensor], Tensor]


class ScoreInputs(NamedTuple):
    """The nodes whose pairs are scored.

    Attributes:
        graph: Their graph.
        key: ``[num_src, H, D]``.
        query: ``[num_dst, H, D]``; ``key`` itself for one set of nodes, None for destinations without features.
        edges: Edge features, if there are any.
        query_sources: ``[num_src, H, D]``, the sources projected like ``query``, which its convolution sums; None for ``key``.
    """

    graph: Graph
    key: Tensor
    query: Tensor | None
    edges: EdgeFeatures | None = None
    query_sources: Tensor | None = None


class EdgeFeatures(NamedTuple):
    """Features of the edges, in their order, and of the added self-loops: see :class:`.EdgeTerm`."""

    features: Tensor
    loop_features: Tensor | str


class ScoreParameters(NamedTuple):
    """The parameters of a score.

    Attributes:
        vectors: Attention vectors ``[H, D]`` by name.
        lambda1, lambda2: A float, or a tensor ``[1]`` or ``[H]``.
        negative_slope: Slope of the LeakyReLU.
        edge_weight: ``[H * D, edge_dim]``, the projection of edge features, if there are any.
        backend: What computes the convolution.
    """

    vectors: Mapping[str, Tensor]
    lambda1: Lambda
    lambda2: Lambda
    negative_slope: float
    edge_weight: Tensor | None = None
    backend: str = "auto"


def gat_score(inputs: ScoreInputs, parameters: ScoreParameters) -> GATScore:
    """``LeakyReLU(λ1 aᵀ[Wĥ_i ‖ Wĥ_j])``."""
    graph, key, query, edges, _ = inputs
    vectors, lambda1, lambda2, slope, _, backend = parameters
    heads = key.size(1)
    # Columns of one matrix product: the destinations' half of the attention vector, then the sources'.
    columns = torch.cat([_block_diagonal(vectors["att_dst"]), _block_diagonal(vectors["att_src"])], dim=1)
    products = key.flatten(1) @ columns
    if query is key:
        products = convolve(graph, products, products, _tile(lambda2, 2), backend)
        products = _scale(products, _tile(lambda1, 2))
        scaled_query, scaled_key = products[:, :heads], products[:, heads:]
    else:
        own = products.new_zeros(graph.num_dst, heads) if query is None else query.flatten(1) @ columns[:, :heads]
        scaled_query = _scale(convolve(graph, own, products[:, :heads], lambda2, backend), lambda1)
        scaled_key = _scale(convolve_sources(graph, products[:, heads:], lambda2, backend), lambda1)
    return GATScore(scaled_query, scaled_key, slope, _gat_edge_term(edges, parameters))


def gatv2_score(inputs: ScoreInputs, parameters: ScoreParameters) -> GATv2Score:
    """``λ1 aᵀ LeakyReLU(Wĥ_i + Wĥ_j)``."""
    query, key = _convolved_features(inputs, parameters)
    att = _scale(parameters.vectors["att"].t(), parameters.lambda1).t()
    term = None
    if inputs.edges is not None and parameters.edge_weight is not None:
        term = EdgeTerm(*inputs.edges, parameters.edge_weight.view(*att.shape, -1))
    return GATv2Score(query, key, att, parameters.negative_slope, term)


def function_score(function: PairFunction, inputs: ScoreInputs, parameters: ScoreParameters) -> FunctionScore:
    """``λ1 function(Wĥ_i, Wĥ_j)``."""

    def score(u: Tensor, v: Tensor) -> Tensor:
        result = function(u, v)
        if not isinstance(result, Tensor) or result.shape != u.shape[:-1]:
            got = list(result.shape) if isinstance(result, Tensor) else type(result).__name__
            raise ValueError(
                f"`score` must turn [edges, heads, channels] = {list(u.shape)} into [edges, heads] = "
                f"{list(u.shape[:-1])}, got {got}"
            )
        return _scale(result, parameters.lambda1)

    return FunctionScore(*_convolved_features(inputs, parameters), score)


def convolve(graph: Graph, target: Tensor, source: Tensor, lambda2: Lambda, backend: str) -> Tensor:
    """ĥ of the destinations: see :meth:`.Backend.convolve`. Several λ2 share the columns equally, in their order."""
    if isinstance(lambda2, float):
        if lambda2 == 0:
            return target
    elif lambda2.numel() > 1:
        copies = source.size(1) // lambda2.numel()
        # A view has a node in the autograd graph, as copies have: the gradients of each convolution are added up first.
        lambda2 = lambda2.view(-1) if copies == 1 else lambda2.repeat_interleave(copies)
    return dispatch.convolve(backend, graph, target, source, lambda2)


def convolve_sources(graph: Graph, source: Tensor, lambda2: Lambda, backend: str) -> Tensor:
    """ĥ of the sources. Those that are not destinations have no known in-edges and stay as they are."""
    if not graph.shared_nodes:
        return source
    shared = min(graph.num_src, graph.num_dst)
    target = F.pad(source[:shared], (0, 0, 0, graph.num_dst - shared))
    convolved = convolve(graph, target, source, lambda2, backend)[:shared]
    return torch.cat([convolved, source[shared:]])


def edge_features(graph: Graph, edge_attr: Tensor, fill_value: float | Tensor | str) -> EdgeFeatures:
    """``edge_attr``, and for the added self-loops ``fill_value`` or, if it is a string, that reduction of the in-edges."""
    count = graph.self_loops
    if not isinstance(fill_value, str):
        # A number is filled in on the device: copying it there would wait for a GPU.
        fill = fill_value.to(edge_attr) if isinstance(fill_value, Tensor) else edge_attr.new_full((), fill_value)
        return EdgeFeatures(edge_attr, fill.expand(count, edge_attr.size(1)))
    if not count:
        return EdgeFeatures(edge_attr, edge_attr.new_empty(0, edge_attr.size(1)))
    if fill_value in ("mean", "add", "sum"):
        return EdgeFeatures(edge_attr, "mean" if fill_value == "mean" else "add")
    src, dst = graph.edge_index.long()
    dst = torch.where(src == dst, graph.num_dst, dst)  # dropped self-loops go into a row of their own
    return EdgeFeatures(
        edge_attr, scatter(edge_attr, dst, dim=0, dim_size=graph.num_dst + 1, reduce=fill_value)[:count]
    )


def edge_list(graph: Graph, gamma: Coefficients) -> tuple[Tensor, Tensor]:
    """Edges and coefficients in the order of PyG's ``GATConv``: the input's without dropped self-loops, then the added ones.

    In compiled code, where no shape may depend on data, dropped self-loops stay, with coefficient 0.
    """
    edges, on_edges = graph.edge_index.long(), gamma.edges
    if not torch.compiler.is_compiling() and graph.drops_loops:
        kept = edges[0] != edges[1]
        edges, on_edges = edges[:, kept], on_edges[kept]
    loops = torch.arange(graph.self_loops, device=graph.device)
    return torch.cat([edges, loops.expand(2, -1)], dim=1), torch.cat([on_edges, gamma.loops])


def attention_adjacency(graph: Graph, gamma: Coefficients) -> Coefficients:
    """``n_i γ_ij``, head by head, where n_i is the number of edges that the softmax of node i runs over."""
    sizes = graph.neighborhood_sizes.to(gamma.edges.dtype).unsqueeze(-1)
    at_edges = sizes.index_select(0, graph.edge_index[1].long())
    return Coefficients(gamma.edges * at_edges, gamma.loops * sizes[: graph.self_loops])


def _convolved_features(inputs: ScoreInputs, parameters: ScoreParameters) -> tuple[Tensor, Tensor]:
    """``Wĥ`` of destinations and sources, ``[nodes, H, D]``."""
    graph, key, query, _, query_sources = inputs
    shape = (-1, *key.shape[1:])
    lambda2, backend = parameters.lambda2, parameters.backend
    flat = key.flatten(1)
    if query is key:
        convolved = convolve(graph, flat, flat, lambda2, backend).view(shape)
        return convolved, convolved
    own = flat.new_zeros(graph.num_dst, flat.size(1)) if query is None else query.flatten(1)
    sources = flat if query_sources is None else query_sources.flatten(1)
    convolved_query = convolve(graph, own, sources, lambda2, backend)
    return convolved_query.view(shape), convolve_sources(graph, flat, lambda2, backend).view(shape)


def _gat_edge_term(edges: EdgeFeatures | None, parameters: ScoreParameters) -> EdgeTerm | None:
    if edges is None or parameters.edge_weight is None:
        return None
    # att_edge and the projection are folded into one [H, edge_dim] matrix, so that no edge ever has H·D features.
    att_edge = parameters.vectors["att_edge"]
    weight = parameters.edge_weight.view(*att_edge.shape, -1)
    folded = _scale((weight * att_edge.unsqueeze(-1)).sum(dim=1).t(), parameters.lambda1)
    return EdgeTerm(*edges, folded.t())


def _block_diagonal(vectors: Tensor) -> Tensor:
    """``[H, C] → [H·C, H]``, so that ``features @ result`` are the products of each head's features with its vector."""
    heads, channels = vectors.shape
    eye = torch.eye(heads, dtype=vectors.dtype, device=vectors.device)
    return (vectors.unsqueeze(-1) * eye.unsqueeze(1)).view(heads * channels, heads)


def _scale(columns: Tensor, lambda1: Lambda) -> Tensor:
    """``columns * λ1``."""
    return columns if isinstance(lambda1, float) and lambda1 == 1 else columns * lambda1


def _tile(value: Lambda, copies: int) -> Lambda:
    """One λ for each of the columns ``[copy, head]``, if there is one per head."""
    return value if isinstance(value, float) or value.numel() == 1 else value.repeat(copies)
