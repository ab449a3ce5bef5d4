"""The learnable convolutional attention layer."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric import EdgeIndex
from torch_geometric.typing import Adj, OptPairTensor, SparseTensor
from torch_geometric.utils import is_torch_sparse_tensor
from torch_geometric.utils.sparse import (
    set_sparse_value,
    to_torch_coo_tensor,
    to_torch_csc_tensor,
    to_torch_csr_tensor,
)

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn.attention import AttentionLayer
from graphgym_lcat.nn.checks import check_choice, check_features, check_positive
from graphgym_lcat.nn.functional import EdgeFeatures, edge_features, edge_list
from graphgym_lcat.nn.graph_input import check_edge_attr, declared_size, resolve_graph
from graphgym_lcat.nn.init import Projection
from graphgym_lcat.nn.scores import SCORE_WEIGHTS, AnyScore

FILL_REDUCTIONS = ("add", "sum", "mean", "min", "max", "mul")


class LCATConv(AttentionLayer):
    r"""The learnable graph convolutional attention operator from the `"Learnable Graph Convolutional Attention Networks"
    <https://openreview.net/forum?id=WsUMeHPo-2>`_ paper, with the arguments of :class:`torch_geometric.nn.GATConv`.

    .. math::
        \mathbf{h}^{\prime}_i = \sum_{j \in N^*_i} \gamma_{ij} \mathbf{W}_v \mathbf{h}_j, \qquad
        \gamma_{ij} = \operatorname{softmax}_{j \in N^*_i} \left(
        \lambda_1 \, \alpha(\mathbf{W}_q \hat{\mathbf{h}}_i, \mathbf{W}_k \hat{\mathbf{h}}_j) \right), \qquad
        \hat{\mathbf{h}}_i = \frac{\mathbf{h}_i + \lambda_2 \sum_{\ell \in N_i} \mathbf{h}_\ell}{1 + \lambda_2 |N_i|}

    with :math:`N^*_i = N_i \cup \{i\}`. Special cases:

    * :math:`\lambda_1 = 0`: GCN, the mean over :math:`N^*_i`; no score is computed
    * :math:`\lambda_1 = 1, \lambda_2 = 0`: GAT or GATv2
    * :math:`\lambda_1 = 1, \lambda_2 = 1`: CAT, see :class:`CATConv`

    Self-loops in the input are dropped before one is added to every node. Duplicate edges each count, in the softmax and in
    :math:`|N_i|`, as in PyG's ``GATConv``. With ``add_self_loops=False`` the edges are used as given, and :math:`\hat{h}_i`
    still counts :math:`h_i` once.

    **Bipartite graphs and sampled blocks.** For a pair ``x = (x_src, x_dst)`` the in-edges of most sources are unknown, so
    :math:`\hat{h}_j = h_j` for a source that is not also a destination; :math:`\hat{h}_i` of a destination sums the projected
    sources. With ``add_self_loops=True`` source :math:`j` and destination :math:`j` are one node wherever both exist, as in
    PyG's ``GATConv`` and in the blocks of its samplers, ``(x, x[:num_dst])``; with ``add_self_loops=False`` the two sides are
    different nodes.

    **Sampling.** A layer with :math:`\lambda_2 \neq 0` sees two hops: the neighbours of a node, and for :math:`\hat{h}_j` the
    neighbours of those. On a sampled subgraph (``NeighborLoader`` with one ``x``), :math:`\hat{h}` of border nodes, whose own
    neighbours were not sampled, are their own features, and :math:`\hat{h}` of inner nodes average the sampled neighbours only. The
    outputs of :math:`L` layers equal those of the full graph if all neighbours of :math:`2L` hops are sampled; with
    :math:`\lambda_2 = 0`, as in GAT, :math:`L` hops are enough. :func:`trim_to_layer` removes from a batch what no later layer
    needs, and :func:`layer_wise` computes all nodes in blocks; neither changes a result.

    Args:
        in_channels (int or tuple): Size of each input sample, −1 to derive it from the first input, or a pair for sources and
            destinations.
        out_channels (int): Size of each output sample, per head.
        heads (int, optional): Number of attention heads. (default: :obj:`1`)
        concat (bool, optional): If set to :obj:`False`, average the heads instead of concatenating them.
            (default: :obj:`True`)
        negative_slope (float, optional): Slope of the LeakyReLU. (default: :obj:`0.2`)
        dropout (float, optional): Dropout probability of the attention coefficients. (default: :obj:`0`)
        add_self_loops (bool, optional): Give every node one self-loop. (default: :obj:`True`)
        edge_dim (int, optional): Size of edge features, if there are any. (default: :obj:`None`)
        fill_value (float or torch.Tensor or str, optional): Edge features of the added self-loops: a value, or the reduction
            of those of the in-edges. (default: :obj:`"mean"`)
        bias (bool, optional): Learn an additive bias. (default: :obj:`True`)
        residual (bool, optional): Add a learnable linear skip connection. (default: :obj:`False`)
        score (str or callable, optional): :obj:`"gat"`, :obj:`"gatv2"`, a name from :func:`register_score`, or a function (or
            module) :math:`\alpha(u, v)` of features ``[edges, heads, out_channels]`` that returns ``[edges, heads]``.
            (default: :obj:`"gat"`)
        lambda1, lambda2 (float or str, optional): :obj:`"learn"`, or a number in [0, 1]. (default: :obj:`"learn"`)
        score_weights (str, optional): :obj:`"shared"` (:math:`W_q = W_k = W_v`) or :obj:`"separate"`
            (:math:`W_q = W_k \neq W_v`). (default: :obj:`"shared"`)
        init (str, optional): :obj:`"uniform"` (Glorot uniform, attention vectors start at 1) or :obj:`"normal"` (Glorot normal
            with gain √2, attention vectors too). (default: :obj:`"uniform"`)
        lambda_per_head (bool, optional): Learn one pair of λ per head instead of one for all. (default: :obj:`False`)
        backend (str, optional): :obj:`"auto"` for the fastest backend that can compute the layer, or :obj:`"torch"`,
            :obj:`"fused"` or :obj:`"triton"` for this one only, which raises an error for what it cannot compute.
            (default: :obj:`"auto"`)
        **kwargs (optional): Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.

    Shapes:
        - **input:** node features ``[N, in_channels]``, or a pair ``([N_src, F_src], [N_dst, F_dst])``; ``edge_index``
          ``[2, E]``, a transposed ``torch.sparse`` matrix, a ``SparseTensor``, an ``EdgeIndex``, or a
          :class:`~graphgym_lcat.kernels.Graph`; edge features ``[E, edge_dim]`` *(optional)*
        - **output:** node features ``[N_dst, heads * out_channels]``, or ``[N_dst, out_channels]`` with ``concat=False``
    """

    lin: Projection | None
    lin_src: Projection | None
    lin_dst: Projection | None
    lin_score: Projection | None
    lin_score_src: Projection | None

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | Tensor | str = "mean",
        bias: bool = True,
        residual: bool = False,
        *,
        score: AnyScore = "gat",
        lambda1: float | str = "learn",
        lambda2: float | str = "learn",
        score_weights: str = "shared",
        init: str = "uniform",
        lambda_per_head: bool = False,
        backend: str = "auto",
        **kwargs: Any,
    ):
        if kwargs.setdefault("aggr", "add") not in ("add", "sum"):
            raise ValueError(f"`aggr` must be 'add': attention is a weighted sum, got {kwargs['aggr']!r}")
        super().__init__(node_dim=0, **kwargs)
        out_channels = check_positive("out_channels", out_channels)
        check_choice("score_weights", score_weights, SCORE_WEIGHTS)
        if isinstance(fill_value, str):
            check_choice("fill_value", fill_value, FILL_REDUCTIONS)
        self._init_attention(
            heads,
            out_channels,
            score=score,
            lambda1=lambda1,
            lambda2=lambda2,
            lambda_per_head=lambda_per_head,
            negative_slope=negative_slope,
            init=init,
            backend=backend,
            edge_dim=edge_dim,
        )
        self.edge_dim = edge_dim
        self.fill_value = fill_value
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.concat = concat
        self.dropout = dropout
        self.add_self_loops = add_self_loops
        self.residual = residual
        self.score_weights = score_weights
        self._init_projections(init)
        width = self.heads * out_channels if concat else out_channels
        target_channels = in_channels if isinstance(in_channels, int) else in_channels[1]
        self.res = Projection(target_channels, width, init) if residual else None
        self.register_parameter("bias", Parameter(torch.empty(width)) if bias else None)
        self.reset_parameters()

    def _init_projections(self, init: str) -> None:
        """``lin`` is W_v; a pair of sizes needs ``lin_src`` and ``lin_dst``, as in PyG. ``lin_score`` is W_q = W_k."""
        width = self.heads * self.out_channels
        self.lin = self.lin_src = self.lin_dst = self.lin_score = self.lin_score_src = None
        separate = self.score_weights == "separate"
        if isinstance(self.in_channels, int):
            self.lin = Projection(self.in_channels, width, init)
            if separate:
                self.lin_score = Projection(self.in_channels, width, init)
        else:
            self.lin_src = Projection(self.in_channels[0], width, init)
            # Destinations are only used in the score, so with separate weights their projection is the score's.
            self.lin_dst = Projection(self.in_channels[1], width, init)
            if separate:
                self.lin_score_src = Projection(self.in_channels[0], width, init)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._reset_attention()
        for projection in (
            self.lin,
            self.lin_src,
            self.lin_dst,
            self.lin_score,
            self.lin_score_src,
            self.res,
        ):
            if projection is not None:
                projection.reset_parameters()
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor | OptPairTensor,
        edge_index: Adj | Graph,
        edge_attr: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, Tensor] | SparseTensor]:
        r"""Runs the layer.

        Args:
            x (torch.Tensor or (torch.Tensor, torch.Tensor)): Node features, or a pair for sources and destinations; the second
                may be :obj:`None` if destinations have no features.
            edge_index (torch.Tensor or SparseTensor or Graph): The graph.
            edge_attr (torch.Tensor, optional): Edge features, in the order of ``edge_index``.
            size ((int, int), optional): Number of sources and destinations, needed if ``x`` does not define it.
            return_attention_weights (bool, optional): Also return ``(edge_index, alpha)``: the edges without self-loops in
                their order, then the added self-loops, and the coefficients ``[edges, heads]``. In compiled code, dropped
                self-loops are included with coefficient 0.
        """
        if not isinstance(x, Tensor) and (not isinstance(x, (tuple, list)) or len(x) != 2):
            raise TypeError(f"`x` must be a tensor, or a pair for sources and destinations, got {type(x).__name__}")
        x_src, x_dst = (x, x) if isinstance(x, Tensor) else x
        one_set = x_dst is x_src
        num_src, num_dst = self._check_sizes(x_src, x_dst, size, edge_index)
        graph, sparse_values = resolve_graph(
            edge_index, num_src, num_dst, self.add_self_loops, one_set or self.add_self_loops, self.flow
        )
        if self.edge_dim is not None:
            edge_attr = check_edge_attr(sparse_values if edge_attr is None else edge_attr, self.edge_dim, graph)
        elif edge_attr is not None:  # models that pass it to every layer run with GATConv, so they must with this layer
            warnings.warn("`edge_attr` is ignored: the layer has no `edge_dim`", UserWarning, stacklevel=4)
            edge_attr = None
        value, key, query = self._project(x_src, x_dst, one_set)

        sources = self._project_sources(x_src, query, one_set)
        features = self._edge_features(graph, edge_attr)
        dropout = self.dropout if self.training else 0.0
        has_messages = self._is_observed() or self._has_own_messages(LCATConv)
        is_plain = features is None and query is key and self.concat and self.res is None
        if is_plain and not has_messages and not return_attention_weights:
            out = self._attend_at_once(graph, key, value, self.bias, dropout)
            if out is not None:
                return out
        if has_messages:
            edges, alpha = edge_list(graph, self._coefficients(graph, key, query, features, dropout, sources))
            edges = self._in_flow(edges)
            sizes = (num_src, num_dst) if self.flow == "source_to_target" else (num_dst, num_src)
            # edge_updater_type: (alpha: Tensor)
            alpha = self.edge_updater(edges, alpha=alpha, size=sizes)
            # propagate_type: (x: Tensor, alpha: Tensor)
            out = self.propagate(edges, x=value, alpha=alpha, size=sizes)
        elif return_attention_weights:
            out, gamma = self._attend_and_show(graph, key, query, value, features, dropout, sources)
            edges, alpha = edge_list(graph, gamma)
            edges = self._in_flow(edges)
        else:
            out = self._attend(graph, key, query, value, features, dropout, sources)

        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if self.res is not None and x_dst is not None:
            out = out + self.res(x_dst)
        if self.bias is not None:
            out = out + self.bias
        elif self.concat and self.res is None and out.requires_grad:
            out = out.clone()  # users may change the output in place, but the backward pass needs that of the kernels
        if return_attention_weights:
            return out, _like_input(edge_index, edges, alpha, (num_src, num_dst))
        return out

    def edge_update(self, alpha: Tensor) -> Tensor:
        """For hooks and subclasses: the coefficients of all edges, after softmax and dropout, as ``message`` gets them."""
        return alpha

    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha.unsqueeze(-1) * x_j

    def _project(self, x_src: Tensor, x_dst: Tensor | None, one_set: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        """Value, key and query, ``[nodes, heads, out_channels]``; query is key itself for one set of nodes."""
        shape = (-1, self.heads, self.out_channels)
        if self.lin is not None:
            value = self.lin(x_src).view(shape)
            key = value if self.lin_score is None else self.lin_score(x_src).view(shape)
            if one_set:
                return value, key, key
            query_projection = self.lin if self.lin_score is None else self.lin_score
        else:
            assert self.lin_src is not None and self.lin_dst is not None
            value = self.lin_src(x_src).view(shape)
            key = value if self.lin_score_src is None else self.lin_score_src(x_src).view(shape)
            query_projection = self.lin_dst
        return value, key, None if x_dst is None else query_projection(x_dst).view(shape)

    def _project_sources(self, x_src: Tensor, query: Tensor | None, one_set: bool) -> Tensor | None:
        """The sources, projected like the queries; None if they are the keys."""
        return None

    def _edge_features(self, graph: Graph, edge_attr: Tensor | None) -> EdgeFeatures | None:
        if edge_attr is None or self.lin_edge is None:
            return None
        self.lin_edge.materialize(edge_attr)
        if self.interpolation.fixed1 == 0:
            return None
        return edge_features(graph, edge_attr, self.fill_value)

    def _check_sizes(
        self, x_src: Tensor, x_dst: Tensor | None, size: tuple[int, int] | None, edge_index: Adj | Graph
    ) -> tuple[int, int]:
        channels = self.in_channels
        src_channels, dst_channels = (channels, channels) if isinstance(channels, int) else channels
        check_features("x" if x_dst is x_src else "x[0]", x_src, src_channels)
        if x_dst is not None and x_dst is not x_src:
            check_features("x[1]", x_dst, dst_channels)
        num_src = x_src.size(0)
        if x_dst is not None:
            num_dst = x_dst.size(0)
        else:
            declared = declared_size(edge_index) if size is None else size
            num_dst = num_src if declared[1] is None else declared[1]
        if size is not None and tuple(size) != (num_src, num_dst):
            raise ValueError(f"`size` must be {(num_src, num_dst)}, the numbers of nodes in `x`, got {tuple(size)}")
        return num_src, num_dst

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, {self._describe_attention()})"


def _like_input(edge_index: Adj | Graph, edges: Tensor, alpha: Tensor, size: tuple[int, int]):
    """The coefficients in the format of the input graph, as PyG's layers return them."""
    if isinstance(edge_index, SparseTensor):
        return SparseTensor(row=edges[1], col=edges[0], value=alpha, sparse_sizes=size[::-1])
    if isinstance(edge_index, Tensor) and is_torch_sparse_tensor(edge_index):
        to_sparse = {
            torch.sparse_coo: to_torch_coo_tensor,
            torch.sparse_csr: to_torch_csr_tensor,
            torch.sparse_csc: to_torch_csc_tensor,
        }[edge_index.layout]
        position = torch.arange(edges.size(1), device=edges.device)
        adj = to_sparse(edges.flip(0), position, size=size[::-1], is_coalesced=False)
        alpha = alpha[adj.values()]
        return set_sparse_value(adj, alpha), alpha
    if isinstance(edge_index, EdgeIndex):
        return EdgeIndex(edges, sparse_size=edge_index.sparse_size()), alpha
    return edges, alpha
