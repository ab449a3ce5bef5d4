"""The keys that this package adds to GraphGym's configuration: defaults, meaning, and what they may be.

``KEYS`` is the only list of them; the defaults, the checks and the documentation come from it. ``GRAPHGYM_RANGES`` says what
GraphGym's own keys may be in our training loop, since GraphGym itself hardly checks them.
"""

from __future__ import annotations

import copy
import difflib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import config_dict
from yacs.config import CfgNode

from graphgym_lcat.data.splits import RATIOS, are_ratios
from graphgym_lcat.gym import plugins
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.kernels.dispatch import backend_names
from graphgym_lcat.nn.init import INITS
from graphgym_lcat.nn.scores import SCORE_WEIGHTS, SCORES
from graphgym_lcat.synthetic.experiment import MODELS as CSBM_MODELS


@dataclass(frozen=True)
class Range:
    """What a key may be: in words, and as a test."""

    text: str
    contains: Callable[[Any], bool]
    choices: Collection[str] = ()


@dataclass(frozen=True)
class Key:
    name: str
    default: Any
    meaning: str
    range: Range


def _one_of(choices: Collection[str]) -> Range:
    return Range("one of " + ", ".join(repr(c) for c in choices), lambda v: v in choices, choices)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(low: float, high: float, text: str) -> Range:
    return Range(text, lambda v: _is_number(v) and low <= v <= high)


def _whole(low: int) -> Range:
    return Range(f"a whole number of at least {low}", lambda v: _is_whole(v) and v >= low)


def _is_device(value: str) -> bool:
    """Whether torch knows the name; a sweep is planned where the device need not be."""
    try:
        return value == "auto" or bool(torch.device(value))
    except RuntimeError:
        return False


_FLAG = Range("true or false", lambda v: isinstance(v, bool))
_LAMBDA = Range(
    "a number in [0, 1], or null or 'learn' to learn it",
    lambda v: v is None or v == "learn" or (_is_number(v) and 0 <= v <= 1),
)
_UNIT = _number(0, 1, "a number in [0, 1]")
_SLOPE = Range("a number in [0, 1)", lambda v: _is_number(v) and 0 <= v < 1)

_NAMES = Range("a list of names", lambda v: isinstance(v, list) and v and all(isinstance(n, str) for n in v))
_MODULES = Range("a list of modules", lambda v: isinstance(v, list) and all(isinstance(n, str) for n in v))
_TEXT = Range("text", lambda v: isinstance(v, str))
_NOT_NEGATIVE = Range("a number of at least 0", lambda v: _is_number(v) and 0 <= v < math.inf)
_POSITIVE = Range("a positive number", lambda v: _is_number(v) and 0 < v < math.inf)
_SEED = Range("a whole number from 0 to 2**32 - 1", lambda v: _is_whole(v) and 0 <= v < 2**32)

_OPTIONAL_SIZE = Range("null or a whole number of at least 1", lambda v: v is None or (_is_whole(v) and v >= 1))
_OPTIONAL_GAIN = Range("null or a positive number", lambda v: v is None or _POSITIVE.contains(v))

LOOPS = ("train", "csbm")
NORMS = ("batch", "layer")
OUTPUTS = ("linear", "layer")
METRICS = ("auto", "accuracy", "auc", "rocauc", "loss")

