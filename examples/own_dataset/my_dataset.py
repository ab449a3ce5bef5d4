"""A dataset of your own: a loader that GraphGym finds. grid.yaml names this module in `lcat.plugins` and sweeps three models on it:

cd examples/own_dataset && lcat sweep grid.yaml && lcat table own_dataset
"""

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.register import register_loader
from torch_geometric.utils import coalesce, to_undirected


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
