"""Optimizers with λ in parameter groups of their own, and the exponential schedule.

:mod:`graphgym_lcat.nn.weight_decay` keeps weight decay away from λ in every training loop. Here the groups of λ are visible as
well: in checkpoints, where earlier versions wrote them, and for schedulers. When GraphGym creates an optimizer, it looks up its
name in ``register.optimizer_dict``. That mapping is replaced by a view of it that wraps every optimizer on lookup, so the order of
imports does not matter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import torch_geometric.graphgym.optim  # noqa: F401  (registers GraphGym's own optimizers and schedules)
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ExponentialLR
from torch_geometric.graphgym import register

from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn import split_lambdas

CreateOptimizer = Callable[..., Optimizer]


class OptimizersWithoutDecayOfLambdas(MutableMapping[Any, CreateOptimizer]):
    """GraphGym's registered optimizers, each changed on lookup so that it does not decay λ.

    Args:
        registered: The original mapping, which stays in use: what is registered in either is found in both.
    """

    def __init__(self, registered: MutableMapping[Any, CreateOptimizer]):
        self.registered = registered

    def __getitem__(self, name: Any) -> CreateOptimizer:
        return without_decay_of_lambdas(self.registered[name])

    def __setitem__(self, name: Any, create: CreateOptimizer) -> None:
        self.registered[name] = create

    def __delitem__(self, name: Any) -> None:
        del self.registered[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.registered)

    def __len__(self) -> int:
        return len(self.registered)


def without_decay_of_lambdas(create: CreateOptimizer) -> CreateOptimizer:
    """Wrap a function that creates an optimizer; λ get parameter groups of their own, without weight decay."""

    @functools.wraps(create)  # GraphGym passes settings by the names in the signature
    def create_without_decay(*args: Any, **kwargs: Any) -> Optimizer:
        optimizer = create(*args, **kwargs)
        for group in list(optimizer.param_groups):
            if "weight_decay" in group:
                _separate_lambdas(optimizer, group)
        return optimizer

    return create_without_decay


def _separate_lambdas(optimizer: Optimizer, group: dict[str, Any]) -> None:
    *others, last = split_lambdas(group["params"])
    if "weight_decay" not in last:  # no λ in this group
        return
    if not others:
        group["weight_decay"] = 0.0
        return
    group["params"] = others[0]["params"]
    optimizer.add_param_group({**{key: value for key, value in group.items() if key != "params"}, **last})


def exponential_scheduler(optimizer: Optimizer, lr_decay: float) -> ExponentialLR:
    """``optim.scheduler: exponential``: multiply the learning rate by ``optim.lr_decay`` after every epoch."""
    return ExponentialLR(optimizer, gamma=lr_decay)


# After a reload, the mapping is already a view.
register.optimizer_dict = OptimizersWithoutDecayOfLambdas(
    getattr(register.optimizer_dict, "registered", register.optimizer_dict)
)
register_once(register.scheduler_dict, "exponential", exponential_scheduler)
