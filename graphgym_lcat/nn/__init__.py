"""The layers, as plain PyG modules: no GraphGym, no global configuration, no files."""

from graphgym_lcat.kernels import Graph
from graphgym_lcat.nn.accelerate import accelerate
from graphgym_lcat.nn.attention_adjacency import AttentionAdjacency
from graphgym_lcat.nn.cat_conv import CATConv
from graphgym_lcat.nn.layer_wise import infer_layer, layer_wise
from graphgym_lcat.nn.lcat_conv import LCATConv
from graphgym_lcat.nn.lcat_gcn2_conv import LCATGCN2Conv
from graphgym_lcat.nn.lcat_gin_conv import LCATGINConv
from graphgym_lcat.nn.lcat_pna_conv import LCATPNAConv
from graphgym_lcat.nn.lcatv2_conv import LCATv2Conv
from graphgym_lcat.nn.scores import register_score
from graphgym_lcat.nn.trimming import trim_to_layer
from graphgym_lcat.nn.weight_decay import split_lambdas

__all__ = [
    "AttentionAdjacency",
    "CATConv",
    "Graph",
    "LCATConv",
    "LCATGCN2Conv",
    "LCATGINConv",
    "LCATPNAConv",
    "LCATv2Conv",
    "accelerate",
    "infer_layer",
    "layer_wise",
    "register_score",
    "split_lambdas",
    "trim_to_layer",
]
