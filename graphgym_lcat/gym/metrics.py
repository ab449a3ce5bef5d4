"""Scores of a classification: accuracy, AUC beside it for two classes, the mean AUC of several tasks; OGB's own for its data."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss

from graphgym_lcat.data.ogb import OGB_DATASETS, import_ogb

Evaluate = Callable[[Tensor, Tensor], dict[str, float]]


def score_split(pred: Tensor, true: Tensor, evaluate: Evaluate | None = None) -> tuple[Tensor, dict[str, float]]:
    """GraphGym's loss of raw outputs, and the metrics as fractions; ``evaluate`` computes them if given."""
    loss, score = compute_loss(pred, true)
    score = score.detach()
    if evaluate is not None:
        metrics = evaluate(score, true)
    elif true.dim() == 2:
        metrics = {"rocauc": mean_area_under_curve(score, true)}
    elif score.dim() == 1:
        correct = (score > cfg.model.thresh) == true.bool()
        metrics = {"accuracy": correct.float().mean().item(), "auc": area_under_curve(score, true)}
    else:
        metrics = {"accuracy": (score.argmax(dim=-1) == true).float().mean().item()}
    return loss, metrics


def ogb_evaluation(name: str) -> Evaluate | None:
    """The evaluator of one of OGB's datasets: ``accuracy``, or ``rocauc``, the mean over the tasks; None for other datasets."""
    if name not in OGB_DATASETS:
        return None
    evaluator = import_ogb().Evaluator(name)
    if OGB_DATASETS[name].tasks > 1:
        return lambda score, true: {"rocauc": float(evaluator.eval({"y_true": true, "y_pred": score})["rocauc"])}

    def accuracy(score: Tensor, true: Tensor) -> dict[str, float]:
        chosen = score.argmax(dim=-1, keepdim=True)
        return {"accuracy": evaluator.eval({"y_true": true.view(-1, 1), "y_pred": chosen})["acc"]}

    return accuracy


def mean_area_under_curve(score: Tensor, true: Tensor) -> float:
    """The mean ROC-AUC of the tasks (columns) that have both classes, as OGB's evaluator defines it; 0.5 without any."""
    share = true.float().mean(dim=0)
    tasks = ((share > 0) & (share < 1)).nonzero().view(-1).tolist()
    return sum(area_under_curve(score[:, task], true[:, task]) for task in tasks) / len(tasks) if tasks else 0.5


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
