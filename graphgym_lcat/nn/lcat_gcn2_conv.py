"""GCNII with the attention adjacency."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.conv import GCN2Conv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.typing import Adj

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn.adjacency_layer import AdjacencyLayer, pop_attention_options
from graphgym_lcat.nn.checks import check_features
from graphgym_lcat.nn.graph_input import check_edge_weight, resolve_graph


class LCATGCN2Conv(AdjacencyLayer, GCN2Conv):
    r"""PyG's :class:`torch_geometric.nn.GCN2Conv` whose normalised adjacency is multiplied by the attention adjacency,

    .. math::
        \mathbf{H}^{\prime} = \left( (1 - \alpha) (\mathbf{\hat{P}} \odot \mathbf{A}^{att}) \mathbf{H} + \alpha \mathbf{H}^{(0)}
        \right) \left( (1 - \beta) \mathbf{I} + \beta \mathbf{\Theta} \right), \qquad A^{att}_{ij} = |N^*_i| \gamma_{ij} .

    Heads split the channels.

    * :math:`\lambda_1 = 0`: GCNII

    Args:
        channels, …, normalize: As in :class:`torch_geometric.nn.GCN2Conv`; ``cached`` has no effect, since the layout of the
            graph is always cached.
        heads (int, optional): Number of heads; must divide ``channels``. (default: :obj:`1`)
        score_weights (str, optional): :obj:`"shared"` scores :math:`\mathbf{H} \mathbf{\Theta}_1`, :obj:`"separate"` uses a
            separate weight. (default: :obj:`"shared"`)
        score, lambda1, lambda2, negative_slope, init, lambda_per_head, backend: As in :class:`LCATConv`.
        **kwargs (optional): Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.
    """

    def __init__(
        self,
        channels: int,
        alpha: float,
        theta: float | None = None,
        layer: int | None = None,
        shared_weights: bool = True,
        cached: bool = False,
        add_self_loops: bool = True,
        normalize: bool = True,
        *,
        score_weights: str = "shared",
        **kwargs: Any,
    ):
        if (theta is None) != (layer is None):
            raise ValueError(f"`theta` and `layer` must be given together, got theta={theta} and layer={layer}")
        attention = pop_attention_options(kwargs)
        super().__init__(channels, alpha, theta, layer, shared_weights, cached, add_self_loops, normalize, **kwargs)
        self._init_score(channels, channels, score_weights, **attention)

    def forward(self, x: Tensor, x_0: Tensor, edge_index: Adj | Graph, edge_weight: Tensor | None = None) -> Tensor:
        """See :class:`torch_geometric.nn.GCN2Conv`."""
        check_features("x", x, self.channels)
        loops = self.normalize and self.add_self_loops
        graph, sparse_values = resolve_graph(edge_index, x.size(0), x.size(0), loops, True, self.flow)
        edge_weight = sparse_values if edge_weight is None else edge_weight
        check_edge_weight(edge_weight, graph)
        key = self._split_heads(x @ self.weight1 if self.lin_score is None else self.lin_score(x))
        if edge_weight is None and not self._is_observed() and not self._has_own_messages(LCATGCN2Conv):
            out = self._propagate_unweighted(graph, key, self._split_heads(x)).flatten(1)
        else:
            out = self._propagate_weighted(graph.edge_index, edge_weight, key, x)
        return self._combine(out, x_0)

    def _propagate_unweighted(self, graph: Graph, key: Tensor, value: Tensor) -> Tensor:
        """``Σ_j n_i γ_ij / √(d_i d_j) h_j``: √d_j divides the values, √d_i the sum."""
        if not self.normalize:
            return self._sum_neighbors(graph, key, value)
        size = graph.neighborhood_sizes.to(value.dtype).view(-1, 1, 1)
        root = size.sqrt()
        inverse_root = torch.where(size > 0, 1 / root.clamp(min=1), 0.0)
        return self._attend(graph, key, key, value * inverse_root) * root

    def _propagate_weighted(self, edges: Tensor, edge_weight: Tensor | None, key: Tensor, x: Tensor) -> Tensor:
        """Edge by edge: for weighted edges, and for explainers, which need messages."""
        size = (x.size(0), x.size(0))
        if self.normalize:
            edges, edge_weight = gcn_norm(edges, edge_weight, x.size(0), False, self.add_self_loops, dtype=x.dtype)
        graph, _ = resolve_graph(edges, *size, False, True)
        _, alpha = self._edge_weights(graph, key)
        if edge_weight is not None:
            alpha = alpha * edge_weight.unsqueeze(-1)
        # propagate_type: (x: Tensor, alpha: Tensor)
        return self.propagate(self._in_flow(edges), x=x, alpha=alpha, size=size)

    def _combine(self, x: Tensor, x_0: Tensor) -> Tensor:
        """The two terms and the identity map of GCNII."""
        x = (1 - self.alpha) * x
        x_0 = self.alpha * x_0[: x.size(0)]
        if self.weight2 is None:
            out = x + x_0
            return torch.addmm(out, out, self.weight1, beta=1 - self.beta, alpha=self.beta)
        out = torch.addmm(x, x, self.weight1, beta=1 - self.beta, alpha=self.beta)
        return out + torch.addmm(x_0, x_0, self.weight2, beta=1 - self.beta, alpha=self.beta)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, alpha={self.alpha}, beta={self.beta}, {self._describe_attention()})"
