"""The names and shapes in a state dict never change: checkpoints and saved models of earlier versions must load."""

import pytest
import torch

from graphgym_lcat.nn import (
    AttentionAdjacency,
    CATConv,
    LCATConv,
    LCATGCN2Conv,
    LCATGINConv,
    LCATPNAConv,
    LCATv2Conv,
)


class Bilinear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.eye(3))

    def forward(self, u, v):
        return (u @ self.weight * v).sum(dim=-1)


def pna(**options):
    return LCATPNAConv(6, 4, ["mean", "max"], ["identity"], torch.tensor([0, 2, 3]), heads=2, **options)


LAYERS = {
    "lcat": lambda: LCATConv(5, 3, heads=2),
    "lcat_fixed": lambda: LCATConv(5, 3, heads=2, lambda1=1, lambda2=0, bias=False),
    "lcat_per_head": lambda: LCATConv(5, 3, heads=2, lambda_per_head=True),
    "lcat_edges": lambda: LCATConv(5, 3, heads=2, edge_dim=4, residual=True),
    "lcat_separate": lambda: LCATConv(5, 3, score_weights="separate"),
    "lcat_pair": lambda: LCATConv((5, 4), 3, score_weights="separate", residual=True),
    "lcatv2": lambda: LCATConv(5, 3, heads=2, score="gatv2"),
    "lcatv2_edges": lambda: LCATConv(5, 3, heads=2, score="gatv2", edge_dim=4),
    "lcatv2_conv": lambda: LCATv2Conv((5, 4), 3, heads=2, edge_dim=4),
    "lcat_module": lambda: LCATConv(5, 3, heads=2, score=Bilinear()),
    "cat": lambda: CATConv(5, 3, heads=2),
    "adjacency": lambda: AttentionAdjacency(5, channels=3, heads=2),
    "pna": pna,
    "pna_separate": lambda: pna(score_weights="separate", score="gatv2"),
    "gcn2": lambda: LCATGCN2Conv(6, 0.1, 0.5, 1, heads=2),
    "gcn2_separate": lambda: LCATGCN2Conv(6, 0.1, heads=3, shared_weights=False, score_weights="separate"),
    "gin": lambda: LCATGINConv(torch.nn.Linear(6, 4), heads=2, train_eps=True),
}

# In the order of `parameters()`, by which a checkpoint finds the state of its optimizer.
STATE_DICTS = {
    "lcat": {
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "bias": [6],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin.weight": [6, 5],
    },
    "lcat_fixed": {
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "lin.weight": [6, 5],
    },
    "lcat_per_head": {
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "bias": [6],
        "interpolation.x": [2],
        "interpolation.y": [2],
        "lin.weight": [6, 5],
    },
    "lcat_edges": {
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "att_edge": [1, 2, 3],
        "bias": [6],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin_edge.weight": [6, 4],
        "lin.weight": [6, 5],
        "res.weight": [6, 5],
    },
    "lcat_separate": {
        "att_src": [1, 1, 3],
        "att_dst": [1, 1, 3],
        "bias": [3],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin.weight": [3, 5],
        "lin_score.weight": [3, 5],
    },
    "lcat_pair": {
        "att_src": [1, 1, 3],
        "att_dst": [1, 1, 3],
        "bias": [3],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin_src.weight": [3, 5],
        "lin_dst.weight": [3, 4],
        "lin_score_src.weight": [3, 5],
        "res.weight": [3, 4],
    },
    "lcatv2": {
        "att": [1, 2, 3],
        "bias": [6],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin.weight": [6, 5],
    },
    "lcatv2_edges": {
        "att": [1, 2, 3],
        "bias": [6],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin_edge.weight": [6, 4],
        "lin.weight": [6, 5],
    },
    "lcatv2_conv": {
        "att": [1, 2, 3],
        "bias": [6],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin_edge.weight": [6, 4],
        "lin_l.weight": [6, 5],
        "lin_l.bias": [6],
        "lin_r.weight": [6, 4],
        "lin_r.bias": [6],
    },
    "lcat_module": {
        "bias": [6],
        "score.weight": [3, 3],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin.weight": [6, 5],
    },
    "cat": {
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "bias": [6],
        "lin.weight": [6, 5],
    },
    "adjacency": {
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin_score.weight": [6, 5],
    },
    "pna": {
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "aggr_module.avg_deg_lin": [1],
        "aggr_module.avg_deg_log": [1],
        "pre_nns.0.0.weight": [6, 12],
        "pre_nns.0.0.bias": [6],
        "post_nns.0.0.weight": [4, 18],
        "post_nns.0.0.bias": [4],
        "lin.weight": [4, 4],
        "lin.bias": [4],
        "interpolation.x": [1],
        "interpolation.y": [1],
    },
    "pna_separate": {
        "att": [1, 2, 3],
        "aggr_module.avg_deg_lin": [1],
        "aggr_module.avg_deg_log": [1],
        "pre_nns.0.0.weight": [6, 12],
        "pre_nns.0.0.bias": [6],
        "post_nns.0.0.weight": [4, 18],
        "post_nns.0.0.bias": [4],
        "lin.weight": [4, 4],
        "lin.bias": [4],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin_score.weight": [6, 6],
    },
    "gcn2": {
        "weight1": [6, 6],
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "interpolation.x": [1],
        "interpolation.y": [1],
    },
    "gcn2_separate": {
        "weight1": [6, 6],
        "weight2": [6, 6],
        "att_src": [1, 3, 2],
        "att_dst": [1, 3, 2],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin_score.weight": [6, 6],
    },
    "gin": {
        "eps": [1],
        "att_src": [1, 2, 3],
        "att_dst": [1, 2, 3],
        "nn.weight": [4, 6],
        "nn.bias": [4],
        "interpolation.x": [1],
        "interpolation.y": [1],
        "lin_score.weight": [6, 6],
    },
}


@pytest.mark.parametrize("name", LAYERS)
def test_names_shapes_and_order_stay(name):
    state = {key: list(value.shape) for key, value in LAYERS[name]().state_dict().items()}
    assert list(state.items()) == list(STATE_DICTS[name].items())
