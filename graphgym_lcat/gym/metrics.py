"""The metrics of a run: a registry of functions, those of this package, and OGB's own for its datasets.

How a metric is written in tables and which direction is better are in ``lcat_core.metrics``; this module computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss

from graphgym_lcat.data.ogb import OGB_DATASETS, import_ogb
from lcat_core.errors import SettingsError, TrainingFailed, did_you_mean, unknown_name
from lcat_core.metrics import BOOKKEEPING, METRICS, Metric, metric
from lcat_core.registration import is_same_definition

Compute = Callable[[Tensor, Tensor], float]
Evaluate = Callable[[Tensor, Tensor], dict[str, float]]

_AUTO = "auto"
LOSS = "loss"


class Task(Enum):
    """The kinds of classification; the value describes their labels."""

    BINARY = "two classes"
    MULTICLASS = "more than two classes"
    MULTILABEL = "several tasks"


@dataclass(frozen=True)
class RunMetric:
    """A metric, the function that computes it, and the tasks that have it."""

    row: Metric
    compute: Compute
    tasks: Collection[Task]


#: Registered metrics by name, in the order in which they are recorded.
REGISTERED: dict[str, RunMetric] = {}


def register_metric(
    name: str,
    *,
    tasks: Collection[Task] = tuple(Task),
    label: str | None = None,
    higher_is_better: bool = True,
    percent: bool = True,
) -> Callable[[Compute], Compute]:
    """Register a function as a metric; use it as a decorator.

    The metric is computed for every run with one of these tasks, on all splits and in every epoch. It is recorded in
    ``stats.json`` and ``result.json``, and ``metric_best`` can select by it.

    The function receives ``score`` and ``true``. ``true`` holds the labels, ``[nodes]`` or ``[nodes, tasks]``. ``score`` holds
    probabilities of the same shape, or, for more than two classes, log-probabilities ``[nodes, classes]``.

    Args:
        name: Its name in files, and as ``metric_best``.
        tasks: The tasks that have this metric.
        label: Its name in tables, if ``lcat_core.metrics`` has no row for it.
        higher_is_better: Its direction, if ``lcat_core.metrics`` has no row for it.
        percent: Whether it is a fraction that tables show in per cent, if ``lcat_core.metrics`` has no row for it.

    Raises:
        SettingsError: The name is taken.
    """

    def register_function(compute: Compute) -> Compute:
        known = REGISTERED.get(name)
        is_other = known is not None and not is_same_definition(known.compute, compute)
        if is_other or name in (LOSS, _AUTO) or name in BOOKKEEPING:
            raise SettingsError(f"the name {name!r} of a metric is taken; choose another one", "metric_best")
        row = METRICS.get(name) or Metric(name, label or name, higher_is_better, percent)
        REGISTERED[name] = RunMetric(row, compute, tuple(tasks))
        return compute

    return register_function


def selectable_metrics() -> list[str]:
    """Return the values that ``metric_best`` may have for some task."""
    return [_AUTO, *REGISTERED, LOSS, *register.metric_dict]


def metric_for_selection(labels: Tensor) -> Metric:
    """Return the validation metric that ``cfg.metric_best`` means for these labels.

    ``auto`` is accuracy, for two classes too, as in the paper, and the mean ROC-AUC if nodes have several labels.

    Raises:
        SettingsError: The metric does not exist, or not for this task.
    """
    task, name = task_of(labels), cfg.metric_best
    if name == _AUTO:
        name = "rocauc" if task is Task.MULTILABEL else "accuracy"
    if name == LOSS or name in requested_metrics():
        return _graphgym_row(name)
    if name not in REGISTERED:
        hint = did_you_mean(name, selectable_metrics())
        raise SettingsError(f"`metric_best` must be a metric, got {name!r}{hint}", "metric_best")
    tasks = REGISTERED[name].tasks
    if task not in tasks:
        needed = " or ".join(allowed.value for allowed in tasks)
        found = f"{labels.size(1)} tasks" if labels.dim() == 2 else f"{int(labels.max()) + 1} classes"
        raise SettingsError(f"`metric_best: {name}` needs {needed}, got {found}", "metric_best")
    return REGISTERED[name].row


def task_of(labels: Tensor) -> Task:
    """Return the task of a dataset with these labels."""
    if labels.dim() == 2 and labels.size(1) > 1:
        return Task.MULTILABEL
    is_binary = int(labels.max()) == 1 and cfg.dataset.task_type != "classification_multi"
    return Task.BINARY if is_binary else Task.MULTICLASS


def score_split(pred: Tensor, true: Tensor, evaluate: Evaluate | None = None) -> tuple[Tensor, dict[str, float]]:
    """Return GraphGym's loss of raw outputs, and the metrics.

    Args:
        pred: Outputs of the network for the nodes of a split.
        true: Their labels.
        evaluate: Computes the metrics of this package instead, for datasets that have an evaluator of their own.
    """
    loss, score = compute_loss(pred, true)
    return loss, score_metrics(score.detach(), true, evaluate)


def score_metrics(score: Tensor, true: Tensor, evaluate: Evaluate | None = None) -> dict[str, float]:
    """Return the metrics of what GraphGym's ``compute_loss`` returns beside the loss: probabilities, or their logarithms."""
    task = _task_of_scores(score, true)
    metrics = {} if evaluate is None else evaluate(score, true)
    for name, registered in REGISTERED.items():
        if task in registered.tasks and not (evaluate is not None and name in _OURS):
            metrics[name] = _finite(name, registered.compute(score, true))
    for name in requested_metrics():
        metrics[name] = _finite(name, _of_graphgym(name)([true], [score], _GRAPHGYM_TASKS[task]))
    return metrics


