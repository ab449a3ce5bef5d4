"""``train.sampler: neighbor``: an epoch takes one step per sampled batch, and resumes after any of them, to the bit.

The scores of an epoch are those of all nodes on the complete graph, with the weights that the epoch starts with.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss

from graphgym_lcat.data.freed_memory import keep_freed_memory
from graphgym_lcat.gym.batches import FULL_BATCH, sampled_batches
from graphgym_lcat.gym.build import Parts, build_from_cfg
from graphgym_lcat.gym.loader import labelled_nodes
from graphgym_lcat.gym.loops import Epoch, Step, register_loop
from graphgym_lcat.gym.training import Training


class SampledTraining(Training):
    """Training with sampled batches; its state holds the scores of the current epoch and the number of steps taken in it."""

    def __init__(self, parts: Parts):
        target = labelled_nodes(parts.data)
        kind = target._key if isinstance(parts.data, HeteroData) else None
        self.batches = sampled_batches(parts.data, target.train_mask.nonzero().view(-1), kind)
        super().__init__(parts)
        self.one_forward = False
        self.scored: Epoch | None = None
        self.steps = 0

    def state(self) -> dict[str, Any]:
        scored = None if self.scored is None else asdict(self.scored)
        return {**super().state(), "scored": scored, "steps": self.steps}

    def resume(self, state: Mapping[str, Any]) -> None:
        super().resume(state)
        scored = state["scored"]
        self.scored = None if scored is None else Epoch(**scored)
        self.steps = state["steps"]

    def epochs(self) -> Iterator[Epoch | Step]:
        keep_freed_memory()  # here, for the process that trains
        while self.epoch < self.max_epoch and not self._is_stale():
            start = time.perf_counter()
            if self.scored is None:
                rate = self.scheduler.get_last_lr()[0]
                self.scored = self._score_epoch(self._evaluation_outputs(), rate, start)
            self.model.train()
            for batch in self.batches.batches(self.epoch, self.steps):
                self._step(self._batch_loss(batch.to(self.device)))
                self.steps += 1
                self.seconds += time.perf_counter() - start
                yield Step(self.steps, len(self.batches))
                start = time.perf_counter()
            self.scheduler.step()
            self.epoch += 1
            self.seconds += time.perf_counter() - start
            left = (self.max_epoch - self.epoch) * self.seconds / self.epoch
            epoch, self.scored, self.steps = replace(self.scored, eta=left), None, 0
            yield epoch

    def _batch_loss(self, batch: Data | HeteroData) -> Tensor:
        """Compute the loss of the nodes that a batch was sampled for, which come first in it."""
        store = batch[self.target] if self.target else batch
        size, labels = store.batch_size, store.y
        loss: Tensor = compute_loss(self._forward(batch)[:size], labels[:size])[0]
        return loss


@register_loop("train")
def build_training() -> Training:
    """Build the training run that ``cfg`` describes."""
    parts = build_from_cfg()
    return Training(parts) if cfg.train.sampler == FULL_BATCH else SampledTraining(parts)
