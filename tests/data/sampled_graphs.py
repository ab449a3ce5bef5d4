"""Graphs to sample from."""

import torch
from torch_geometric.data import Data, HeteroData


def random_graph(nodes, edges, seed):
    return Data(
        edge_index=torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(seed)), num_nodes=nodes
    )


def hetero_graph(seed=0):
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    counts = {"paper": 40, "author": 30, "field": 5}
    for kind, count in counts.items():
        data[kind].num_nodes = count
    for source, name, target, edges in (
        ("author", "writes", "paper", 200),
        ("paper", "rev_writes", "author", 200),
        ("paper", "cites", "paper", 150),
        ("field", "rev_topic", "paper", 90),
    ):
        pair = [torch.randint(counts[kind], (edges,), generator=generator) for kind in (source, target)]
        data[source, name, target].edge_index = torch.stack(pair)
    return data
