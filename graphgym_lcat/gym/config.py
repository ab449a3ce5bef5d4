"""The keys that this package adds to GraphGym's configuration: their defaults, meanings and ranges.

``KEYS`` is the only list of them: defaults, checks and documentation come from it. ``GRAPHGYM_RANGES`` are the ranges of GraphGym's
own keys in our training loop, since GraphGym checks few of them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import config_dict
from yacs.config import CfgNode

from graphgym_lcat.data.splits import RATIOS, are_ratios
from graphgym_lcat.gym import plugins
from graphgym_lcat.gym.loops import LOOPS
from graphgym_lcat.gym.metrics import selectable_metrics
from graphgym_lcat.gym.ranges import (
    BELOW_ONE,
    DEVICE,
    FLAG,
    LAMBDA,
    MODULES,
    NAMES,
    NEIGHBOR_SIZES,
    NOT_NEGATIVE,
    NUMBER,
    OPTIONAL_POSITIVE,
    OPTIONAL_SIZE,
    POSITIVE,
    SEED,
    TEXT,
    UNIT,
    Range,
    one_of,
    whole_number,
)
from graphgym_lcat.gym.registration import register_once
from graphgym_lcat.kernels.dispatch import backend_names
from graphgym_lcat.nn.init import INITS
from graphgym_lcat.nn.scores import SCORE_WEIGHTS, SCORES
from graphgym_lcat.synthetic.experiment import MODELS as CSBM_MODELS
from lcat_core.errors import SettingsError, did_you_mean


@dataclass(frozen=True)
class Key:
    """One key of the configuration."""

    name: str
    default: Any
    meaning: str
    range: Range


NORMS = ("batch", "layer")
OUTPUTS = ("linear", "layer")

KEYS = (
    Key("lcat.score", "gat", "Score of the attention; `my_module.cosine` is a function of your own.", one_of(SCORES)),
    Key("lcat.lambda1", None, "Weight of attention against convolution: 0 is a GCN.", LAMBDA),
    Key("lcat.lambda2", None, "Convolution of the score's input: 0 is GAT, 1 is CAT.", LAMBDA),
    Key("lcat.lambda_per_head", False, "Learn one pair of λ per head instead of one per layer.", FLAG),
    Key("lcat.heads", 1, "Heads of a layer; gnn.dim_inner is their total width.", whole_number(1)),
    Key(
        "lcat.score_weights",
        "shared",
        "Weights of the score: those of the values, or separate ones.",
        one_of(SCORE_WEIGHTS),
    ),
    Key("lcat.init", "uniform", "Initial weights: Glorot uniform, or Glorot normal with gain √2.", one_of(INITS)),
    Key("lcat.negative_slope", 0.2, "Slope of the score's LeakyReLU.", UNIT),
    Key("lcat.dropout", 0.0, "Dropout probability of the attention coefficients.", UNIT),
    Key("lcat.edge_dim", 0, "Size of the edge features that the score uses; 0 uses none.", whole_number(0)),
    Key("lcat.gcn2_alpha", 0.1, "GCNII: weight of the first representation.", UNIT),
    Key("lcat.gcn2_theta", 0.5, "GCNII: decay of the weights over the layers.", POSITIVE),
    Key("lcat.gin_eps", 0.0, "GIN: weight of a node's own features, beyond 1.", NUMBER),
    Key("lcat.gin_train_eps", False, "GIN: learn that weight.", FLAG),
    Key("lcat.pna_aggregators", ["mean", "min", "max", "std"], "PNA: aggregators of PyG.", NAMES),
    Key("lcat.pna_scalers", ["identity", "amplification", "attenuation"], "PNA: scalers of PyG.", NAMES),
    Key("lcat.backend", "auto", "How attention is computed.", one_of(backend_names)),
    Key(
        "lcat.norm",
        "batch",
        "The normalisation that gnn.batchnorm: true enables (model.type: lcat).",
        one_of(NORMS),
    ),
    Key(
        "lcat.output",
        "linear",
        "The output layer: a linear layer, or the last graph layer with its heads averaged (model.type: lcat_stack).",
        one_of(OUTPUTS),
    ),
    Key("lcat.input_dropout", 0.0, "Dropout before the first graph layer (model.type: lcat_stack).", UNIT),
    Key(
        "lcat.loop",
        "train",
        "What a run computes: it trains a network, or computes one point of the synthetic experiment.",
        one_of(LOOPS),
    ),
    Key(
        plugins.KEY,
        [],
        "Your Python modules to import, and so to run, first, with --dry-run too; they register datasets, layers or metrics. "
        "The working directory is searched as well.",
        MODULES,
    ),
    Key(
        "lcat.patience",
        0,
        "Stop after this many epochs without a better validation metric; 0 never stops.",
        whole_number(0),
    ),
    Key(
        "lcat.convolve_hops",
        0,
        "Hops to sample beyond one per layer (train.sampler: neighbor), so that λ2 averages neighbours of border nodes too.",
        whole_number(0),
    ),
    Key(
        "lcat.eval_batch_size",
        0,
        "Nodes per block when all nodes are scored layer by layer; 0 scores the whole graph at once.",
        whole_number(0),
    ),
    Key("lcat.checkpoint_seconds", 20.0, "Seconds between two checkpoints of a run.", NOT_NEGATIVE),
    Key(
        "lcat.log_every",
        100,
        "Epochs between two lines of progress, if there is no terminal; 0 prints none.",
        whole_number(0),
    ),
    Key("lcat.save_predictions", False, "Write the outputs of the best epoch to predictions.npz.", FLAG),
    Key("lcat.save_model", False, "Write the weights of the best epoch to model.pt.", FLAG),
    Key("dataset.label", "", "Name of the dataset in tables, if not dataset.name.", TEXT),
    Key("dataset.split_seed", 0, "Seed of a random split, independent of the seed of the weights.", SEED),
    Key(
        "dataset.split_index",
        0,
        "Column of the public splits where there are several; 0 uses the column `dataset.split_seed`.",
        whole_number(0),
    ),
    Key(
        "dataset.split_file", "", "An .npz or .json file with train, val and test, for dataset.split_mode: file.", TEXT
    ),
    Key("dataset.row_normalize", False, "Scale the features of every node to sum 1.", FLAG),
    Key("noise.features", 0.0, "σ of the Gaussian noise added to the features; drawn with `seed`.", NOT_NEGATIVE),
    Key("noise.edges", 0.0, "Fake edges to add, as a share of the true ones; drawn with `seed`.", NOT_NEGATIVE),
    Key("block_model.num_nodes", 1000, "Generated graph: nodes.", whole_number(2)),
    Key("block_model.num_classes", 5, "Generated graph: classes, of equal size.", whole_number(2)),
    Key("block_model.num_features", 32, "Generated graph: features.", whole_number(1)),
    Key("block_model.avg_degree", 10.0, "Generated graph: edges per node, counting both directions.", POSITIVE),
    Key("block_model.homophily", 0.4, "Generated graph: share of edges within classes.", UNIT),
    Key("block_model.signal", 1.5, "Generated graph: length of a class mean, in units of the noise.", NOT_NEGATIVE),
    Key("block_model.seed", 0, "Generated graph: seed of nodes, edges and features.", whole_number(0)),
    Key("csbm.model", "gat", "Synthetic experiment: the one-layer model of the appendix.", one_of(tuple(CSBM_MODELS))),
    Key("csbm.n", 1000, "CSBM: nodes.", whole_number(3)),
    Key("csbm.p", 0.5, "CSBM: probability of an edge within a community.", UNIT),
    Key("csbm.q", 0.1, "CSBM: probability of an edge between two communities.", UNIT),
    Key("csbm.mu_norm", 1.0, "CSBM: ‖μ‖, the distance between the means of neighbouring communities.", POSITIVE),
    Key("csbm.sigma", 0.1, "CSBM: standard deviation of a feature.", POSITIVE),
    Key("csbm.d", None, "CSBM: features; null stands for n / (5 ln² n), as in the paper.", OPTIONAL_SIZE),
    Key(
        "csbm.seed", 0, "CSBM as a dataset: seed of the sample (the synthetic experiment uses `seed`).", whole_number(0)
    ),
    Key("csbm.slope", 0.01, "Synthetic experiment: slope of LeakyReLU; GAT needs less than 1/17.", BELOW_ONE),
    Key("csbm.learned", False, "Synthetic experiment: learn C, and for lcat also λ1 and λ2.", FLAG),
    Key("csbm.steps", 100, "Synthetic experiment: steps of Adam, if csbm.learned.", whole_number(1)),
    Key("csbm.lr", 0.05, "Synthetic experiment: learning rate of Adam, if csbm.learned.", POSITIVE),
    Key(
        "csbm.logit_gain",
        None,
        "Synthetic experiment: null trains on plain logits; a number k trains on k/‖μ‖ times the logits.",
        OPTIONAL_POSITIVE,
    ),
)

GRAPHGYM_RANGES = {
    "seed": SEED,
    "num_threads": whole_number(1),
    "round": whole_number(0),
    "accelerator": DEVICE,
    "metric_best": one_of(selectable_metrics),
    "dataset.task": one_of(("node",)),
    "dataset.task_type": one_of(("classification", "classification_binary", "classification_multi")),
    "model.size_average": one_of(("mean", "sum")),
    "dataset.split": Range(RATIOS, are_ratios),
    "gnn.layers_pre_mp": whole_number(0),
    "gnn.layers_mp": whole_number(1),
    "gnn.layers_post_mp": whole_number(0),
    "gnn.dim_inner": whole_number(1),
    "gnn.dropout": UNIT,
    "train.batch_size": whole_number(1),
    "train.neighbor_sizes": NEIGHBOR_SIZES,
    "optim.base_lr": POSITIVE,
    "optim.weight_decay": NOT_NEGATIVE,
    "optim.momentum": NOT_NEGATIVE,
    "optim.lr_decay": POSITIVE,
    "optim.max_epoch": whole_number(1),
}

RANGES = {key.name: key.range for key in KEYS} | GRAPHGYM_RANGES


def add_lcat_config(cfg: CfgNode) -> None:
    """Add the keys of this package, with their defaults, to a GraphGym configuration."""
    for key in KEYS:
        group, name = key.name.split(".")
        if group not in cfg:
            cfg[group] = CfgNode(new_allowed=False)
        cfg[group][name] = copy.copy(key.default)


def check_lcat_config(cfg: CfgNode) -> None:
    """Check the keys of this package.

    Raises:
        SettingsError: The first value that is out of range.
    """
    for key in KEYS:
        group, name = key.name.split(".")
        check_value(key.name, cfg[group][name])


def check_value(name: str, value: Any, where: str = "") -> None:
    """Check the value of one key of ``RANGES``; ``where`` says where it was set.

    Raises:
        SettingsError: The value is out of range.
    """
    allowed = RANGES[name]
    if not allowed.contains(value):
        hint = did_you_mean(value, allowed.choices)
        raise SettingsError(
            f"`{name}` must be {allowed.text}, got {value!r}{hint}{where and f' ({where.strip()})'}", name
        )


register_once(config_dict, "lcat", add_lcat_config)
# GraphGym sets its defaults before a plugin can be imported, and a stock main.py never sets them again.
if "lcat" not in cfg:  # a second import must not reset what a user has set
    add_lcat_config(cfg)
