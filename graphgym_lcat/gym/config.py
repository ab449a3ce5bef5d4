"""The keys that this package adds to GraphGym's configuration: defaults, meaning, and what they may be.

``KEYS`` is the only list of them; the defaults, the checks and the documentation come from it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import config_dict
from yacs.config import CfgNode

from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.kernels.dispatch import BACKENDS
from graphgym_lcat.nn.attention import SCORES
from graphgym_lcat.nn.init import INITS
from graphgym_lcat.nn.lcat_conv import SCORE_WEIGHTS


@dataclass(frozen=True)
class Range:
    """What a key may be: in words, and as a test."""

    text: str
    contains: Callable[[Any], bool]
    choices: Sequence[str] = ()


@dataclass(frozen=True)
class Key:
    name: str
    default: Any
    meaning: str
    range: Range


def _one_of(choices: Sequence[str]) -> Range:
    return Range("one of " + ", ".join(repr(c) for c in choices), lambda v: v in choices, choices)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(low: float, high: float, text: str) -> Range:
    return Range(text, lambda v: _is_number(v) and low <= v <= high)


def _whole(low: int) -> Range:
    return Range(f"a whole number of at least {low}", lambda v: _is_whole(v) and v >= low)


_FLAG = Range("true or false", lambda v: isinstance(v, bool))
_LAMBDA = Range(
    "a number in [0, 1], or null or 'learn' to learn it",
    lambda v: v is None or v == "learn" or (_is_number(v) and 0 <= v <= 1),
)
_UNIT = _number(0, 1, "a number in [0, 1]")

KEYS = (
    Key("lcat.score", "gat", "Score of the attention.", _one_of(SCORES)),
    Key("lcat.lambda1", None, "Weight of attention against convolution: 0 is a GCN.", _LAMBDA),
    Key("lcat.lambda2", None, "Convolution of the score's input: 0 is GAT, 1 is CAT.", _LAMBDA),
    Key("lcat.lambda_per_head", False, "Learn one pair of λ per head instead of one per layer.", _FLAG),
    Key("lcat.heads", 1, "Heads of a layer; gnn.dim_inner is their total width.", _whole(1)),
    Key(
        "lcat.score_weights", "shared", "Weights of the score: those of the layer, or its own.", _one_of(SCORE_WEIGHTS)
    ),
    Key("lcat.init", "uniform", "Initial weights: Glorot uniform, or Glorot normal with gain √2.", _one_of(INITS)),
    Key("lcat.negative_slope", 0.2, "Slope of the score's LeakyReLU.", _UNIT),
    Key("lcat.dropout", 0.0, "Dropout probability of the attention coefficients.", _UNIT),
    Key("lcat.edge_dim", 0, "Size of the edge features that the score uses; 0 uses none.", _whole(0)),
    Key("lcat.backend", "auto", "How attention is computed.", _one_of(BACKENDS)),
)


def add_lcat_config(cfg: CfgNode) -> None:
    """Adds the keys of this package, with their defaults, to a GraphGym configuration."""
    for key in KEYS:
        group, name = key.name.split(".")
        if group not in cfg:
            cfg[group] = CfgNode(new_allowed=False)
        cfg[group][name] = key.default


def check_lcat_config(cfg: CfgNode) -> None:
    """Raises ``ValueError`` for the first key of this package whose value is out of its range."""
    for key in KEYS:
        group, name = key.name.split(".")
        value = cfg[group][name]
        if not key.range.contains(value):
            close = difflib.get_close_matches(str(value), key.range.choices, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"`{key.name}` must be {key.range.text}, got {value!r}{hint}")


register_once(config_dict, "lcat", add_lcat_config)
# GraphGym has set its defaults before a plugin can be imported, and a stock main.py never sets them again.
if "lcat" not in cfg:
    add_lcat_config(cfg)
