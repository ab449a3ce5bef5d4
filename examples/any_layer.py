"""Attention for a layer without attention: the attention adjacency as `edge_weight` of any PyG layer that takes it."""

import torch
from torch_geometric.datasets import KarateClub
from torch_geometric.nn import GraphConv

from graphgym_lcat.nn import AttentionAdjacency

torch.manual_seed(0)
data = KarateClub()[0]
adjacency = AttentionAdjacency(data.num_features, heads=4)
conv = GraphConv(data.num_features, 4)
optimizer = torch.optim.Adam([*adjacency.parameters(), *conv.parameters()], lr=0.01)
for _ in range(100):
    optimizer.zero_grad()
    out = conv(data.x, *adjacency(data.x, data.edge_index))  # instead of conv(data.x, data.edge_index)
    loss = torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
print(f"loss {loss:.3f}")
print(adjacency)
