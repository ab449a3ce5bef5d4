"""The convolved attention layer: L-CAT with both scalars at 1."""

from __future__ import annotations

from graphgym_lcat.nn.lcat_conv import LCATConv


class CATConv(LCATConv):
    r"""The graph convolutional attention operator (CAT): attention whose score sees convolved features,

    .. math::
        \hat{\mathbf{h}}_i = \frac{1}{|N^*_i|} \sum_{\ell \in N^*_i} \mathbf{h}_\ell .

    It is :class:`LCATConv` with :math:`\lambda_1 = \lambda_2 = 1` and takes the same arguments, except the two λ.
    """

    def __init__(self, *args, **kwargs):
        for name in ("lambda1", "lambda2", "lambda_per_head"):
            if name in kwargs:
                raise TypeError(
                    f"`{name}` is not an argument of CATConv, where both λ are 1; use LCATConv to set or learn them"
                )
        super().__init__(*args, lambda1=1.0, lambda2=1.0, **kwargs)
