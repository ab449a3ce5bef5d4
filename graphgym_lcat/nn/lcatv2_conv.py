"""L-CAT with the parameters of PyG's GATv2Conv."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.typing import Adj, OptPairTensor, SparseTensor

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn.init import Projection
from graphgym_lcat.nn.lcat_conv import LCATConv


class LCATv2Conv(LCATConv):
    r""":class:`LCATConv` with the score, the arguments and the parameters of :class:`torch_geometric.nn.GATv2Conv`.

    .. math::
        \gamma_{ij} = \operatorname{softmax}_{j \in N^*_i} \left( \lambda_1 \, \mathbf{a}^{\top} \operatorname{LeakyReLU} \left(
        \mathbf{W}_r \hat{\mathbf{h}}_i + \mathbf{b}_r + \mathbf{W}_l \hat{\mathbf{h}}_j + \mathbf{b}_l \right) \right), \qquad
        \mathbf{h}^{\prime}_i = \sum_{j \in N^*_i} \gamma_{ij} \left( \mathbf{W}_l \mathbf{h}_j + \mathbf{b}_l \right)

    Unlike ``LCATConv(score='gatv2')``, the model of the paper, it has different weights for senders (``lin_l``) and receivers
    (``lin_r``), with biases. State dicts of ``GATv2Conv`` load, and with ``lambda1=1, lambda2=0`` the outputs are the same. If
    sources and destinations have different numbers of channels, :math:`\hat{\mathbf{h}}_i` of a destination sums the sources as
    ``lin_l`` projects them.

    Args:
        in_channels, …, residual: As in :class:`torch_geometric.nn.GATv2Conv`, in its order.
        lambda1, lambda2, init, lambda_per_head, backend: As in :class:`LCATConv`.
        **kwargs (optional): Further arguments of :class:`torch_geometric.nn.conv.MessagePassing`.
    """

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
        share_weights: bool = False,
        residual: bool = False,
        **kwargs: Any,
    ):
        for name in ("score", "score_weights"):
            if name in kwargs:
                raise TypeError(f"`{name}` is not an argument of LCATv2Conv; use LCATConv to choose it")
        self.share_weights = share_weights
        self._projection_bias = bias
        super().__init__(
            in_channels,
            out_channels,
            heads,
            concat,
            negative_slope,
            dropout,
            add_self_loops,
            edge_dim,
            fill_value,
            bias,
            residual,
            score="gatv2",
            **kwargs,
        )

    def _init_projections(self, init: str) -> None:
        self.lin = self.lin_src = self.lin_dst = self.lin_score = self.lin_score_src = None
        width = self.heads * self.out_channels
        left, right = (self.in_channels,) * 2 if isinstance(self.in_channels, int) else self.in_channels
        self.lin_l = Projection(left, width, init, self._projection_bias)
        self.lin_r = self.lin_l if self.share_weights else Projection(right, width, init, self._projection_bias)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.lin_l.reset_parameters()
        self.lin_r.reset_parameters()

    def forward(  # type: ignore[override]  # the arguments of GATv2Conv, which takes no size
        self,
        x: Tensor | OptPairTensor,
        edge_index: Adj | Graph,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, Tensor] | SparseTensor]:
        """See :meth:`LCATConv.forward`."""
        return super().forward(x, edge_index, edge_attr, None, return_attention_weights)

    def _project(self, x_src: Tensor, x_dst: Tensor | None, one_set: bool) -> tuple[Tensor, Tensor, Tensor | None]:
        shape = (-1, self.heads, self.out_channels)
        value = self.lin_l(x_src).view(shape)
        if one_set and self.share_weights:
            return value, value, value
        return value, value, None if x_dst is None else self.lin_r(x_dst).view(shape)

    def _project_sources(self, x_src: Tensor, query: Tensor | None, one_set: bool) -> Tensor | None:
        if one_set:
            return query
        if query is None or self.interpolation.fixed2 == 0 or self.share_weights:
            return None
        if x_src.size(1) != self.lin_r.weight.size(1):
            return None
        return self.lin_r(x_src).view(-1, self.heads, self.out_channels)
