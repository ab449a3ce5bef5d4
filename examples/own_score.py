"""Your own score: any function α(u, v) of the projected features. Here it is the scaled dot product of transformers."""

import torch
from torch_geometric.datasets import KarateClub

from graphgym_lcat.nn import LCATConv


def dot_product(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """``[edges, heads, channels]`` of receivers and senders → ``[edges, heads]``."""
    return (u * v).sum(dim=-1) / u.size(-1) ** 0.5


torch.manual_seed(0)
data = KarateClub()[0]
conv = LCATConv(data.num_features, 4, heads=4, concat=False, score=dot_product)
optimizer = torch.optim.Adam(conv.parameters(), lr=0.01)
for _ in range(100):
    optimizer.zero_grad()
    out = conv(data.x, data.edge_index)
    loss = torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
_, (edge_index, alpha) = conv(data.x, data.edge_index, return_attention_weights=True)
print(f"loss {loss:.3f}; {edge_index.size(1)} edges with self-loops, {alpha.size(1)} coefficients each")
print(conv)
