"""Rules for complete settings: names that must be registered, and values that must fit together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch_geometric.graphgym import register

from graphgym_lcat.data.ogb import OGB_DATASETS
from graphgym_lcat.data.splits import MODES
from graphgym_lcat.gym import plugins, tensorboard
from graphgym_lcat.gym.batches import NEIGHBOR, SAMPLERS
from graphgym_lcat.gym.loader import known_datasets
from graphgym_lcat.gym.stacked_network import STACKED_LAYERS
from lcat_core.errors import SettingsError, unknown_name
from lcat_core.models import FIXED_LAYERS, LAYERS

_PLUGGABLE = ("dataset.name", "gnn.layer_type")


def check_names(complete: Mapping[str, Any], where: str) -> None:
    """Refuse names that nobody has registered.

    Raises:
        SettingsError: The first such name, with the nearest known one.
    """
    for key, known in _choices().items():
        if complete[key] not in known:
            message = unknown_name(f"`{key}`", complete[key], sorted(known, key=str), where)
            if key in _PLUGGABLE:
                message += f"; name a module of yours that registers more in `{plugins.KEY}`"
            raise SettingsError(message, key)
    for name in complete["custom_metrics"]:
        if name not in register.metric_dict:
            message = unknown_name("metric", name, register.metric_dict, f" in `custom_metrics`{where}")
            raise SettingsError(message, "custom_metrics")


def _choices() -> dict[str, Collection[Any]]:
    names = known_datasets()
    return {
        "gnn.layer_type": register.layer_dict,
        "gnn.stage_type": register.stage_dict,
        "gnn.act": register.act_dict,
        "gnn.head": ["default", *register.head_dict],
        "model.type": register.network_dict,
        "optim.optimizer": register.optimizer_dict,
        "optim.scheduler": register.scheduler_dict,
        "dataset.split_mode": MODES,
        "train.sampler": SAMPLERS,
        **({} if names is None else {"dataset.name": names}),
        **({} if register.loss_dict else {"model.loss_fun": ["cross_entropy"]}),  # a plugin's loss may have any name
    }


def check_together(complete: Mapping[str, Any], where: str) -> None:
    """Refuse values that are valid alone but not together.

    Raises:
        SettingsError: The first such combination.
    """
    for rule in (_check_lambdas, _check_heads, _check_network, _check_sampler, _check_loop, _check_files):
        found = rule(complete)
        if found is not None:
            key, message = found
            raise SettingsError(f"{message}{where and f' ({where.strip()})'}", key)


#: The key to blame and what is wrong, or None.
Finding = tuple[str, str] | None


def _check_lambdas(complete: Mapping[str, Any]) -> Finding:
    layer_type = complete["gnn.layer_type"]
    if layer_type in FIXED_LAYERS:
        for key in ("lcat.lambda1", "lcat.lambda2"):
            if complete[key] is not None:
                return key, f"`{key}` must not be set for {layer_type!r}, where both λ are 1, got {complete[key]!r}"
    return None


def _check_heads(complete: Mapping[str, Any]) -> Finding:
    width, heads = complete["gnn.dim_inner"], complete["lcat.heads"]
    if complete["gnn.layer_type"] in LAYERS and width % heads:
        return "lcat.heads", f"`gnn.dim_inner`, {width}, must be divisible by `lcat.heads`, got {heads}"
    return None


def _check_network(complete: Mapping[str, Any]) -> Finding:
    name, network, layer_type = complete["dataset.name"], complete["model.type"], complete["gnn.layer_type"]
    if network in ("lcat_stack", "lcat_relational") and layer_type not in STACKED_LAYERS:
        layers = ", ".join(STACKED_LAYERS)
        return "model.type", f"`model.type`, {network!r}, supports the layers {layers}, got {layer_type!r}"
    has_several_types = name in OGB_DATASETS and bool(OGB_DATASETS[name].target)
    if has_several_types != (network == "lcat_relational"):
        needed = "must be 'lcat_relational'" if has_several_types else "must not be 'lcat_relational'"
        return "model.type", f"`model.type` {needed} for {name}, got {network!r}"
    return None


def _check_sampler(complete: Mapping[str, Any]) -> Finding:
    sizes, layers = complete["train.neighbor_sizes"], complete["gnn.layers_mp"]
    if complete["train.sampler"] == NEIGHBOR and len(sizes) != layers:
        return (
            "train.neighbor_sizes",
            f"`train.neighbor_sizes` needs one number for each of {layers} layers, got {sizes}",
        )
    if complete["train.sampler"] != NEIGHBOR and complete["lcat.convolve_hops"]:
        return "lcat.convolve_hops", "`lcat.convolve_hops` needs `train.sampler: neighbor`"
    return None


def _check_loop(complete: Mapping[str, Any]) -> Finding:
    if complete["lcat.loop"] == "csbm" and complete["csbm.model"] == "lcat" and not complete["csbm.learned"]:
        return "csbm.learned", "`csbm.model` is 'lcat', which needs `csbm.learned: true`"
    return None


def _check_files(complete: Mapping[str, Any]) -> Finding:
    if complete["dataset.split_mode"] == "file" and not complete["dataset.split_file"]:
        return "dataset.split_file", "`dataset.split_mode` is 'file', so `dataset.split_file` must name a file"
    if complete["tensorboard_each_run"] and (reason := tensorboard.why_unavailable()) is not None:
        return "tensorboard_each_run", f"`tensorboard_each_run` is true, but {reason}"
    return None
