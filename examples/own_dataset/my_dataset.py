"""A dataset of your own. grid.yaml names this module in `lcat.plugins` and sweeps three models on the dataset:

cd examples/own_dataset && lcat sweep grid.yaml && lcat table own_dataset
"""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected

from graphgym_lcat.data.registry import register_dataset


@register_dataset("ThreeClasses")
def three_classes() -> Data:
    """Return one undirected graph with x and y; read your own files here."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 3
    x = torch.nn.functional.one_hot(y).float() + torch.randn(120, 3, generator=generator)
    edge_index = torch.randint(120, (2, 600), generator=generator)
    edge_index[1, ::2] -= (edge_index[1, ::2] - edge_index[0, ::2]) % 3  # every other edge stays within a class
    return Data(x=x, edge_index=to_undirected(coalesce(edge_index % 120)), y=y)