KEYS = (
    Key("lcat.score", "gat", "Score of the attention.", _one_of(SCORES)),
    Key("lcat.lambda1", None, "Weight of attention against convolution: 0 is a GCN.", _LAMBDA),
    Key("lcat.lambda2", None, "Convolution of the score's input: 0 is GAT, 1 is CAT.", _LAMBDA),
    Key("lcat.lambda_per_head", False, "Learn one pair of λ per head instead of one per layer.", _FLAG),
    Key("lcat.heads", 1, "Heads of a layer; gnn.dim_inner is their total width.", _whole(1)),
    Key(
        "lcat.score_weights",
        "shared",
        "Weights of the score: those of the values, or separate ones.",
        _one_of(SCORE_WEIGHTS),
    ),
    Key("lcat.init", "uniform", "Initial weights: Glorot uniform, or Glorot normal with gain √2.", _one_of(INITS)),
    Key("lcat.negative_slope", 0.2, "Slope of the score's LeakyReLU.", _UNIT),
    Key("lcat.dropout", 0.0, "Dropout probability of the attention coefficients.", _UNIT),
    Key("lcat.edge_dim", 0, "Size of the edge features that the score uses; 0 uses none.", _whole(0)),
    Key("lcat.gcn2_alpha", 0.1, "GCNII: weight of the first representation.", _UNIT),
    Key("lcat.gcn2_theta", 0.5, "GCNII: decay of the weights over the layers.", _POSITIVE),
    Key("lcat.gin_eps", 0.0, "GIN: weight of a node's own features, beyond 1.", Range("a number", _is_number)),
    Key("lcat.gin_train_eps", False, "GIN: learn that weight.", _FLAG),
    Key("lcat.pna_aggregators", ["mean", "min", "max", "std"], "PNA: aggregators of PyG.", _NAMES),
    Key("lcat.pna_scalers", ["identity", "amplification", "attenuation"], "PNA: scalers of PyG.", _NAMES),
    Key("lcat.backend", "auto", "How attention is computed.", _one_of(backend_names())),
    Key(
        "lcat.norm",
        "batch",
        "The normalisation that gnn.batchnorm: true switches on (model.type: lcat).",
        _one_of(NORMS),
    ),
    Key(
        "lcat.output",
        "linear",
        "What gives the classes: a linear layer, or the last graph layer, its heads averaged (model.type: lcat_stack).",
        _one_of(OUTPUTS),
    ),
    Key("lcat.input_dropout", 0.0, "Dropout before the first graph layer (model.type: lcat_stack).", _UNIT),
    Key(
        "lcat.loop",
        "train",
        "What a run does: train a network, or one point of the synthetic experiment.",
        _one_of(LOOPS),
    ),
    Key(
        plugins.KEY,
        [],
        "Your Python modules to import first, from the working directory too: they register datasets or layers.",
        _MODULES,
    ),
    Key("lcat.patience", 0, "Stop after so many epochs without a better validation metric; 0 never stops.", _whole(0)),
    Key("lcat.checkpoint_seconds", 20.0, "Time between two checkpoints of a run.", _NOT_NEGATIVE),
    Key("lcat.log_every", 100, "Without a terminal, print a line every so many epochs; 0 prints none.", _whole(0)),
    Key("lcat.save_predictions", False, "Write the outputs of the best epoch to predictions.npz.", _FLAG),
    Key("lcat.save_model", False, "Write the weights of the best epoch to model.pt.", _FLAG),
    Key("dataset.label", "", "Name of the dataset in tables, if not dataset.name.", _TEXT),
    Key("dataset.split_seed", 0, "Seed of a random split, apart from the seed of the weights.", _SEED),
    Key("dataset.split_index", 0, "Column of two-dimensional public masks.", _whole(0)),
    Key(
        "dataset.split_file", "", "An .npz or .json file with train, val and test, for dataset.split_mode: file.", _TEXT
    ),
    Key("dataset.row_normalize", False, "Scale every node's features to sum 1.", _FLAG),
    Key("noise.features", 0.0, "σ of Gaussian noise that is added to the features, drawn by `seed`.", _NOT_NEGATIVE),
    Key("noise.edges", 0.0, "Share of fake edges, of the true ones, that are added, drawn by `seed`.", _NOT_NEGATIVE),
    Key("block_model.num_nodes", 1000, "Generated graph: nodes.", _whole(2)),
    Key("block_model.num_classes", 5, "Generated graph: classes, of equal size.", _whole(2)),
    Key("block_model.num_features", 32, "Generated graph: features.", _whole(1)),
    Key("block_model.avg_degree", 10.0, "Generated graph: edges per node, both directions counted.", _POSITIVE),
    Key("block_model.homophily", 0.4, "Generated graph: share of edges inside a class.", _UNIT),
    Key("block_model.signal", 1.5, "Generated graph: length of a class mean, in units of the noise.", _NOT_NEGATIVE),
    Key("block_model.seed", 0, "Generated graph: seed of nodes, edges and features.", _whole(0)),
    Key("csbm.model", "gat", "Synthetic experiment: the one-layer model of the appendix.", _one_of(tuple(CSBM_MODELS))),
    Key("csbm.n", 1000, "CSBM: nodes.", _whole(3)),
    Key("csbm.p", 0.5, "CSBM: probability of an edge inside a community.", _UNIT),
    Key("csbm.q", 0.1, "CSBM: probability of an edge between two communities.", _UNIT),
    Key("csbm.mu_norm", 1.0, "CSBM: ‖μ‖, the distance between the means of neighbouring communities.", _POSITIVE),
    Key("csbm.sigma", 0.1, "CSBM: deviation of a feature.", _POSITIVE),
    Key("csbm.d", None, "CSBM: features; null takes n / (5 ln² n), as the paper.", _OPTIONAL_SIZE),
    Key("csbm.seed", 0, "CSBM as a dataset: seed of the sample (the synthetic experiment uses `seed`).", _whole(0)),
    Key("csbm.slope", 0.01, "Synthetic experiment: slope of LeakyReLU; GAT needs less than 1/17.", _SLOPE),
    Key("csbm.learned", False, "Synthetic experiment: learn C, and λ1 and λ2 for lcat.", _FLAG),
    Key("csbm.steps", 100, "Synthetic experiment: steps of Adam, where learned.", _whole(1)),
    Key("csbm.lr", 0.05, "Synthetic experiment: learning rate of Adam, where learned.", _POSITIVE),
    Key(
        "csbm.logit_gain",
        None,
        "Synthetic experiment: null trains on plain logits; k on k/‖μ‖ times them.",
        _OPTIONAL_GAIN,
    ),
)

