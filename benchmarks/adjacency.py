"""PNA, GCNII and GIN on the attention adjacency, against PyG's plain layers plus one layer of L-CAT."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import Linear, ReLU, Sequential
from torch_geometric.nn import GCN2Conv, GINConv, PNAConv
from torch_geometric.utils import degree

from graphgym_lcat.nn import LCATGCN2Conv, LCATGINConv, LCATPNAConv
from lcat_benchmarks.contenders import CONTENDERS, FLOOR, Build, Contender, Layer
from lcat_benchmarks.graphs import BenchmarkGraph
from lcat_benchmarks.result import Result

#: (our layer, the plain layer)
PAIRS = (("lcat PNA", "PyG PNAConv"), ("lcat GCNII", "PyG GCN2Conv"), ("lcat GIN", "PyG GINConv"))
SCORE = "lcat"
AGGREGATORS, SCALERS = ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"]


def _pna(layer_class: Any) -> Build:
    def build(graph: BenchmarkGraph, heads: int, channels: int) -> Layer:
        width = heads * channels
        histogram = torch.bincount(degree(graph.edge_index[1], graph.num_nodes, dtype=torch.long))
        layer = layer_class(width, width, AGGREGATORS, SCALERS, histogram, **_heads(layer_class, PNAConv, heads))
        return lambda x: layer(x, graph.edge_index)

    return build


def _gcn2(layer_class: Any) -> Build:
    def build(graph: BenchmarkGraph, heads: int, channels: int) -> Layer:
        options = _heads(layer_class, GCN2Conv, heads) or {"cached": True}
        layer = layer_class(heads * channels, alpha=0.5, theta=1.0, layer=1, **options)
        return lambda x: layer(x, x.detach(), graph.edge_index)

    return build


def _gin(layer_class: Any) -> Build:
    def build(graph: BenchmarkGraph, heads: int, channels: int) -> Layer:
        width = heads * channels
        perceptron = Sequential(Linear(width, width), ReLU(), Linear(width, width))
        layer = layer_class(perceptron, **_heads(layer_class, GINConv, heads))
        return lambda x: layer(x, graph.edge_index)

    return build


def _heads(layer_class: Any, plain: Any, heads: int) -> dict[str, Any]:
    return {} if layer_class is plain else {"heads": heads}


ADJACENCY_CONTENDERS = (
    *(contender for contender in CONTENDERS if contender.name in (FLOOR, SCORE)),
    Contender("PyG PNAConv", "PyG", _pna(PNAConv)),
    Contender("lcat PNA", "ours", _pna(LCATPNAConv)),
    Contender("PyG GCN2Conv", "PyG", _gcn2(GCN2Conv)),
    Contender("lcat GCNII", "ours", _gcn2(LCATGCN2Conv)),
    Contender("PyG GINConv", "PyG", _gin(GINConv)),
    Contender("lcat GIN", "ours", _gin(LCATGINConv)),
)


def ratio_table(result: Result) -> str:
    """Return the time of each of our layers as a multiple of the plain one plus one layer of L-CAT."""
    settings: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in result["measurements"]:
        key = (row["graph"], row["heads"], row["channels"], row["threads"])
        settings.setdefault(key, {})[row["name"]] = min(row["seconds"])
    lines = [f"{'graph':<18}{'shape':>7}{'threads':>9}" + "".join(f"{ours:>14}" for ours, _ in PAIRS)]
    for (graph, heads, channels, threads), seconds in settings.items():
        ratios = [seconds[ours] / (seconds[plain] + seconds[SCORE]) for ours, plain in PAIRS]
        lines.append(f"{graph:<18}{f'{heads}×{channels}':>7}{threads:>9}" + "".join(f"{r:>14.2f}" for r in ratios))
    return "\n".join(["time / (time of the plain layer + time of lcat)", *lines])
