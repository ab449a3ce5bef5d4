"""GIN with the attention adjacency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.conv import GINConv
from torch_geometric.typing import Adj, OptPairTensor

from graphgym_lcat.kernels import Graph, find_graph
from graphgym_lcat.nn.adjacency_layer import AdjacencyLayer, pop_attention_options
from graphgym_lcat.nn.checks import check_features, check_positive
from graphgym_lcat.nn.graph_input import declared_size, resolve_graph


class LCATGINConv(AdjacencyLayer, GINConv):
    r"""PyG's :class:`torch_geometric.nn.GINConv` over the attention adjacency,

    .. math::
        \mathbf{h}^{\prime}_i = h_{\Theta} \left( (1 + \epsilon) A^{att}_{ii} \mathbf{h}_i +
        \sum_{j \in N_i} A^{att}_{ij} \mathbf{h}_j \right), \qquad A^{att}_{ij} = |N^*_i| \gamma_{ij},

    with the softmax over :math:`N^*_i = N_i \cup \{i\}`; self-loops in the input are dropped. Heads split the channels. GIN has no
    weight that the score could share, so the score has its own.

    * :math:`\lambda_1 = 0`: GIN, on graphs without self-loops

    For a pair ``x = (x_src, x_dst)``, :math:`\mathbf{h}_i` of a destination is in ``x_dst``, and sources are other nodes.

    Args:
        nn, eps, train_eps: As in :class:`torch_geometric.nn.GINConv`.
        in_channels (int, optional): Size of each input sample; by default that of the first linear layer in ``nn``.
        heads (int, optional): Number of heads; must divide ``in_channels``. (default: :obj:`1`)
        score, lambda1, lambda2, negative_slope, init, lambda_per_head, backend: As in :class:`LCATConv`.
        **kwargs (optional): Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.
    """

    def __init__(
        self,
        nn: Callable,
        eps: float = 0.0,
        train_eps: bool = False,
        *,
        in_channels: int | None = None,
        **kwargs: Any,
    ):
        attention = pop_attention_options(kwargs)
        super().__init__(nn, eps, train_eps, **kwargs)
        self.in_channels = _first_width(nn) if in_channels is None else check_positive("in_channels", in_channels)
        self._init_score(self.in_channels, self.in_channels, **attention)

    def forward(
        self, x: Tensor | OptPairTensor, edge_index: Adj | Graph, size: tuple[int, int] | None = None
    ) -> Tensor:
        """See :class:`torch_geometric.nn.GINConv`."""
        if isinstance(x, Tensor) or x[1] is x[0]:
            features = x if isinstance(x, Tensor) else x[0]
            graph = self._one_set(features, edge_index, size)
        else:
            features, graph = self._two_sets(x[0], x[1], edge_index, size)
        assert self.lin_score is not None
        key, value = self._split_heads(self.lin_score(features)), self._split_heads(features)
        if not (self._weighs_itself() or self._is_observed() or self._has_own_messages(LCATGINConv)):
            return self.nn(self._sum_neighbors(graph, key, value).flatten(1))
        edges, alpha = self._edge_weights(graph, key)
        edges, count = self._in_flow(edges), edges.size(1) - graph.self_loops
        sizes = (graph.num_src, graph.num_dst) if self.flow == "source_to_target" else (graph.num_dst, graph.num_src)
        # propagate_type: (x: Tensor, alpha: Tensor)
        out = self.propagate(edges[:, :count], x=features, alpha=alpha[:count], size=sizes)
        own = (1 + self.eps) * (alpha[count:].unsqueeze(-1) * value[: graph.num_dst]).flatten(1)
        return self.nn(out + own)

    def _one_set(self, x: Tensor, edge_index: Adj | Graph, size: tuple[int, int] | None) -> Graph:
        check_features("x", x, self.in_channels)
        num_nodes = x.size(0)
        if size is not None and tuple(size) != (num_nodes, num_nodes):
            raise ValueError(f"`size` must be {(num_nodes, num_nodes)}, one set of nodes, got {tuple(size)}")
        return resolve_graph(edge_index, num_nodes, num_nodes, True, True, self.flow)[0]

    def _two_sets(
        self, x_src: Tensor, x_dst: Tensor | None, edge_index: Adj | Graph, size: tuple[int, int] | None
    ) -> tuple[Tensor, Graph]:
        """All nodes, destinations first, and the graph of the edges from the others to them."""
        check_features("x[0]", x_src, self.in_channels)
        if x_dst is None:  # as if their features were 0
            declared = declared_size(edge_index) if size is None else size
            x_dst = x_src.new_zeros(x_src.size(0) if declared[1] is None else declared[1], self.in_channels)
        check_features("x[1]", x_dst, self.in_channels)
        sizes = x_src.size(0), x_dst.size(0)
        if size is not None and tuple(size) != sizes:
            raise ValueError(f"`size` must be {sizes}, the numbers of nodes in `x`, got {tuple(size)}")
        src, dst = resolve_graph(edge_index, *sizes, False, False, self.flow)[
            0
        ].edge_index.long()  # small types would overflow
        graph = find_graph(torch.stack([src + sizes[1], dst]), sum(sizes), sizes[1], True, True)
        return torch.cat([x_dst, x_src]), graph

    def _weighs_itself(self) -> bool:
        """Whether ε may be nonzero: learned, given, or loaded. Compiled code cannot read a loaded one."""
        return isinstance(self.eps, torch.nn.Parameter) or torch.compiler.is_compiling() or bool(self.eps != 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(nn={self.nn}, {self._describe_attention()})"


def _first_width(nn: Callable) -> int:
    """Input size of the first linear layer."""
    for module in nn.modules() if isinstance(nn, torch.nn.Module) else ():
        for name in ("in_channels", "in_features"):
            width = getattr(module, name, None)
            if isinstance(width, int) and width > 0:
                return width
    raise ValueError("`in_channels` must be given: `nn` has no linear layer from which to read it")
