"""No weight decay on λ, with any optimizer.

Weight decay would pull the parameters behind λ to 0, that is towards λ1 = 0 and λ2 = 1. Hooks around the steps of all torch
optimizers, installed with the first learned λ, therefore set its weight decay to 0. The parameter groups of an optimizer are
changed during the step only, so schedulers and state dicts do not notice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from torch.nn import Module, Parameter
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

# The modules, not the parameters: moving, loading or sharding a module may replace its parameters.
_HOLDERS: WeakSet[Module] = WeakSet()

# For optimizers that had to be changed: each changed group, its complete list of parameters, and the group that was added for its
# λ. Empty between steps.
_SPLIT: WeakKeyDictionary[Optimizer, list[tuple[dict[str, Any], list[Parameter], dict[str, Any]]]] = WeakKeyDictionary()

_installed = False


def exempt(module: Module) -> None:
    """Exempts the parameters of ``module`` itself from weight decay, also those that it gets later."""
    global _installed
    _HOLDERS.add(module)
    if not _installed:
        register_optimizer_step_pre_hook(_split_groups)
        register_optimizer_step_post_hook(_join_groups)
        _installed = True


def is_lambda(parameter: Parameter) -> bool:
    """Whether ``parameter`` is behind a λ, so that it does not decay."""
    return id(parameter) in _lambda_ids()


def split_lambdas(parameters: Iterable[Parameter]) -> list[dict[str, Any]]:
    """Parameter groups for an optimizer; those behind λ get no weight decay."""
    lambdas, others = _partition(parameters)
    groups = [{"params": others}] if others else []
    return [*groups, {"params": lambdas, "weight_decay": 0.0}] if lambdas else groups


def _lambda_ids() -> set[int]:
    return {id(parameter) for module in _HOLDERS for parameter in module._parameters.values()}


def _partition(parameters: Iterable[Parameter]) -> tuple[list[Parameter], list[Parameter]]:
    ids = _lambda_ids()
    lambdas: list[Parameter] = []
    others: list[Parameter] = []
    for parameter in parameters:
        (lambdas if id(parameter) in ids else others).append(parameter)
    return lambdas, others


def _split_groups(optimizer: Optimizer, *_: Any) -> None:
    """Moves λ into groups without weight decay, for one step."""
    _join_groups(optimizer)
    for group in list(optimizer.param_groups):
        if not group.get("weight_decay"):
            continue
        lambdas, others = _partition(group["params"])
        if lambdas:
            if optimizer not in _SPLIT:
                _SPLIT[optimizer] = []
                # After a step that an exception ended:
                optimizer.register_state_dict_pre_hook(_join_groups)
                optimizer.register_load_state_dict_pre_hook(_join_groups)
            added = {**group, "params": lambdas, "weight_decay": 0.0}
            _SPLIT[optimizer].append((group, group["params"], added))
            group["params"] = others
            optimizer.param_groups.append(added)


def _join_groups(optimizer: Optimizer, *_: Any) -> None:
    split = _SPLIT.get(optimizer)
    if split:
        added = {id(group) for _, _, group in split}
        optimizer.param_groups[:] = [group for group in optimizer.param_groups if id(group) not in added]
        for group, parameters, _added in split:
            group["params"] = parameters
        split.clear()
