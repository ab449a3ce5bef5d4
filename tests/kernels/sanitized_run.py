"""Calls every kernel on small awkward inputs.

Meant for a library built with ``-fsanitize=address,undefined``, which ends the process at the first mistake. With the
argument ``--mistake`` it makes one.
"""

import itertools
import sys

import torch
from fused_cases import HEADS, PRIMITIVES, REALS, Case, compute, run

from graphgym_lcat.kernels import Graph, calls, fused, library, threads
from graphgym_lcat.kernels.backend import STATISTICS, Dropout, EdgeTerm, EqualScore, GATScore, GATv2Score
from graphgym_lcat.kernels.pairs import attend_pairs

BOTH_WAYS = torch.tensor([[0, 1, 1, 2, 2, 2], [1, 0, 2, 1, 2, 2]])


def graphs():
    nobody, pair = torch.empty(2, 0, dtype=torch.long), torch.tensor([[0, 1], [1, 0]])
    many = torch.randint(7, (2, 900), generator=torch.Generator().manual_seed(0))
    star = torch.stack([torch.arange(600), torch.zeros(600, dtype=torch.long)])
    for edges, nodes in ((nobody, 0), (nobody, 3), (pair, 2), (many, 7), (many, (7, 9)), (star, 600), (star, (600, 1))):
        for add_self_loops in (True, False):
            yield Graph.from_edge_index(edges, nodes, add_self_loops)


def run_with_extras(graph, heads, channels, dtype) -> int:
    """Dropout, edge features of all kinds and coefficients, for both scores."""
    calls_made = 0
    count = graph.edge_index.size(1)
    dropout = Dropout(0.5, torch.tensor([3]))
    for primitive, dim in itertools.product(("attend_gat", "attend_gatv2"), (None, 1, 11)):
        inputs = Case(graph, heads, channels, seed=0).inputs(primitive, dtype)
        query, key, value, *att = inputs
        edge = None
        if dim is not None:
            shape = (heads, dim) if primitive == "attend_gat" else (heads, channels, dim)
            features, weight = torch.ones(count, dim, dtype=dtype), torch.ones(shape, dtype=dtype)
            edge = EdgeTerm(
                features.requires_grad_(), "mean" if dim == 1 else features.new_ones(graph.self_loops, dim), weight
            )
        score = (
            GATScore(query, key, 0.2, edge) if primitive == "attend_gat" else GATv2Score(query, key, att[0], 0.2, edge)
        )
        for drop in (dropout, None):
            fused.attend(graph, score, value, drop).sum().backward()
            gamma = fused.coefficients(graph, score, drop)
            (gamma.edges.sum() + gamma.loops.sum()).backward()
            calls_made += 2
    return calls_made


def run_statistics(graph: Graph, heads: int, channels: int, dtype: torch.dtype, whole: bool) -> int:
    """PNA's statistics with each kind of score; whole numbers tie. Returns the number of calls."""
    query, key, sender = Case(graph, heads, channels, seed=0).inputs("attend_gat", dtype)
    receiver = torch.randn(graph.num_dst, heads * channels, dtype=dtype).requires_grad_()
    sender = sender.detach().flatten(1).requires_grad_()
    if whole:
        receiver, sender = (t.detach().round().requires_grad_() for t in (receiver, sender))
    features = Case(graph, heads, channels, seed=0).inputs("attend_gatv2", dtype)
    scores = (EqualScore(key.unsqueeze(-1)), GATScore(query, key, 0.2), GATv2Score(*features[:2], features[3], 0.2))
    for score in scores:
        fused.statistics(graph, score, receiver, sender, STATISTICS).sum().backward()
    return len(scores)


def run_symmetric() -> int:
    """GATv2 with one tensor as query and key, on graphs whose edges go both ways."""
    count = 0
    for nodes, heads, channels, dtype in itertools.product((3, 9), HEADS, (7, 8, 40), fused.can.dtypes):
        graph = Graph.from_edge_index(BOTH_WAYS, nodes)
        _, features, value, att = Case(graph, heads, channels, seed=0).inputs("attend_gatv2", dtype)
        compute(fused, "attend_gatv2", graph, [features, features, value, att]).sum().backward()
        count += 1
    return count


def main() -> None:
    assert fused.UNAVAILABLE is None, fused.UNAVAILABLE
    if "--mistake" in sys.argv:
        graph = Graph.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2)
        graph.compact.col[0] = 2
        fused.neighbor_mean(graph, torch.zeros(2, 16))
    threads.MIN_WORK_PER_THREAD = 1
    torch.set_num_threads(2)
    count = 0
    for graph, primitive, dtype in itertools.product(graphs(), PRIMITIVES, fused.can.dtypes):
        for heads, channels in itertools.product(HEADS, (7, 8, 40)):
            if graph.num_edges > 100 and (heads, channels) not in ((1, 8), (2, 7), (4, 8), (9, 40)):
                continue
            run(fused, primitive, graph, Case(graph, heads, channels, seed=0).inputs(primitive, dtype))
            count += 1
    for graph, (heads, channels), dtype, whole in itertools.product(
        graphs(), ((1, 8), (2, 7), (4, 8), (3, 40), (9, 16)), fused.can.dtypes, (False, True)
    ):
        if not graph.add_self_loops:
            count += run_statistics(graph, heads, channels, dtype, whole)
    calls.MAX_KEPT_BYTES = 0
    for graph, heads in itertools.product(graphs(), HEADS):
        run(fused, "attend_gat", graph, Case(graph, heads, 8, seed=0).inputs("attend_gat", torch.float32))
        count += 1
    count += run_symmetric()
    for graph, dtype in itertools.product((*graphs(), Graph.from_edge_index(BOTH_WAYS, 9)), fused.can.dtypes):
        for heads, channels in ((1, 8), (2, 7), (4, 8), (9, 40)):
            count += run_with_extras(graph, heads, channels, dtype)
    for nodes, columns, dtype in itertools.product((1, 7, 8, 70), (1, 4, 8), REALS):
        adjacency = torch.ones(nodes, nodes, dtype=torch.uint8)
        z = torch.linspace(-1, 1, nodes, dtype=dtype)
        attend_pairs(adjacency, z, 0.5, 2.0, z, z[:, None].expand(nodes, columns))
        count += 1
    print(f"{count} calls with {library.load().instruction_set}")


if __name__ == "__main__":
    main()
