"""What a configuration means in stock GraphGym where its keys alone would mean something else here: the split of a dataset.

Stock GraphGym never reads ``dataset.split``: it trains on the masks that come with a dataset. A configuration that says nothing
about splits therefore means those masks. If it names a split, that split is used, and a note says what stock GraphGym would do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lcat_core.settings import Settings

#: Datasets that stock GraphGym loads with masks for ``dataset.format: PyG``; for ``OGB``, all have some.
PYG_WITH_MASKS = ("Cora", "CiteSeer", "PubMed")
#: GraphGym's defaults of what a published number depends on; a run records only what differs from them.
DEFAULTS: Settings = {
    "dataset.split": [0.8, 0.1, 0.1],
    "dataset.split_mode": "random",
    "gnn.act": "relu",
    "gnn.batchnorm": True,
    "gnn.dim_inner": 16,
    "gnn.dropout": 0.0,
    "gnn.l2norm": True,
    "gnn.layers_mp": 2,
    "gnn.layers_post_mp": 0,
    "gnn.layers_pre_mp": 0,
    "gnn.stage_type": "stack",
    "optim.lr_decay": 0.1,
    "optim.max_epoch": 200,
    "optim.optimizer": "adam",
    "optim.scheduler": "cos",
    "optim.weight_decay": 0.0005,
}
_MODE = "dataset.split_mode"
_PUBLIC = "public"
#: What says how nodes are split; the seed of a random split does, too.
_SPLIT_KEYS = (_MODE, "dataset.split", "dataset.split_seed", "dataset.split_index", "dataset.split_file")


def settled_split(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Settings:
    """Return the split that settings without one mean in GraphGym, as settings to add; nothing if they name one.

    Args:
        settings: What differs from the defaults.
        defaults: GraphGym's defaults.
    """
    return {} if any(key in settings for key in _SPLIT_KEYS) else stock_split({**defaults, **settings})


def stock_split(complete: Mapping[str, Any]) -> Settings:
    """Return the split that stock GraphGym uses, whatever the configuration says; nothing if that is unknown."""
    return {_MODE: _PUBLIC} if _has_masks(complete) else {}


def split_note(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> str | None:
    """Say what stock GraphGym would do instead, if settled settings replace the dataset's own split."""
    complete = {**defaults, **settings}
    if not _has_masks(complete) or complete[_MODE] == _PUBLIC:
        return None
    return (
        f"{complete['dataset.name']} is split as `{_MODE}` and `dataset.split` say; stock GraphGym ignores both and uses the "
        f"dataset's public split, as `{_MODE}: {_PUBLIC}` does here"
    )


def _has_masks(complete: Mapping[str, Any]) -> bool:
    if complete.get("lcat.loop", "train") != "train":
        return False
    source = complete.get("dataset.format")
    return source == "OGB" or (source == "PyG" and complete["dataset.name"] in PYG_WITH_MASKS)
