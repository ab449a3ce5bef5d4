"""``lcat.loop: train``: full batch, every epoch scored on all splits, resumable to the bit.

An epoch scores the weights that it starts with, then takes one step. Without dropout and batch normalisation the scores come from
the forward pass of the step. The epoch with the best validation metric counts; among several, the first.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss

from graphgym_lcat.gym.build import Parts, select_device
from graphgym_lcat.gym.layers import layers_with_lambdas
from graphgym_lcat.gym.loader import dataset_title, labelled_nodes
from graphgym_lcat.gym.loops import Best, Epoch, Lambdas, Step
from graphgym_lcat.gym.metrics import count_correct, metric_for_selection, ogb_evaluation, score_metrics, score_split
from graphgym_lcat.nn import layer_wise
from lcat_core.errors import TrainingFailed
from lcat_core.files import write_atomically
from lcat_core.run_folder import PREDICTIONS, SPLITS, WEIGHTS

_SPLIT_NAMES = {"train": "training", "val": "validation", "test": "test"}


class Training:
    """Training of one network, epoch by epoch; see :class:`graphgym_lcat.gym.loops.ResumableLoop`.

    Args:
        parts: Graph, network, optimizer and schedule.
    """

    def __init__(self, parts: Parts):
        self.device = select_device()
        self.model, self.optimizer, self.scheduler = parts.model.to(self.device), parts.optimizer, parts.scheduler
        target = labelled_nodes(parts.data)
        self.metric = metric_for_selection(target.y)
        self.evaluate = ogb_evaluation(cfg.dataset.name)
        self.dataset = _describe(parts.data)
        self.num_parameters = sum(p.numel() for p in self.model.parameters())
        self.attention: list[Any] = list(layers_with_lambdas(self.model))
        self.has_lambdas = bool(self.attention)
        nodes = {split: target[f"{split}_mask"].nonzero().view(-1) for split in SPLITS}
        self.labels = {split: target.y[members].to(self.device) for split, members in nodes.items()}
        self.target = target._key if isinstance(parts.data, HeteroData) else None
        self.nodes = {split: members.to(self.device) for split, members in nodes.items()}
        self.data = parts.data.to(self.device)
        self.one_forward = not _is_stochastic(self.model)
        self.epoch = 0
        self.max_epoch: int = cfg.optim.max_epoch
        self.seconds = 0.0
        self.best = Best()
        self.best_outputs: Tensor | None = None
        self.best_weights: dict[str, Tensor] | None = None

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "epoch": self.epoch,
            "best": asdict(self.best),
            "best_outputs": self.best_outputs,
            "best_weights": self.best_weights,
            "seconds": self.seconds,
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]
        self.best = Best(**state["best"])
        self.best_outputs = state["best_outputs"]
        self.best_weights = state["best_weights"]
        self.seconds = state["seconds"]
        torch.set_rng_state(state["rng"])
        if state["cuda_rng"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda_rng"])

    def epochs(self) -> Iterator[Epoch | Step]:
        """Train until the last epoch, or until early stopping."""
        while self.epoch < self.max_epoch and not self._is_stale():
            start = time.perf_counter()
            epoch = self._train_epoch()
            self.epoch += 1
            self.seconds += time.perf_counter() - start
            yield epoch

    def finish(self, run_dir: Path) -> dict[str, Any]:
        """Write predictions and weights of the best epoch, if they were requested, and return the result."""
        if self.best_outputs is not None:
            labels = self.data[self.target].y if self.target else self.data.y
            arrays: dict[str, Any] = {"outputs": self.best_outputs.numpy(), "labels": labels.cpu().numpy()}
            arrays |= {f"{split}_nodes": nodes.cpu().numpy() for split, nodes in self.nodes.items()}
            write_atomically(run_dir / PREDICTIONS, lambda file: np.savez_compressed(file, **arrays))
        if self.best_weights is not None:
            write_atomically(run_dir / WEIGHTS, lambda file: torch.save(self.best_weights, file))
        counts = count_correct(self.best.metrics, {split: labels.size(0) for split, labels in self.labels.items()})
        return {
            "dataset": self.dataset,
            "best_epoch": self.best.epoch,
            **self.best.metrics,
            **({"counts": counts} if counts else {}),
            "lambdas": self.best.lambdas,
            "num_parameters": self.num_parameters,
            "epochs": self.epoch,
        }

    def _train_epoch(self) -> Epoch:
        start = time.perf_counter()
        rate = self.scheduler.get_last_lr()[0]
        evaluated = None if self.one_forward else self._evaluation_outputs()
        if not self.model.training:  # visits every module
            self.model.train()
        outputs = self._forward(self.data)
        loss, score = compute_loss(outputs.index_select(0, self.nodes["train"]), self.labels["train"])
        if evaluated is None:
            epoch = self._score_epoch(outputs.detach(), rate, start, (loss.detach(), score.detach()))
        else:
            epoch = self._score_epoch(evaluated, rate, start)
        self._step(loss)
        self.scheduler.step()
        return epoch

    def _evaluation_outputs(self) -> Tensor:
        self.model.eval()
        blocks = cfg.lcat.eval_batch_size
        with torch.no_grad(), layer_wise(self.model, blocks) if blocks else contextlib.nullcontext():
            return self._forward(self.data)

    def _step(self, loss: Tensor) -> None:
        self._finite(loss, "train")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def _finite(self, loss: Tensor, split: str) -> float:
        value = loss.item()
        if not math.isfinite(value):
            raise TrainingFailed(f"the {_SPLIT_NAMES[split]} loss became {value} in epoch {self.epoch}")
        return value

    def _forward(self, data: Data | HeteroData) -> Tensor:
        outputs, _ = self.model(copy.copy(data))  # GraphGym's layers overwrite batch.x
        return outputs

    def _score(self, outputs: Tensor, split: str, known: tuple[Tensor, Tensor] | None = None) -> dict[str, float]:
        """Score a split; ``known`` is what ``compute_loss`` returned for it."""
        # OGB's evaluator takes a second for 112 tasks, so training nodes, which neither select nor are reported, go without.
        evaluate = self.evaluate if split != "train" else None
        if known is not None:
            return {"loss": self._finite(known[0], split), **score_metrics(known[1], self.labels[split], evaluate)}
        loss, scores = score_split(outputs.index_select(0, self.nodes[split]), self.labels[split], evaluate)
        return {"loss": self._finite(loss, split), **scores}

    def _score_epoch(
        self, outputs: Tensor, rate: float, start: float, trained: tuple[Tensor, Tensor] | None = None
    ) -> Epoch:
        """Score all splits; ``trained`` is what ``compute_loss`` returned for the training nodes of the same outputs."""
        metrics = {split: self._score(outputs, split, trained if split == "train" else None) for split in SPLITS}
        lambdas: list[Lambdas] = [tuple(layer.lambdas()) for layer in self.attention]  # plain, for checkpoints
        self._keep_best(metrics, lambdas, outputs)
        elapsed = time.perf_counter() - start
        eta = (self.max_epoch - self.epoch - 1) * (self.seconds + elapsed) / (self.epoch + 1)
        return Epoch(self.epoch, metrics, lambdas, rate, elapsed, eta)

    def _keep_best(self, metrics: dict[str, dict[str, float]], lambdas: Sequence[Lambdas], outputs: Tensor) -> None:
        value = metrics["val"][self.metric.name]
        value = value if self.metric.higher_is_better else -value
        if value <= self.best.value:
            return
        self.best = Best(self.epoch, value, metrics, [_as_lists(pair) for pair in lambdas])
        if cfg.lcat.save_predictions:
            self.best_outputs = outputs.detach().cpu().clone()
        if cfg.lcat.save_model:
            self.best_weights = {k: v.detach().cpu().clone() for k, v in self.model.state_dict().items()}

    def _is_stale(self) -> bool:
        return bool(cfg.lcat.patience) and self.epoch - self.best.epoch > cfg.lcat.patience


def _describe(data: Data | HeteroData) -> dict[str, Any]:
    return {
        "name": dataset_title(),
        "nodes": data.num_nodes,
        "edges": data.num_edges,
        "avg_degree": data.num_edges / data.num_nodes,
    }


def _is_stochastic(model: torch.nn.Module) -> bool:
    """Whether training and evaluation compute different outputs."""
    batch_norm, dropout = torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd
    return cfg.lcat.dropout > 0 or any(
        isinstance(module, batch_norm) or (isinstance(module, dropout) and module.p > 0) for module in model.modules()
    )


def _as_lists(pair: Lambdas) -> list[Any]:
    return [list(value) if isinstance(value, tuple) else value for value in pair]