GRAPHGYM_RANGES = {
    "seed": _SEED,
    "num_threads": _whole(1),
    "round": _whole(0),
    "accelerator": Range("'auto' or a device of torch such as 'cpu' or 'cuda'", _is_device, ("auto", "cpu", "cuda")),
    "metric_best": _one_of(METRICS),
    "dataset.task": _one_of(("node",)),
    "dataset.task_type": _one_of(("classification", "classification_binary", "classification_multi")),
    "model.size_average": _one_of(("mean", "sum")),
    "dataset.split": Range(RATIOS, are_ratios),
    "gnn.layers_pre_mp": _whole(0),
    "gnn.layers_mp": _whole(1),
    "gnn.layers_post_mp": _whole(0),
    "gnn.dim_inner": _whole(1),
    "gnn.dropout": _UNIT,
    "optim.base_lr": _POSITIVE,
    "optim.weight_decay": _NOT_NEGATIVE,
    "optim.momentum": _NOT_NEGATIVE,
    "optim.lr_decay": _POSITIVE,
    "optim.max_epoch": _whole(1),
}

RANGES = {key.name: key.range for key in KEYS} | GRAPHGYM_RANGES


def add_lcat_config(cfg: CfgNode) -> None:
    """Adds the keys of this package, with their defaults, to a GraphGym configuration."""
    for key in KEYS:
        group, name = key.name.split(".")
        if group not in cfg:
            cfg[group] = CfgNode(new_allowed=False)
        cfg[group][name] = copy.copy(key.default)


def check_lcat_config(cfg: CfgNode) -> None:
    """Raises ``ValueError`` for the first key of this package whose value is out of its range."""
    for key in KEYS:
        group, name = key.name.split(".")
        check_value(key.name, cfg[group][name])


def check_value(name: str, value: Any) -> None:
    """Raises ``ValueError`` if ``value`` is out of the range of the key ``name``, one of ``RANGES``."""
    allowed = RANGES[name]
    if not allowed.contains(value):
        close = difflib.get_close_matches(str(value), allowed.choices, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"`{name}` must be {allowed.text}, got {value!r}{hint}")


register_once(config_dict, "lcat", add_lcat_config)
# GraphGym has set its defaults before a plugin can be imported, and a stock main.py never sets them again.
if "lcat" not in cfg:  # importing again must not undo what a user has set
    add_lcat_config(cfg)
