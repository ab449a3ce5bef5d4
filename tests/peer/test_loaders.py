"""The loaders that PyG users train with feed our layers."""

import copy

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataListLoader, DataLoader, DynamicBatchSampler, ImbalancedSampler, RandomNodeLoader
from torch_geometric.nn import GAT, global_mean_pool
from torch_geometric.transforms import ToSparseTensor
from torch_geometric.utils import erdos_renyi_graph

from graphgym_lcat.data.neighbor_loader import NeighborLoader
from graphgym_lcat.nn import accelerate


def random_graph(nodes, seed):
    """A graph whose label is in its features."""
    torch.manual_seed(seed)
    label = seed % 2
    x = torch.randn(nodes, 8) + label
    return Data(x=x, edge_index=erdos_renyi_graph(nodes, 0.2), y=torch.tensor([label]))


GRAPHS = [random_graph(6 + i % 5, seed=i) for i in range(12)]


def one_graph():
    data = Batch.from_data_list(GRAPHS)
    return Data(x=data.x, edge_index=data.edge_index, y=data.y[data.batch])


def train(loader, epochs, of_graphs):
    """Trains a PyG model and its accelerated copy on the same batches; returns the losses of L-CAT."""
    torch.manual_seed(0)
    theirs = GAT(8, 8, num_layers=2, out_channels=2, heads=2)
    ours, lcat = copy.deepcopy(theirs), copy.deepcopy(theirs)
    assert not accelerate(ours).kept
    accelerate(lcat, learn=True)
    optimizer = torch.optim.Adam(lcat.parameters(), lr=0.02, weight_decay=1e-3)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for batch in loader:
            batch = Batch.from_data_list(batch) if isinstance(batch, list) else batch
            edges = batch.adj_t if "adj_t" in batch else batch.edge_index
            torch.testing.assert_close(ours(batch.x, edges), theirs(batch.x, edges))
            out = lcat(batch.x, edges)
            out = global_mean_pool(out, batch.batch) if of_graphs else out[: getattr(batch, "batch_size", None)]
            loss = torch.nn.functional.cross_entropy(out, batch.y[: len(out)])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss.detach())
        losses.append(total)
    return losses


LOADERS = {
    "data": (lambda: DataLoader(GRAPHS, batch_size=4, shuffle=True), True),
    "data_list": (lambda: DataListLoader(GRAPHS, batch_size=4), True),
    "dynamic": (lambda: DataLoader(GRAPHS, batch_sampler=DynamicBatchSampler(GRAPHS, 40, mode="node")), True),
    "imbalanced": (lambda: DataLoader(GRAPHS, batch_size=4, sampler=ImbalancedSampler(GRAPHS)), True),
    "random_nodes": (lambda: RandomNodeLoader(one_graph(), num_parts=3), False),
    "neighbors": (lambda: NeighborLoader(one_graph(), [4, 4, 4, 4], batch_size=32, shuffle=True), False),
}


@pytest.mark.parametrize("name", LOADERS)
def test_training(name):
    build, of_graphs = LOADERS[name]
    losses = train(build(), 4, of_graphs)
    assert losses[-1] < 0.9 * losses[0]


def test_training_on_sparse_matrices():
    graphs = [ToSparseTensor(layout=torch.sparse_csr)(graph.clone()) for graph in GRAPHS[:4]]
    losses = train(graphs, 3, of_graphs=True)
    assert losses[-1] < losses[0]
