"""PNA with the attention adjacency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.conv import PNAConv
from torch_geometric.typing import Adj, OptTensor  # noqa: F401  PyG reads the comment about `propagate`

from graphgym_lcat.kernels import Graph, dispatch
from graphgym_lcat.nn.adjacency_layer import AdjacencyLayer, pop_attention_options
from graphgym_lcat.nn.checks import check_features
from graphgym_lcat.nn.functional import ScoreInputs
from graphgym_lcat.nn.graph_input import check_edge_attr, resolve_graph
from graphgym_lcat.nn.pna_aggregation import degree_scales, scaled_linear, statistics_of


class LCATPNAConv(AdjacencyLayer, PNAConv):
    r"""PyG's :class:`torch_geometric.nn.PNAConv` whose messages are multiplied by the attention adjacency,

    .. math::
        \mathbf{h}^{\prime}_i = \bigoplus_{j \in N_i} A^{att}_{ij} M(\mathbf{h}_i, \mathbf{h}_j),
        \qquad A^{att}_{ij} = |N_i| \gamma_{ij},

    before every aggregator and scaler. The edges are used as given, as in ``PNAConv``; heads split the channels of the message.

    * :math:`\lambda_1 = 0`: PNA

    Args:
        in_channels, …, train_norm: As in :class:`torch_geometric.nn.PNAConv`.
        heads (int, optional): Number of heads; must divide the channels of a message, ``towers * F_in``.
            (default: :obj:`1`)
        score_weights (str, optional): :obj:`"shared"` scores with the sender's half of the first layer of the message (one
            tower only), :obj:`"separate"` with its own weight. (default: :obj:`"shared"`)
        score, lambda1, lambda2, negative_slope, init, lambda_per_head, backend: As in :class:`LCATConv`.
        **kwargs (optional): Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        aggregators: list[str],
        scalers: list[str],
        deg: Tensor,
        edge_dim: int | None = None,
        towers: int = 1,
        pre_layers: int = 1,
        post_layers: int = 1,
        divide_input: bool = False,
        act: str | Callable | None = "relu",
        act_kwargs: dict[str, Any] | None = None,
        train_norm: bool = False,
        *,
        score_weights: str = "shared",
        **kwargs: Any,
    ):
        attention = pop_attention_options(kwargs)
        if towers > 1 and score_weights == "shared":
            raise ValueError(f"`score_weights='shared'` needs one tower, got {towers}; use score_weights='separate'")
        super().__init__(
            in_channels,
            out_channels,
            aggregators,
            scalers,
            deg,
            edge_dim=edge_dim,
            towers=towers,
            pre_layers=pre_layers,
            post_layers=post_layers,
            divide_input=divide_input,
            act=act,
            act_kwargs=act_kwargs,
            train_norm=train_norm,
            **kwargs,
        )
        self._init_score(in_channels, self.F_in * towers, score_weights, **attention)

    def forward(self, x: Tensor, edge_index: Adj | Graph, edge_attr: Tensor | None = None) -> Tensor:
        """See :class:`torch_geometric.nn.PNAConv`."""
        check_features("x", x, self.in_channels)
        num_nodes = x.size(0)
        graph, sparse_values = resolve_graph(edge_index, num_nodes, num_nodes, False, True, self.flow)
        if edge_attr is None and self.edge_dim is not None:
            edge_attr = sparse_values
        edge_attr = check_edge_attr(edge_attr, self.edge_dim, graph)
        towers = 1 if not self.divide_input else self.towers
        inputs = x.view(-1, towers, self.F_in).expand(-1, self.towers, -1)
        ends = self._message_ends(inputs) if edge_attr is None and len(self.pre_nns[0]) == 1 else None
        key = self._split_heads(self._score_features(x) if ends is None or self.lin_score is not None else ends[0])
        names = statistics_of(self.aggr_module)
        observed = self._is_observed() or self._has_own_messages(LCATPNAConv)
        if ends is not None and names is not None and self.towers == 1 and not observed:
            return self._aggregate_linear(graph, x, key, *ends, names)
        edges, alpha = self._edge_weights(graph, key)

        sender, receiver = (inputs, inputs) if ends is None else ends
        size = (num_nodes, num_nodes)
        # Not as a pair: with a reversed flow, PyG's two ways of collecting arguments disagree on which half is the sender's.
        # propagate_type: (sender: Tensor, receiver: Tensor, edge_attr: OptTensor, alpha: Tensor)
        out = self.propagate(
            self._in_flow(edges), sender=sender, receiver=receiver, edge_attr=edge_attr, alpha=alpha, size=size
        )
        out = torch.cat([inputs, out], dim=-1)
        out = torch.cat([post(out[:, tower]) for tower, post in enumerate(self.post_nns)], dim=1)
        return self.lin(out)

    def _aggregate_linear(
        self, graph: Graph, x: Tensor, key: Tensor, sender: Tensor, receiver: Tensor, names: tuple[str, ...]
    ) -> Tensor:
        """The layer where messages are sums of a sender's and a receiver's term and need not exist one by one."""
        score = self._pair_score(ScoreInputs(graph, key, key))
        statistics = dispatch.statistics(self.backend, graph, score, receiver.flatten(1), sender.flatten(1), names)
        scales = degree_scales(self.aggr_module, graph.neighborhood_sizes.to(statistics.dtype))
        return self.lin(self._post_layers(x, statistics, scales))

    def _post_layers(self, x: Tensor, statistics: Tensor, scales: list[Tensor | None]) -> Tensor:
        first, *others = self.post_nns[0]
        if first._forward_hooks or first._forward_pre_hooks:  # they expect the call of the module
            scaled = [statistics if scale is None else statistics * scale for scale in scales]
            return self.post_nns[0](torch.cat([x, *scaled], dim=1))
        out = scaled_linear(x, statistics, scales, first.weight, first.bias)
        for module in others:
            out = module(out)
        return out

    def message(  # type: ignore[override]  # PyG looks at the names of the arguments
        self, receiver_i: Tensor, sender_j: Tensor, edge_attr: Tensor | None, alpha: Tensor
    ) -> Tensor:
        linear = edge_attr is None and len(self.pre_nns[0]) == 1
        message = receiver_i + sender_j if linear else PNAConv.message(self, receiver_i, sender_j, edge_attr)
        if self.interpolation.fixed1 == 0:  # alpha is 1, up to rounding
            return message
        return (self._split_heads(message) * alpha.unsqueeze(-1)).view_as(message)

    def _message_ends(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The two terms of a message of one linear layer, of sender and receiver: one product per node, not per edge."""
        if self.towers == 1:
            linear = self.pre_nns[0][0]
            receiver, sender = linear.weight.split(self.F_in, dim=1)
            return F.linear(x, sender), F.linear(x, receiver, linear.bias)
        weight = torch.stack([pre[0].weight for pre in self.pre_nns])
        bias = torch.stack([pre[0].bias for pre in self.pre_nns])
        receiver, sender = weight.split(self.F_in, dim=2)
        return _by_tower(x, sender), _by_tower(x, receiver) + bias

    def _score_features(self, x: Tensor) -> Tensor:
        if self.lin_score is not None:
            return self.lin_score(x)
        return F.linear(x, self.pre_nns[0][0].weight[:, self.F_in : 2 * self.F_in])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, towers={self.towers}, "
            f"edge_dim={self.edge_dim}, {self._describe_attention()})"
        )


def _by_tower(x: Tensor, weight: Tensor) -> Tensor:
    return torch.einsum("ntf,tgf->ntg", x, weight)
