"""Graphs with everything that may be in one."""

import torch


def random_edges(num_src: int, num_dst: int, num_edges: int, seed: int) -> torch.Tensor:
    """Directed, with duplicates and self-loops; the last destinations have no in-edges."""
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(num_src, (num_edges,), generator=generator)
    dst = torch.randint(max(1, num_dst - 2), (num_edges,), generator=generator)
    edge_index = torch.stack([src, dst])
    edge_index[:, 1] = edge_index[:, 0]
    edge_index[1, 2] = edge_index[0, 2] = 1
    edge_index[1, 3] = edge_index[0, 3] = 1
    return edge_index
