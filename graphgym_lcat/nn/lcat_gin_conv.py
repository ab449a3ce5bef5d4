"""GIN with the attention adjacency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.conv import GINConv
from torch_geometric.typing import Adj

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn.adjacency_layer import AdjacencyLayer, pop_attention_options
from graphgym_lcat.nn.checks import check_features, check_positive
from graphgym_lcat.nn.graph_input import resolve_graph


class LCATGINConv(AdjacencyLayer, GINConv):
    r"""PyG's :class:`torch_geometric.nn.GINConv` over the attention adjacency,

    .. math::
        \mathbf{h}^{\prime}_i = h_{\Theta} \left( (1 + \epsilon) A^{att}_{ii} \mathbf{h}_i +
        \sum_{j \in N_i} A^{att}_{ij} \mathbf{h}_j \right), \qquad A^{att}_{ij} = |N^*_i| \gamma_{ij},

    with the softmax over :math:`N^*_i = N_i \cup \{i\}`; self-loops in the input are dropped. Heads split the channels. GIN has no
    weight that the score could share, so the score has its own.

    * :math:`\lambda_1 = 0`: GIN

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

    def forward(self, x: Tensor, edge_index: Adj | Graph, size: tuple[int, int] | None = None) -> Tensor:
        """See :class:`torch_geometric.nn.GINConv`; bipartite graphs are not supported."""
        check_features("x", x, self.in_channels)
        num_nodes = x.size(0)
        if size is not None and tuple(size) != (num_nodes, num_nodes):
            raise ValueError(f"`size` must be {(num_nodes, num_nodes)}, one set of nodes, got {tuple(size)}")
        graph, _ = resolve_graph(edge_index, num_nodes, num_nodes, True, True, self.flow)
        assert self.lin_score is not None
        key, value = self._split_heads(self.lin_score(x)), self._split_heads(x)
        if not (self._weighs_itself() or self._is_observed() or self._has_own_messages(LCATGINConv)):
            return self.nn(self._sum_neighbors(graph, key, value).flatten(1))
        edges, alpha = self._edge_weights(graph, key)
        edges, count = self._in_flow(edges), edges.size(1) - graph.self_loops
        # propagate_type: (x: Tensor, alpha: Tensor)
        out = self.propagate(edges[:, :count], x=x, alpha=alpha[:count], size=(num_nodes, num_nodes))
        own = (1 + self.eps) * (alpha[count:].unsqueeze(-1) * value).flatten(1)
        return self.nn(out + own)

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
