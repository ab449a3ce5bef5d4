"""`LCATConv` instead of `GATConv`: the layers learn whether to convolve or attend."""

import torch
from torch_geometric.datasets import KarateClub

from graphgym_lcat.nn import LCATConv  # was: from torch_geometric.nn import GATConv

torch.manual_seed(0)
data = KarateClub()[0]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = LCATConv(data.num_features, 8, heads=4)
        self.conv2 = LCATConv(32, 4)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)  # never decays λ
for _ in range(100):
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
    optimizer.step()

accuracy = (out.argmax(dim=1) == data.y)[~data.train_mask].float().mean()
print(f"accuracy {accuracy:.2f} from {int(data.train_mask.sum())} labelled nodes of {data.num_nodes}")
print(model.conv1)
print(model.conv2)
