"""Graph classification with mini-batches in plain PyG: is a graph a ring or a random tree?"""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import degree, to_undirected

from graphgym_lcat.nn import LCATConv


def graph(label: int, size: int) -> Data:
    """Return a ring (label 1) or a random tree (label 0); the features of a node are noise."""
    nodes = torch.arange(1, size)
    parents = (torch.rand(size - 1) * nodes).long()
    edge_index = torch.stack([nodes, nodes - 1 if label else parents])
    if label:
        edge_index = torch.cat([edge_index, torch.tensor([[0], [size - 1]])], dim=1)
    edge_index = to_undirected(edge_index)
    x = torch.cat([degree(edge_index[0], size).view(-1, 1) + torch.randn(size, 1), torch.randn(size, 3)], dim=1)
    return Data(x=x, edge_index=edge_index, y=torch.tensor([label]))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = LCATConv(4, 8, heads=4)
        self.conv2 = LCATConv(32, 8, heads=4)
        self.head = torch.nn.Linear(32, 2)

    def forward(self, batch):
        x = self.conv1(batch.x, batch.edge_index).relu()
        x = self.conv2(x, batch.edge_index).relu()
        return self.head(global_mean_pool(x, batch.batch))


torch.manual_seed(0)
graphs = [graph(number % 2, int(torch.randint(8, 20, ()))) for number in range(300)]
train, test = DataLoader(graphs[:200], batch_size=32, shuffle=True), DataLoader(graphs[200:], batch_size=100)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(15):
    for batch in train:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), batch.y).backward()
        optimizer.step()
model.eval()
correct = sum(int((model(batch).argmax(dim=1) == batch.y).sum()) for batch in test)
print(f"{correct} of {len(graphs) - 200} test graphs right")
print(model.conv1)
