"""Optimizers that leave λ alone, and the exponential schedule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import torch_geometric.graphgym.optim  # noqa: F401  (registers GraphGym's own optimizers, which are wrapped below)
from torch.nn import Parameter
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ExponentialLR
from torch_geometric.graphgym.register import optimizer_dict, scheduler_dict

from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.nn.interpolation import split_lambdas


def without_decay_of_lambdas(create: Callable[..., Optimizer]) -> Callable[..., Optimizer]:
    """Wraps one of GraphGym's optimizer functions. Weight decay would pull towards λ1 = 0, λ2 = 1."""

    @functools.wraps(create)
    def create_in_groups(params: Iterable[Parameter], *args, **kwargs) -> Optimizer:
        return create(split_lambdas(params), *args, **kwargs)

    create_in_groups.splits_lambdas = True
    return create_in_groups


def exponential_scheduler(optimizer: Optimizer, lr_decay: float) -> ExponentialLR:
    """``optim.scheduler: exponential``: the learning rate times ``optim.lr_decay`` after every epoch."""
    return ExponentialLR(optimizer, gamma=lr_decay)


for _name, _create in list(optimizer_dict.items()):
    if not getattr(_create, "splits_lambdas", False):
        optimizer_dict[_name] = without_decay_of_lambdas(_create)
register_once(scheduler_dict, "exponential", exponential_scheduler)
