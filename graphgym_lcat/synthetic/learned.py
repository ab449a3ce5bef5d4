"""Training the few free parameters of the one-layer models: C, and λ1 and λ2 of L-CAT.

Autograd would store ten arrays of all pairs. Since the loss of a node depends only on its own row, one pass over the rows computes
the loss and, while a block of rows is still in the cache, all its derivatives.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from graphgym_lcat.synthetic.models import block_height, mask_and_shift, row_blocks


class PairwiseAttentionLoss(torch.autograd.Function):
    """Mean binary cross-entropy of the logits ``logit_scale * (Σ_j γ_ij z_j − bias)``.

    The score of receiver i and sender j is pair_scale [clip(s_i − s_j) − clip(s_i + s_j)] + column_j, where clip cuts off at
    ±bound; see ``models``. There are derivatives for ``score_input`` (s), ``bound``, ``pair_scale``, ``column`` and ``bias``;
    ``z``, ``targets`` and ``adjacency`` are data.
    """

    @staticmethod
    def forward(ctx, score_input, bound, pair_scale, column, bias, z, targets, adjacency, logit_scale) -> Tensor:
        n = len(z)
        limit, factor = float(bound), float(pair_scale)
        value_and_one = torch.stack([z, torch.ones_like(z)], dim=1)
        loss, grad_bound, grad_scale, grad_bias = 0.0, 0.0, 0.0, 0.0
        grad_input, grad_column = torch.zeros_like(z), torch.zeros_like(z)
        buffers = z.new_empty(5, block_height(n), n)
        for rows in row_blocks(n):
            u = score_input[rows, None]
            outer_plus, outer_minus, weight, score, gradient = buffers[:, : len(u)]
            # outer_* become d clip / d bound: the sign of what exceeds the bound, 0 within it.
            torch.add(u, score_input, out=outer_plus)
            torch.clamp(outer_plus, -limit, limit, out=weight)
            outer_plus.sub_(weight).sign_()
            torch.sub(u, score_input, out=outer_minus)
            torch.clamp(outer_minus, -limit, limit, out=score)
            outer_minus.sub_(score).sign_()
            score.sub_(weight).mul_(factor).add_(column)
            mask_and_shift(score, adjacency, rows, weight)
            torch.exp(score, out=weight)

            sums = weight @ value_and_one
            mean = sums[:, 0] / sums[:, 1]
            logit = logit_scale * (mean - bias)
            loss += binary_cross_entropy_with_logits(logit, targets[rows], reduction="sum").item()
            grad_mean = logit_scale * (torch.sigmoid(logit) - targets[rows]) / n
            grad_bias -= grad_mean.sum().item()

            # dloss/dscore_ij = γ_ij (z_j − mean_i) dloss/dmean_i
            torch.sub(z, mean[:, None], out=gradient)
            gradient.mul_((grad_mean / sums[:, 1])[:, None]).mul_(weight)
            flat = gradient.view(-1)
            grad_scale += torch.dot(flat, score.view(-1)).item()
            grad_bound += torch.dot(flat, outer_minus.view(-1)).item()
            grad_bound -= torch.dot(flat, outer_plus.view(-1)).item()
            ones = z.new_ones(1, len(u))
            column_sums = (ones @ gradient).view(-1)
            grad_column += column_sums
            if ctx.needs_input_grad[0]:
                outer_plus.abs_().mul_(gradient)
                outer_minus.abs_().mul_(gradient)
                grad_input[rows] += factor * (outer_plus.sum(dim=1) - outer_minus.sum(dim=1))
                outer_plus.add_(outer_minus)
                grad_input += factor * ((ones @ outer_plus).view(-1) - 2 * column_sums)

        pair_part = grad_scale - torch.dot(grad_column, column).item()
        ctx.save_for_backward(
            grad_input,
            z.new_tensor(factor * grad_bound),
            z.new_tensor(pair_part / factor),
            grad_column,
            z.new_tensor(grad_bias),
        )
        return z.new_tensor(loss / n)

    @staticmethod
    def backward(ctx, grad_loss: Tensor):
        gradients = (grad_loss * gradient for gradient in ctx.saved_tensors)
        return (*gradients, None, None, None, None)
