"""What our layers do differently from PyG's ``GATConv`` and ``GATv2Conv`` on purpose.

``python docs/make.py`` writes this list into docs/layer.md; test_differences.py shows that each row is true.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    what: str
    pyg: str
    here: str
    reason: str


DIFFERENCES = {
    "aggregation": Difference(
        "`aggr` other than a sum",
        "aggregates the weighted messages by it",
        "`ValueError`; `accelerate` keeps the layer",
        "attention is a weighted sum, and the kernels compute nothing else",
    ),
    "initial_values": Difference(
        "initial attention vectors",
        "Glorot",
        "1, or with `init='normal'` Glorot normal",
        "as in the paper's experiments",
    ),
    "dropout_mask": Difference(
        "mask of dropped coefficients",
        "from torch's generator, number by number",
        "same probability, another mask, from one number of torch's generator",
        "the backward pass computes it again instead of storing it, and all backends draw the same",
    ),
    "edge_update": Difference(
        "`edge_update` of hooks and subclasses",
        "gets the terms of a score, returns coefficients",
        "gets and returns the coefficients `alpha`",
        "the terms depend on the score, which may be any function",
    ),
    "ignored_edge_attr": Difference(
        "`edge_attr` without `edge_dim`",
        "`GATConv` ignores it, `GATv2Conv` fails",
        "ignored, with a warning",
        "models that pass it to every layer must run, but not in silence",
    ),
    "missing_edge_attr": Difference(
        "`edge_dim` without `edge_attr`",
        "computes without edge features",
        "`ValueError`",
        "a forgotten argument would train another model in silence",
    ),
    "missing_targets": Difference(
        "`GATv2Conv` with `x = (x_src, None)`",
        "`AssertionError`",
        "scores the senders alone, as `GATConv` does",
        "one rule for both scores",
    ),
    "unknown_node": Difference(
        "a node in `edge_index` that `x` does not have",
        "`IndexError`",
        "`ValueError` that names it",
        "checked once per graph, because the kernels do not check",
    ),
    "torch_jit": Difference(
        "`torch.jit.trace`",
        "works",
        "`RuntimeError`",
        "torch has deprecated it; `torch.compile`, `torch.export` and ONNX work",
    ),
    "repr": Difference(
        "`print(conv)`",
        "sizes and heads",
        "also the score and both λ",
        "λ are what one wants to know of a trained layer",
    ),
}
