"""The attention adjacency: edge weights for any PyG layer that takes them."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.typing import Adj

from graphgym_lcat.kernels import Graph
from graphgym_lcat.kernels.backend import Coefficients
from graphgym_lcat.nn.attention import ConvolvedAttention
from graphgym_lcat.nn.checks import check_features, check_positive
from graphgym_lcat.nn.functional import attention_adjacency, edge_list
from graphgym_lcat.nn.graph_input import check_edge_weight, resolve_graph
from graphgym_lcat.nn.init import Projection


class AttentionAdjacency(ConvolvedAttention):
    r"""Turns node features and a graph into ``(edge_index, edge_weight)`` for any layer that takes ``edge_weight``.

    .. math::
        A^{att}_{ij} = n_i \gamma_{ij}

    where :math:`\gamma` are the attention coefficients of :class:`LCATConv` and :math:`n_i` is the number of edges that the
    softmax of node :math:`i` runs over. The rows of :math:`A^{att}` have the same sums as those of the adjacency matrix. With
    :math:`\lambda_1 = 0` it is the adjacency matrix.

    .. code-block:: python

        adjacency = AttentionAdjacency(16, heads=4)
        conv = GraphConv(16, 32)
        x = conv(x, *adjacency(x, edge_index))

    Args:
        in_channels (int): Size of each input sample, or −1 to derive it from the first input.
        channels (int, optional): Size of the score's features, per head. (default: :obj:`8`)
        heads (int, optional): Number of heads; the weight of an edge is their mean. (default: :obj:`1`)
        negative_slope (float, optional): Slope of the LeakyReLU. (default: :obj:`0.2`)
        add_self_loops (bool, optional): Drop the self-loops of the input and add one to every node. By default the edges are
            used and returned as given, because the softmax must run over exactly the edges that the layer aggregates.
            (default: :obj:`False`)
        score, lambda1, lambda2, init, lambda_per_head, backend: As in :class:`LCATConv`.

    Shapes:
        - **input:** node features ``[N, in_channels]``, a graph as in :class:`LCATConv`, edge weights ``[E]`` to multiply
          with *(optional)*
        - **output:** ``edge_index`` ``[2, E']`` and ``edge_weight`` ``[E']``
    """

    def __init__(
        self,
        in_channels: int,
        channels: int = 8,
        heads: int = 1,
        negative_slope: float = 0.2,
        add_self_loops: bool = False,
        **attention: Any,
    ):
        super().__init__()
        channels = check_positive("channels", channels)
        self._init_attention(heads, channels, negative_slope=negative_slope, **attention)
        self.in_channels = in_channels
        self.add_self_loops = add_self_loops
        self.lin_score = Projection(in_channels, self.heads * channels, self.init)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self._reset_attention()
        self.lin_score.reset_parameters()

    def forward(self, x: Tensor, edge_index: Adj | Graph, edge_weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        check_features("x", x, self.in_channels)
        num_nodes = x.size(0)
        graph, sparse_values = resolve_graph(edge_index, num_nodes, num_nodes, self.add_self_loops, shared_nodes=True)
        if edge_weight is None:
            edge_weight = sparse_values
        if edge_weight is not None and self.add_self_loops:
            raise ValueError(
                "weights, given as `edge_weight` or as the values of a sparse matrix, need `add_self_loops=False`: the added "
                "self-loops would have none"
            )
        check_edge_weight(edge_weight, graph)
        key = self.lin_score(x).view(-1, self.heads, self.score_channels)
        gamma = attention_adjacency(graph, self._coefficients(graph, key, key))
        edges, weights = edge_list(graph, Coefficients(*(part.mean(dim=1, keepdim=True) for part in gamma)))
        weights = weights.view(-1)
        return edges, weights if edge_weight is None else weights * edge_weight

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self._describe_attention()})"
