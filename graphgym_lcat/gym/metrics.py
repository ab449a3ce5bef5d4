"""Scores of a classification: accuracy for every task, AUC beside it for two classes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss


def score_split(pred: Tensor, true: Tensor) -> tuple[Tensor, dict[str, float]]:
    """GraphGym's loss of raw outputs, and the metrics as fractions."""
    loss, score = compute_loss(pred, true)
    score = score.detach()
    if score.dim() == 1:
        correct = (score > cfg.model.thresh) == true.bool()
        metrics = {"accuracy": correct.float().mean().item(), "auc": area_under_curve(score, true)}
    else:
        metrics = {"accuracy": (score.argmax(dim=-1) == true).float().mean().item()}
    return loss, metrics


def area_under_curve(score: Tensor, true: Tensor) -> float:
    """ROC-AUC through the ranks of the positives (Mann and Whitney), ties counted half; 0.5 where there is only one class."""
    positive = true.bool()
    num_positive = int(positive.sum())
    num_negative = true.numel() - num_positive
    if not num_positive or not num_negative:
        return 0.5
    _, inverse, counts = torch.unique(score, return_inverse=True, return_counts=True)
    last_rank = counts.cumsum(0).double()
    mean_rank = last_rank - (counts.double() - 1) / 2
    rank_sum = mean_rank[inverse][positive].sum().item()
    return (rank_sum - num_positive * (num_positive + 1) / 2) / (num_positive * num_negative)
