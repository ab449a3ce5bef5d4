"""The training loop: full batch, every epoch scored on train, validation and test, resumable to the bit.

An epoch scores the weights it starts from, then makes one step. Without dropout and batch normalisation the forward pass of the
step is also that of the scores. The epoch with the best validation metric counts; of several, the first.
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
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.graphgym.optim import create_optimizer, create_scheduler

from graphgym_lcat.gym.checkpoint import save_checkpoint
from graphgym_lcat.gym.files import write_atomically
from graphgym_lcat.gym.loader import load_graph
from graphgym_lcat.gym.metrics import score_split
from graphgym_lcat.gym.records import SPLITS, Records
from graphgym_lcat.gym.settings import Settings
from graphgym_lcat.gym.tensorboard import Board
from graphgym_lcat.nn.attention import ConvolvedAttention
from graphgym_lcat.nn.interpolation import Lambdas

Parts = tuple[Data, torch.nn.Module, torch.optim.Optimizer, Any]

METRICS_TO_MAXIMISE = ("accuracy", "auc")


class TrainingFailed(RuntimeError):
    """The run cannot go on by itself: its loss is no longer a number."""


@dataclass
class Best:
    """The best epoch so far."""

    epoch: int = -1
    value: float = -math.inf
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    lambdas: list[list[Any]] = field(default_factory=list)


def metric_for_selection() -> str:
    """``cfg.metric_best``; ``auto`` is accuracy for two classes too, as the paper reports it."""
    name = "accuracy" if cfg.metric_best == "auto" else cfg.metric_best
    if name not in (*METRICS_TO_MAXIMISE, "loss"):
        raise ValueError(f"`metric_best` must be one of 'auto', 'accuracy', 'auc', 'loss', got {name!r}")
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
        self.device = torch.device(_device())
        self.metric = metric_for_selection()
        data, self.model, self.optimizer, self.scheduler = parts or self._build()
        if self.metric == "auc" and int(data.y.max()) != 1:
            raise ValueError("`metric_best: auc` needs two classes, got " + str(int(data.y.max()) + 1))
        self.dataset = _describe(data)
        self.model.to(self.device)
        self.params = sum(p.numel() for p in self.model.parameters())
        self.attention = [m for m in self.model.modules() if isinstance(m, ConvolvedAttention)]
        self.data = data.to(self.device)
        self.nodes = {split: data[f"{split}_mask"].nonzero().view(-1).to(self.device) for split in SPLITS}
        self.labels = {split: data.y[nodes.cpu()].to(self.device) for split, nodes in self.nodes.items()}
        self.one_forward = not _is_stochastic(self.model)
        self.records = Records(run_dir, bool(self.attention))
        self.epoch = 0
        self.best = Best()
        self.best_outputs: Tensor | None = None
        self.best_weights: dict[str, Tensor] | None = None
        self.seconds = 0.0
        self.board: Board | None = None

    def _build(self) -> Parts:
        data = load_graph()
        cfg.share.dim_in, cfg.share.dim_out = data.x.size(1), int(data.y.max()) + 1
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
        if self.board is not None:
            self.board.close()
        if self.best_outputs is not None:
            arrays = {"outputs": self.best_outputs.numpy(), "labels": self.data.y.cpu().numpy()}
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

    def _train_epoch(self) -> None:
        start = time.perf_counter()
        rate = self.scheduler.get_last_lr()[0]
        if not self.one_forward:
            self.model.eval()
            with torch.no_grad():
                outputs = self._forward()
            self.model.train()
            train_outputs = self._forward()
        else:
            self.model.train()
            train_outputs = self._forward()
            outputs = train_outputs.detach()
        loss, _ = self._score(train_outputs, "train")
        self._record(outputs, rate, start)
        if not math.isfinite(loss.item()):
            raise TrainingFailed(f"the training loss became {loss.item()} in epoch {self.epoch}")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()

    def _forward(self) -> Tensor:
        outputs, _ = self.model(copy.copy(self.data))  # GraphGym's layers overwrite batch.x
        return outputs

    def _score(self, outputs: Tensor, split: str) -> tuple[Tensor, dict[str, float]]:
        return score_split(outputs.index_select(0, self.nodes[split]), self.labels[split])

    def _record(self, outputs: Tensor, rate: float, start: float) -> None:
        metrics = {}
        for split in SPLITS:
            loss, scores = self._score(outputs, split)
            metrics[split] = {"loss": loss.item(), **scores}
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


def _device() -> str:
    if cfg.accelerator != "auto":
        return cfg.accelerator
    return "cuda" if torch.cuda.is_available() else "cpu"


def _describe(data: Data) -> dict[str, Any]:
    return {
        "name": cfg.dataset.label or cfg.dataset.name,
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
    kinds = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
    return cfg.lcat.dropout > 0 or any(isinstance(module, kinds) for module in model.modules())


def _listed(pair: Lambdas) -> list[Any]:
    return [list(value) if isinstance(value, tuple) else value for value in pair]
