"""Metrics that a run computes on request: name them in ``custom_metrics`` or as ``metric_best``.

They are registered with GraphGym, so a stock ``main.py`` that imports this package has them too. Label, direction and scale are in
``lcat_core.metrics``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn import metrics as sklearn_metrics
from torch import Tensor, cat
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import metric_dict

from graphgym_lcat.gym.registration import register_once

Labels = np.ndarray
#: GraphGym calls a metric with lists of labels and scores, one per batch, and the type of the task.
GraphGymMetric = Callable[[Sequence[Tensor], Sequence[Tensor], str], float]


def _on_classes(compute: Callable[[Labels, Labels], float]) -> GraphGymMetric:
    """Return a metric of predicted classes; of predicted labels, zero or one, if nodes have several."""

    def metric(true: Sequence[Tensor], score: Sequence[Tensor], task_type: str) -> float:
        labels, scores = cat(list(true)).cpu(), cat(list(score)).cpu()
        has_classes = task_type == "classification_multi" and scores.dim() == 2
        chosen = scores.argmax(dim=-1) if has_classes else (scores > cfg.model.thresh).long()
        return float(compute(labels.long().numpy(), chosen.numpy()))

    return metric


def _f1(average: str) -> GraphGymMetric:
    return _on_classes(lambda true, chosen: sklearn_metrics.f1_score(true, chosen, average=average, zero_division=0))


def _balanced_accuracy(true: Labels, chosen: Labels) -> Any:
    """Return the mean recall of the classes that occur."""
    if true.ndim == 2:
        return np.mean([_balanced_accuracy(*columns) for columns in zip(true.T, chosen.T, strict=True)])
    return sklearn_metrics.recall_score(true, chosen, labels=np.unique(true), average="macro", zero_division=0)


def average_precision(true: Sequence[Tensor], score: Sequence[Tensor], task_type: str) -> float:
    """Return the average precision; of several tasks or classes, the mean over those that have positives."""
    labels, scores = cat(list(true)).cpu().numpy(), cat(list(score)).cpu().numpy()
    if labels.ndim == 1 and scores.ndim == 2:
        labels = labels[:, None] == np.arange(scores.shape[1])
    labels, scores = labels.reshape(len(labels), -1), scores.reshape(len(scores), -1)
    has_positives = [column for column in range(labels.shape[1]) if labels[:, column].any()]
    values = [sklearn_metrics.average_precision_score(labels[:, column], scores[:, column]) for column in has_positives]
    return float(np.mean(values)) if values else 0.0


EXTRA_METRICS: dict[str, GraphGymMetric] = {
    "f1_macro": _f1("macro"),
    "f1_micro": _f1("micro"),
    "balanced_accuracy": _on_classes(_balanced_accuracy),
    "ap": average_precision,
}
for name, function in EXTRA_METRICS.items():
    register_once(metric_dict, name, function)