def requested_metrics() -> list[str]:
    """Return the metrics of GraphGym's registry to compute: those of ``custom_metrics``, and ``metric_best`` if it is one."""
    selecting = (
        cfg.metric_best if cfg.metric_best in register.metric_dict and cfg.metric_best not in REGISTERED else None
    )
    return list(dict.fromkeys([*cfg.custom_metrics, *([selecting] if selecting else [])]))


def _graphgym_row(name: str) -> Metric:
    """Return label, direction and scale of a metric of GraphGym's registry; ``metric_agg`` gives the direction of unknown ones."""
    if name in METRICS:
        return metric(name)
    return Metric(name, name, higher_is_better=cfg.metric_agg != "argmin", percent=False)


def _task_of_scores(score: Tensor, true: Tensor) -> Task:
    if true.dim() == 2:
        return Task.MULTILABEL
    return Task.BINARY if score.dim() == 1 else Task.MULTICLASS


def _finite(name: str, value: Any) -> float:
    """Refuse NaN, which JSON cannot express and which no epoch could be selected by."""
    if not math.isfinite(value):
        raise TrainingFailed(f"the metric {name!r} is {float(value)}; it must always be a finite number")
    return float(value)


_GRAPHGYM_TASKS = {
    Task.BINARY: "classification_binary",
    Task.MULTICLASS: "classification_multi",
    Task.MULTILABEL: "classification_multilabel",
}


def _of_graphgym(name: str) -> Callable[..., Any]:
    """Return a metric that was registered with GraphGym, called as ``metric(true_list, pred_list, task_type)``."""
    if name not in register.metric_dict:
        raise SettingsError(
            unknown_name("metric", name, register.metric_dict, " in `custom_metrics`"), "custom_metrics"
        )
    return register.metric_dict[name]


def unlisted_rows(names: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Return label and direction of metrics that ``lcat_core.metrics`` does not list, for ``result.json``."""
    known = {name: REGISTERED[name].row for name in names if name in REGISTERED}
    if cfg.metric_best in requested_metrics():
        known[cfg.metric_best] = _graphgym_row(cfg.metric_best)
    rows = {name: asdict(row) for name, row in known.items() if name not in METRICS}
    return {name: {key: value for key, value in row.items() if key != "name"} for name, row in rows.items()}


def ogb_evaluation(name: str) -> Evaluate | None:
    """Return the evaluator of a dataset of OGB: ``accuracy``, or the mean ``rocauc`` over tasks; None for other datasets."""
    if name not in OGB_DATASETS:
        return None
    evaluator = import_ogb().Evaluator(name)
    if OGB_DATASETS[name].tasks > 1:
        return lambda score, true: {"rocauc": float(evaluator.eval({"y_true": true, "y_pred": score})["rocauc"])}

    def evaluate(score: Tensor, true: Tensor) -> dict[str, float]:
        chosen = score.argmax(dim=-1, keepdim=True)
        return {"accuracy": evaluator.eval({"y_true": true.view(-1, 1), "y_pred": chosen})["acc"]}

    return evaluate


@register_metric("accuracy", tasks=(Task.BINARY, Task.MULTICLASS))
def accuracy(score: Tensor, true: Tensor) -> float:
    """Return the share of nodes whose class is predicted correctly."""
    correct = (score > cfg.model.thresh) == true.bool() if score.dim() == 1 else score.argmax(dim=-1) == true
    return correct.float().mean().item()


def count_correct(metrics: Mapping[str, Mapping[str, float]], totals: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the nodes that the accuracies of the splits count as correct, for ``result.json``.

    An accuracy is such a count, divided and rounded once to single precision, so it gives back the count of up to ``_EXACT`` nodes.

    Args:
        metrics: The metrics of every split.
        totals: The number of nodes of every split.
    """
    if "accuracy" in cfg.custom_metrics:  # another definition of it need not be a count
        return {}
    return {
        split: {"correct": round(scores["accuracy"] * totals[split]), "total": totals[split]}
        for split, scores in metrics.items()
        if "accuracy" in scores and 0 < totals[split] <= _EXACT
    }


#: Half a node is more than the rounding error of an accuracy over so many nodes.
_EXACT = 2**22


@register_metric("auc", tasks=(Task.BINARY,))
def area_under_curve(score: Tensor, true: Tensor) -> float:
    """Return the ROC-AUC, from the ranks of the positives (Mann and Whitney); ties count half, and one class alone gives 0.5."""
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


@register_metric("rocauc", tasks=(Task.MULTILABEL,))
def mean_area_under_curve(score: Tensor, true: Tensor) -> float:
    """Return the mean ROC-AUC of the tasks (columns) that have both classes, as OGB's evaluator does; 0.5 if none has."""
    share = true.float().mean(dim=0)
    tasks = ((share > 0) & (share < 1)).nonzero().view(-1).tolist()
    return sum(area_under_curve(score[:, task], true[:, task]) for task in tasks) / len(tasks) if tasks else 0.5


#: What an evaluator of OGB replaces.
_OURS = frozenset(REGISTERED)
