"""The training loop: full batch, every epoch scored on train, validation and test, resumable to the bit.

An epoch scores the weights it starts from, then makes one step. Without dropout and batch normalisation the forward pass of the
step is also that of the scores. The epoch with the best validation metric counts; of several, the first. With
``train.sampler: neighbor`` an epoch makes a step for every sampled batch; the scores are still those of the full graph.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.data import Data, HeteroData
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.graphgym.optim import create_optimizer, create_scheduler

from graphgym_lcat.gym.batches import sampled_batches
from graphgym_lcat.gym.checkpoint import save_checkpoint
from graphgym_lcat.gym.config import check_value
from graphgym_lcat.gym.files import write_atomically
from graphgym_lcat.gym.loader import dataset_title, labelled_nodes, load_graph
from graphgym_lcat.gym.metrics import ogb_evaluation, score_split
from graphgym_lcat.gym.records import SPLITS, Records
from graphgym_lcat.gym.settings import Settings
from graphgym_lcat.gym.tensorboard import Board
from graphgym_lcat.nn.attention import ConvolvedAttention
from graphgym_lcat.nn.interpolation import Lambdas

Parts = tuple[Data | HeteroData, torch.nn.Module, torch.optim.Optimizer, Any]


class TrainingFailed(RuntimeError):
    """The run cannot go on by itself: its loss is no longer a number."""


@dataclass
class Best:
    """The best epoch so far."""

    epoch: int = -1
    value: float = -math.inf
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    lambdas: list[list[Any]] = field(default_factory=list)


def metric_for_selection(labels: Tensor) -> str:
    """``cfg.metric_best``; ``auto`` is accuracy for two classes too, as the paper reports it, and ROC-AUC for several tasks."""
    several_tasks = labels.dim() == 2 and labels.size(1) > 1
    check_value("metric_best", cfg.metric_best)  # a main of GraphGym has checked nothing
    name = ("rocauc" if several_tasks else "accuracy") if cfg.metric_best == "auto" else cfg.metric_best
    if several_tasks != (name == "rocauc") and name != "loss":
        tasks = labels.size(1) if several_tasks else 1
        raise ValueError(
            f"`metric_best: {name}` does not fit the dataset: 'rocauc' is for several tasks, it has {tasks}"
        )
    if name == "auc" and int(labels.max()) != 1:
        raise ValueError("`metric_best: auc` needs two classes, got " + str(int(labels.max()) + 1))
    return name


class Training:
    """One run of ``lcat.loop: train``, epoch by epoch.

    Args:
        run_dir: Where logs and checkpoints go.
        settings: What ``cfg`` was made from, for the checkpoint.
        parts: Graph, model, optimizer and scheduler, if the caller has built them; otherwise ``cfg`` says what they are, and
            ``cfg.seed`` is set before they are built.
    """

    def __init__(self, run_dir: Path, settings: Settings, parts: Parts | None = None):
        self.run_dir = run_dir
        self.settings = settings
        self.device = _device()
        data, self.model, self.optimizer, self.scheduler = parts or self._build()
        target = labelled_nodes(data)
        self.metric = metric_for_selection(target.y)
        self.evaluate = ogb_evaluation(cfg.dataset.name)
        self.dataset = _describe(data)
        self.model.to(self.device)
        self.params = sum(p.numel() for p in self.model.parameters())
        self.attention = [m for m in self.model.modules() if isinstance(m, ConvolvedAttention)]
        nodes = {split: target[f"{split}_mask"].nonzero().view(-1) for split in SPLITS}
        self.labels = {split: target.y[members].to(self.device) for split, members in nodes.items()}
        self.target = target._key if isinstance(data, HeteroData) else None
        self.batches = sampled_batches(data, nodes["train"], self.target)
        self.nodes = {split: members.to(self.device) for split, members in nodes.items()}
        self.data = data.to(self.device)
        self.one_forward = self.batches is None and not _is_stochastic(self.model)
        self.records = Records(run_dir, bool(self.attention))
        self.epoch = 0
        self.best = Best()
        self.best_outputs: Tensor | None = None
        self.best_weights: dict[str, Tensor] | None = None
        self.seconds = 0.0
        self.board: Board | None = None

    def _build(self) -> Parts:
        data = load_graph(sparse=cfg.train.sampler == "full_batch")
        _check_edge_features(data)
        target = labelled_nodes(data)
        cfg.share.dim_in = target.x.size(1)
        cfg.share.dim_out = target.y.size(1) if target.y.dim() == 2 else int(target.y.max()) + 1
        if isinstance(data, HeteroData):
            cfg.share.target, cfg.share.relations = target._key, data.edge_types
            cfg.share.node_types = data.node_types
            cfg.share.embedded = [0 if "x" in data[kind] else data[kind].num_nodes for kind in data.node_types]
        seed_everything(cfg.seed)
        model = create_model(to_device=False).to(self.device)
        optimizer = _fuse(create_optimizer(model.parameters(), cfg.optim), self.device)
        return data, model, optimizer, create_scheduler(optimizer, cfg.optim)

    @property
    def max_epoch(self) -> int:
        return cfg.optim.max_epoch

    def start(self, checkpoint: dict[str, Any] | None) -> None:
        """Begins, or goes on where a checkpoint was written."""
        if checkpoint is None:
            self.records.start({})
            self._open_board()
            return
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.scheduler.load_state_dict(checkpoint["scheduler"])
        self.epoch = checkpoint["epoch"]
        self.best = Best(**checkpoint["best"])
        self.best_outputs = checkpoint["best_outputs"]
        self.best_weights = checkpoint["best_weights"]
        self.seconds = checkpoint["seconds"]
        torch.set_rng_state(checkpoint["rng"])
        if checkpoint["cuda_rng"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(checkpoint["cuda_rng"])
        self.records.start(checkpoint["positions"])
        self._open_board()

    def _open_board(self) -> None:
        if cfg.tensorboard_each_run:
            self.board = Board(self.run_dir, self.epoch)

    def save(self) -> None:
        if self.board is not None:
            self.board.flush()
        save_checkpoint(
            self.run_dir,
            {
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
                "positions": self.records.flush(),
                "settings": self.settings,
                "threads": torch.get_num_threads(),
            },
        )

    def epochs(self) -> Iterator[int]:
        """Trains; yields the number of finished epochs after each, until the last or early stopping."""
        while self.epoch < self.max_epoch and not self._is_stale():
            start = time.perf_counter()
            self._train_epoch()
            self.epoch += 1
            self.seconds += time.perf_counter() - start
            yield self.epoch

    def finish(self) -> dict[str, Any]:
        """Writes what was asked for beside the logs; returns what belongs into ``result.json``."""
        self.records.flush()
        self.close()
        if self.best_outputs is not None:
            labels = self.data[self.target].y if self.target else self.data.y
            arrays = {"outputs": self.best_outputs.numpy(), "labels": labels.cpu().numpy()}
            arrays |= {f"{split}_nodes": nodes.cpu().numpy() for split, nodes in self.nodes.items()}
            write_atomically(self.run_dir / "predictions.npz", lambda file: np.savez_compressed(file, **arrays))
        if self.best_weights is not None:
            write_atomically(self.run_dir / "model.pt", lambda file: torch.save(self.best_weights, file))
        return {
            "dataset": self.dataset,
            "best_epoch": self.best.epoch,
            **self.best.metrics,
            "lambdas": self.best.lambdas,
            "num_parameters": self.params,
            "epochs": self.epoch,
        }

    def close(self) -> None:
        """Lets go of open files, however the run ended."""
        if self.board is not None:
            self.board.close()
            self.board = None

    def _train_epoch(self) -> None:
        start = time.perf_counter()
        rate = self.scheduler.get_last_lr()[0]
        outputs = None
        if not self.one_forward:
            self.model.eval()
            with torch.no_grad():
                outputs = self._forward(self.data)
        self.model.train()
        if self.batches is None:
            train_outputs = self._forward(self.data)
            loss, _ = compute_loss(train_outputs.index_select(0, self.nodes["train"]), self.labels["train"])
            self._record(train_outputs.detach() if outputs is None else outputs, rate, start)
            self._step(loss)
        else:
            self._record(outputs, rate, start)
            for batch in self.batches:
                self._step(self._batch_loss(batch.to(self.device)))
        self.scheduler.step()

    def _batch_loss(self, batch: Data | HeteroData) -> Tensor:
        """The loss of the nodes that a batch was sampled for; they come first."""
        store = batch[self.target] if self.target else batch
        size, labels = store.batch_size, store.y
        return compute_loss(self._forward(batch)[:size], labels[:size])[0]

    def _step(self, loss: Tensor) -> None:
        self._finite(loss, "train")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def _finite(self, loss: Tensor, split: str) -> float:
        value = loss.item()
        if not math.isfinite(value):
            name = {"train": "training", "val": "validation", "test": "test"}[split]
            raise TrainingFailed(f"the {name} loss became {value} in epoch {self.epoch}")
        return value

    def _forward(self, data: Data | HeteroData) -> Tensor:
        outputs, _ = self.model(copy.copy(data))  # GraphGym's layers overwrite batch.x
        return outputs

    def _score(self, outputs: Tensor, split: str) -> tuple[Tensor, dict[str, float]]:
        # What selects and is reported comes from OGB's evaluator; it takes a second for 112 tasks, so training goes without.
        evaluate = self.evaluate if split != "train" else None
        return score_split(outputs.index_select(0, self.nodes[split]), self.labels[split], evaluate)

    def _record(self, outputs: Tensor, rate: float, start: float) -> None:
        metrics = {}
        for split in SPLITS:
            loss, scores = self._score(outputs, split)
            metrics[split] = {"loss": self._finite(loss, split), **scores}
        lambdas = [layer.lambdas() for layer in self.attention]
        value = metrics["val"][self.metric]
        value = -value if self.metric == "loss" else value
        if value > self.best.value:
            self.best = Best(self.epoch, value, metrics, [_listed(pair) for pair in lambdas])
            if cfg.lcat.save_predictions:
                self.best_outputs = outputs.detach().cpu().clone()
            if cfg.lcat.save_model:
                self.best_weights = {k: v.detach().cpu().clone() for k, v in self.model.state_dict().items()}
        if self.records.lambdas is not None:
            self.records.add_lambdas(self.epoch, lambdas)
        if self.board is not None:
            self.board.add(self.epoch, metrics, lambdas)
        elapsed = time.perf_counter() - start
        left = (self.max_epoch - self.epoch - 1) * (self.seconds + elapsed) / (self.epoch + 1)
        for split in SPLITS:
            loss = metrics[split]["loss"]
            stats = {"epoch": self.epoch, "eta": left} if split == "train" else {"epoch": self.epoch}
            stats |= {"loss": loss, "lr": rate, "params": self.params, "time_iter": elapsed}
            self.records.add_stats(split, {**stats, **metrics[split]}, cfg.round)

    def _is_stale(self) -> bool:
        return bool(cfg.lcat.patience) and self.epoch - self.best.epoch > cfg.lcat.patience


def _device() -> torch.device:
    if cfg.accelerator == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=cfg.accelerator).device
    except (RuntimeError, AssertionError) as error:  # torch asserts that it was built for the device
        raise ValueError(
            f"`accelerator` is {cfg.accelerator!r}, but torch has no such device here; use 'auto' or 'cpu'"
        ) from error


def _check_edge_features(data: Data | HeteroData) -> None:
    found = data.get("edge_attr") if isinstance(data, Data) else None
    size = 0 if found is None else found.size(-1)
    if cfg.lcat.edge_dim not in (0, size):
        raise ValueError(
            f"`lcat.edge_dim` is {cfg.lcat.edge_dim}, but the edges of {dataset_title()} have {size} features"
        )


def _describe(data: Data | HeteroData) -> dict[str, Any]:
    return {
        "name": dataset_title(),
        "nodes": data.num_nodes,
        "edges": data.num_edges,
        "avg_degree": data.num_edges / data.num_nodes,
    }


def _fuse(optimizer: torch.optim.Optimizer, device: torch.device) -> torch.optim.Optimizer:
    """One kernel for all parameters instead of a dozen operations for each."""
    if isinstance(optimizer, torch.optim.Adam) and device.type in ("cpu", "cuda"):
        for group in optimizer.param_groups:
            group["fused"] = True
    return optimizer


def _is_stochastic(model: torch.nn.Module) -> bool:
    """Whether training and evaluation compute different things."""
    batch_norm, dropout = torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd
    return cfg.lcat.dropout > 0 or any(
        isinstance(module, batch_norm) or (isinstance(module, dropout) and module.p > 0) for module in model.modules()
    )


def _listed(pair: Lambdas) -> list[Any]:
    return [list(value) if isinstance(value, tuple) else value for value in pair]
