"""The masks of dropout: the same in C and in torch, and random enough."""

import math

import pytest
import torch

from graphgym_lcat.kernels import Graph, calls, calls_gat, fused
from graphgym_lcat.kernels.dropout import draw_seed, dropout_factors, keep_mask
from graphgym_lcat.kernels.edge_numbers import EdgeNumbers

EDGES = 1 << 17
SEEDS = (0, 1, 2, 3, 1 << 32, 2 << 32, -1, 0x123456789ABCDEF)
PROBABILITIES = (0.01, 0.1, 0.5, 0.6, 0.9)
# Largest deviation, in standard deviations, of several hundred independent tests: beyond it the chance is below 1 : 10⁴.
LIMIT = 5.2


def masks(probability, heads=4):
    return {seed: keep_mask(seed, torch.arange(EDGES), heads, probability) for seed in SEEDS}


def deviation(mask, probability):
    """Of the number of kept coefficients, in standard deviations."""
    count = mask.numel()
    kept = 1 - probability
    return abs(int(mask.sum()) - count * kept) / math.sqrt(count * kept * probability)


def correlation(a, b, probability):
    """Of two masks, in standard deviations."""
    kept = 1 - probability
    return abs(((a.double() - kept) * (b.double() - kept)).sum().item()) / (kept * probability * math.sqrt(a.numel()))


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_the_rate_is_right_for_every_head_and_stretch_of_edges(probability):
    for mask in masks(probability).values():
        assert deviation(mask, probability) < LIMIT
        for head in mask.unbind(1):
            assert deviation(head, probability) < LIMIT
            assert max(deviation(part, probability) for part in head.split(1 << 13)) < LIMIT


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_heads_are_independent(probability):
    for mask in masks(probability).values():
        for h in range(1, 4):
            for g in range(h):
                assert correlation(mask[:, h], mask[:, g], probability) < LIMIT


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_edges_are_independent(probability):
    for mask in masks(probability).values():
        for lag in (1, 2, 3, 4, 7, 8, 16, 32, 256, 1024, 1 << 14):
            assert correlation(mask[lag:, 0], mask[:-lag, 0], probability) < LIMIT
            assert correlation(mask[lag:, 0], mask[:-lag, 1], probability) < LIMIT


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_seeds_are_independent_even_successive_ones(probability):
    drawn = masks(probability)
    for s in SEEDS:
        for t in SEEDS[: SEEDS.index(s)]:
            for h in range(4):
                assert correlation(drawn[s][:, h], drawn[t][:, h], probability) < LIMIT
            assert correlation(drawn[s][1:, 0], drawn[t][:-1, 0], probability) < LIMIT
            assert correlation(drawn[s][:, 0], drawn[t][:, 1], probability) < LIMIT


def test_the_number_kept_per_edge_is_binomial():
    """χ² of the number of heads kept, 8 heads at probability 0.5: 8 degrees of freedom."""
    for seed in SEEDS:
        kept = keep_mask(seed, torch.arange(EDGES), 8, 0.5).sum(1)
        observed = torch.bincount(kept, minlength=9).double()
        expected = EDGES * torch.tensor([math.comb(8, k) / 256 for k in range(9)]).double()
        assert ((observed - expected) ** 2 / expected).sum() < 32  # exceeded once in 10⁴


def test_any_order_of_edges_gives_the_same_masks():
    edges = torch.arange(1000)
    order = torch.randperm(1000)
    assert torch.equal(keep_mask(5, edges, 3, 0.4)[order], keep_mask(5, edges[order], 3, 0.4))
    assert torch.equal(keep_mask(5, edges, 3, 0.4), keep_mask(torch.tensor([5]), edges, 8, 0.4)[:, :3])


def test_extreme_probabilities():
    assert keep_mask(1, torch.arange(1000), 4, 0.0).all()
    assert not dropout_factors(1, torch.arange(1000), 4, 1.0, torch.float32).any()


def test_seeds_come_from_the_default_generator():
    torch.manual_seed(3)
    first, second = draw_seed(), draw_seed()
    torch.manual_seed(3)
    assert torch.equal(draw_seed(), first)
    assert torch.equal(draw_seed(), second)
    assert not torch.equal(first, second)


@pytest.mark.skipif(fused.UNAVAILABLE is not None, reason=str(fused.UNAVAILABLE))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16, 64])
@pytest.mark.parametrize("probability", [0.0, 1e-9, 0.3, 0.6, 1 - 1e-6])
def test_the_kernels_compute_the_same_masks(probability, heads, dtype):
    """One coefficient per node is 1, so what comes out are the factors."""
    edges = 1003
    edge_index = torch.stack([torch.randperm(edges), torch.arange(edges)])
    for seed in (*SEEDS, *draw_seed().tolist()):
        for add_self_loops in (False, True):
            nodes = edges + 7
            index = edge_index[:, :0] if add_self_loops else edge_index
            graph = Graph.from_edge_index(index, nodes, add_self_loops)
            layout = graph.compact
            call = calls.Call(layout, EdgeNumbers(index, layout), seed, probability)
            zeros = torch.zeros(nodes, heads, dtype=dtype)
            gamma, _, _ = calls_gat.coefficients(call, zeros, zeros, None, 0.2)
            assert torch.equal(gamma, dropout_factors(seed, torch.arange(gamma.size(0)), heads, probability, dtype))
