"""A dataset of your own: a loader that GraphGym finds, then a run like any other, from settings to `result.json`.

python examples/own_dataset.py && lcat table own_dataset
"""

from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.register import register_loader
from torch_geometric.utils import coalesce, to_undirected

import graphgym_lcat  # noqa: F401  (registers the layers and cfg.lcat)
from graphgym_lcat.gym.runner import Run, execute


@register_loader("mine")
def load(format: str, name: str, folder: str) -> list[Data] | None:
    """Gets cfg.dataset.format, name and dir; None leaves the dataset to another loader. Here would stand your files."""
    if format != "mine":
        return None
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 3
    x = torch.nn.functional.one_hot(y).float() + torch.randn(120, 3, generator=generator)
    edge_index = torch.randint(120, (2, 600), generator=generator)
    edge_index[1, ::2] -= (edge_index[1, ::2] - edge_index[0, ::2]) % 3  # every other edge stays inside a class
    return [Data(x=x, edge_index=to_undirected(coalesce(edge_index % 120)), y=y)]


settings = {
    "dataset.format": "mine",
    "dataset.name": "ThreeClasses",
    "dataset.split": [0.6, 0.2, 0.2],
    "model.type": "lcat",
    "gnn.layer_type": "lcatconv",
    "gnn.layers_pre_mp": 1,
    "gnn.layers_mp": 2,
    "gnn.layers_post_mp": 1,
    "gnn.dim_inner": 16,
    "lcat.heads": 2,
    "optim.max_epoch": 30,
}
for seed in range(2):
    folder = Path(f"results/own_dataset/runs/lcat-ThreeClasses-s{seed}")
    result = execute(Run(folder, "lcat", {**settings, "seed": seed}, params={}))
    print(f"seed {seed}: test accuracy {result['test']['accuracy']:.2f} at epoch {result['best_epoch']}")
    for layer, (lambda1, lambda2) in enumerate(result["lambdas"]):
        print(f"  layer {layer}: λ1 {lambda1:.3f}, λ2 {lambda2:.3f} (learned)")
