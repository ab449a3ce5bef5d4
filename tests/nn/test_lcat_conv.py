"""What PyG's attention layers can do, ours can."""

import copy

import numpy as np
import pytest
import torch
from torch_geometric.nn import GATConv, Sequential

from graphgym_lcat.nn import CATConv, LCATConv
from graphgym_lcat.nn.weight_decay import is_lambda

SCORES = ("gat", "gatv2")


@pytest.fixture(params=SCORES)
def conv(request):
    torch.manual_seed(0)
    return LCATConv(5, 3, heads=2, score=request.param).double()


def test_repr_shows_heads_score_and_lambdas():
    assert repr(LCATConv(5, 3, heads=2)) == (
        "LCATConv(5, 3, heads=2, score='gat', lambda1=0.5 (learned), lambda2=0.5 (learned))"
    )
    assert repr(CATConv((5, 4), 3, score="gatv2")) == "CATConv((5, 4), 3, heads=1, score='gatv2', lambda1=1, lambda2=1)"
    assert "lambda1=[0.5, 0.5] (learned)" in repr(LCATConv(5, 3, heads=2, lambda_per_head=True))
    assert "score=dot" in repr(LCATConv(5, 3, score=dot))


def dot(u, v):
    return (u * v).sum(dim=-1)


def test_output_shapes(x, edge_index):
    assert LCATConv(5, 3, heads=2).double()(x, edge_index).shape == (12, 6)
    assert LCATConv(5, 3, heads=2, concat=False).double()(x, edge_index).shape == (12, 3)


def test_permutation_equivariance(conv, x, edge_index):
    permutation = torch.randperm(12)
    inverse = permutation.argsort()
    permuted = conv(x[permutation], inverse[edge_index])
    torch.testing.assert_close(permuted, conv(x, edge_index)[permutation])


def test_order_of_edges_does_not_matter(conv, x, edge_index):
    shuffled = edge_index[:, torch.randperm(edge_index.size(1))]
    torch.testing.assert_close(conv(x, shuffled), conv(x, edge_index))


def test_self_loops_of_the_input_are_replaced(conv, x, edge_index):
    loops = torch.tensor([[0, 0, 5], [0, 0, 5]])
    torch.testing.assert_close(conv(x, torch.cat([edge_index, loops], dim=1)), conv(x, edge_index))


def test_duplicate_edges_each_count(conv, x):
    once = conv(x, torch.tensor([[1, 2], [0, 0]]))
    twice = conv(x, torch.tensor([[1, 1, 2], [0, 0, 0]]))
    assert not torch.allclose(once[0], twice[0])
    torch.testing.assert_close(once[1:], twice[1:])


def test_isolated_node_sees_only_itself(conv, x):
    out = conv(x, torch.tensor([[1], [0]]))
    torch.testing.assert_close(out[7], conv.lin(x)[7] + conv.bias)


def test_isolated_node_without_self_loops_gets_the_bias(x):
    for lambda1 in (0, "learn"):
        conv = LCATConv(5, 3, heads=2, add_self_loops=False, lambda1=lambda1).double()
        torch.nn.init.constant_(conv.bias, 2.0)
        assert conv(x, torch.tensor([[1], [0]]))[7].tolist() == [2.0] * 6


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("lambda1", [0, "learn"])
@pytest.mark.parametrize("score", SCORES)
def test_graph_without_edges(score, lambda1, add_self_loops, x):
    conv = LCATConv(5, 3, heads=2, score=score, lambda1=lambda1, add_self_loops=add_self_loops).double()
    out = conv(x.requires_grad_(), torch.empty(2, 0, dtype=torch.long))
    expected = conv.lin(x) if add_self_loops else torch.zeros(12, 6, dtype=torch.double)
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    assert torch.isfinite(x.grad).all()


def test_graph_without_nodes(conv):
    assert conv(torch.empty(0, 5, dtype=torch.double), torch.empty(2, 0, dtype=torch.long)).shape == (0, 6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision_agrees_with_double(conv, dtype, x, edge_index):
    expected = conv(x, edge_index)
    low = copy.deepcopy(conv).to(dtype)(x.to(dtype), edge_index)
    assert low.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 6e-2}[dtype]
    torch.testing.assert_close(low.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("options", [{}, {"score": "gatv2"}, {"lambda1": 0}], ids=["gat", "gatv2", "gcn"])
def test_autocast_as_in_gat(options, x, edge_index):
    conv = LCATConv(5, 3, heads=2, **options)
    x = x.float()
    with torch.autocast("cpu", torch.bfloat16):
        out, gat = conv(x, edge_index), GATConv(5, 3, heads=2)(x, edge_index)
    assert out.dtype == gat.dtype == torch.float32
    torch.testing.assert_close(out, conv(x, edge_index), rtol=0.05, atol=0.05)
    out.sum().backward()


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_output_may_be_changed_in_place(score, x, edge_index):
    conv = LCATConv(5, 3, bias=False, score=score).double()
    grads = [torch.autograd.grad(act(conv(x, edge_index)).sum(), conv.lin.weight) for act in (torch.relu, torch.relu_)]
    torch.testing.assert_close(*grads)


def test_lambdas_stay_what_they_are_when_loaded_or_materialised():
    conv = LCATConv(5, 3)
    conv.load_state_dict(conv.state_dict(), assign=True)
    with torch.device("meta"):
        empty = LCATConv(5, 3)
    for layer in (conv, empty.to_empty(device="cpu")):
        assert is_lambda(layer.interpolation.x) and is_lambda(layer.interpolation.y)


def test_numbers_of_numpy_are_numbers(x, edge_index):
    conv = LCATConv(5, np.int64(3), heads=np.int32(2), lambda1=np.float32(0.5)).double()
    assert conv(x, edge_index).shape == (12, 6)
    assert conv.lambdas().lambda1 == 0.5


def test_bfloat16_mean_over_a_thousand_neighbours_does_not_saturate():
    """A running sum in bfloat16 stops growing at 256."""
    star = torch.stack([torch.arange(1, 2001), torch.zeros(2000, dtype=torch.long)])
    x = torch.ones(2001, 4, dtype=torch.bfloat16)
    for lambda1 in (0, 1):
        conv = LCATConv(4, 4, lambda1=lambda1, lambda2=0, bias=False).bfloat16()
        torch.testing.assert_close(conv(x, star)[0], conv.lin(x)[0], rtol=0.05, atol=0.05)


def test_lazy_sizes_take_the_first_input(x, edge_index):
    conv = LCATConv(-1, 3, heads=2, residual=True, score_weights="separate").double()
    assert conv(x, edge_index).shape == (12, 6)
    assert conv.lin.weight.shape == conv.lin_score.weight.shape == (6, 5)
    pair = LCATConv((-1, -1), 3, add_self_loops=False).double()
    pair((x, x[:4, :2]), torch.tensor([[8, 9], [0, 3]]))
    assert (pair.lin_src.weight.shape, pair.lin_dst.weight.shape) == ((3, 5), (3, 2))


@pytest.mark.parametrize("init", ["uniform", "normal"])
def test_initialisation(init):
    torch.manual_seed(0)
    conv = LCATConv(200, 50, heads=4, init=init)
    if init == "uniform":
        bound = (6 / 400) ** 0.5
        assert 0.99 * bound < conv.lin.weight.abs().max() <= bound
        assert (conv.att_src == 1).all() and (conv.att_dst == 1).all()
    else:
        std = 2**0.5 * (2 / 400) ** 0.5
        assert conv.lin.weight.std().item() == pytest.approx(std, rel=0.02)
        assert conv.lin.weight.abs().max() > 3 * std
        assert conv.att_src.std().item() == pytest.approx(2**0.5 * (2 / 54) ** 0.5, rel=0.2)


def test_reset_parameters_restores_the_start(conv):
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.fill_(9.0)
    conv.reset_parameters()
    assert conv.lambdas() == pytest.approx((0.5, 0.5), abs=1e-6)
    assert all((parameter != 9.0).all() for parameter in conv.parameters())


def test_attention_weights_come_in_the_order_of_gat(x, edge_index):
    from torch_geometric.nn import GATConv

    gat = GATConv(5, 3, heads=2).double()
    conv = LCATConv(5, 3, heads=2, lambda1=1, lambda2=0).double()
    conv.load_state_dict(gat.state_dict())
    out, (edges, alpha) = conv(x, edge_index, return_attention_weights=True)
    expected_out, (expected_edges, expected_alpha) = gat(x, edge_index, return_attention_weights=True)
    assert torch.equal(edges, expected_edges)
    torch.testing.assert_close(alpha, expected_alpha)
    torch.testing.assert_close(out, expected_out)


def test_attention_weights_of_gcn_are_uniform(x, edge_index):
    _, (edges, alpha) = LCATConv(5, 3, heads=2, lambda1=0).double()(x, edge_index, return_attention_weights=True)
    degree = torch.bincount(edges[1], minlength=12)
    torch.testing.assert_close(alpha, (1 / degree[edges[1]].double()).unsqueeze(-1).expand(-1, 2))


def test_attention_weights_do_not_change_the_output(conv, x, edge_index):
    out, (edges, alpha) = conv(x, edge_index, return_attention_weights=True)
    torch.testing.assert_close(out, conv(x, edge_index))
    sums = torch.zeros(12, 2, dtype=torch.double).index_add(0, edges[1], alpha)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_dropout_keeps_the_expectation_and_stops_in_eval(x, edge_index):
    torch.manual_seed(0)
    conv = LCATConv(5, 3, heads=2, dropout=0.5).double()
    plain = LCATConv(5, 3, heads=2).double()
    plain.load_state_dict(conv.state_dict())
    samples = torch.stack([conv(x, edge_index) for _ in range(2000)])
    assert samples.std(dim=0).max() > 0.1
    torch.testing.assert_close(samples.mean(dim=0), plain(x, edge_index), rtol=0.1, atol=0.1)
    torch.testing.assert_close(conv.eval()(x, edge_index), plain(x, edge_index))


def test_dropout_of_uniform_attention(x, edge_index):
    torch.manual_seed(0)
    conv = LCATConv(5, 3, lambda1=0, dropout=0.5).double()
    assert not torch.equal(conv(x, edge_index), conv(x, edge_index))


def test_deepcopy_and_state_dict(conv, x, edge_index):
    with torch.no_grad():
        conv.interpolation.x += 0.2
    expected = conv(x, edge_index)
    torch.testing.assert_close(copy.deepcopy(conv)(x, edge_index), expected)
    fresh = LCATConv(5, 3, heads=2, score=conv.score).double()
    fresh.load_state_dict(conv.state_dict())
    assert fresh.lambdas() == conv.lambdas()
    torch.testing.assert_close(fresh(x, edge_index), expected)


def test_inside_pyg_sequential(x, edge_index):
    model = Sequential(
        "x, edge_index", [(LCATConv(5, 4), "x, edge_index -> x"), torch.nn.ReLU(), torch.nn.Linear(4, 2)]
    )
    assert model.double()(x, edge_index).shape == (12, 2)


def test_reversed_flow_is_the_reversed_graph(x, edge_index):
    conv = LCATConv(5, 3, heads=2).double()
    reverse = LCATConv(5, 3, heads=2, flow="target_to_source").double()
    reverse.load_state_dict(conv.state_dict())
    torch.testing.assert_close(reverse(x, edge_index), conv(x, edge_index.flip(0)))
    out, (_, alpha) = reverse(x, edge_index, return_attention_weights=True)
    torch.testing.assert_close(out, conv(x, edge_index.flip(0)))
    assert alpha.shape[1] == 2


def test_score_module_is_trained(x, edge_index):
    class Bilinear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.eye(3, dtype=torch.double))

        def forward(self, u, v):
            return (u @ self.weight * v).sum(dim=-1)

    conv = LCATConv(5, 3, heads=2, score=Bilinear()).double()
    conv(x, edge_index).square().sum().backward()
    assert conv.score.weight.grad.abs().sum() > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"lambda1": 0},
        {"score": "gat"},
        {"score": "gatv2", "score_weights": "separate"},
        {"score": dot, "dropout": 0.5},
    ],
    ids=["gcn", "gat", "gatv2", "dot"],
)
def test_compiles_without_graph_breaks(options, x, edge_index):
    torch._dynamo.reset()
    torch.manual_seed(0)
    conv = LCATConv(5, 3, heads=2, backend="torch", **options).double().eval()
    compiled = torch.compile(conv, backend="aot_eager", fullgraph=True)  # Inductor takes a minute to compile it
    x.requires_grad_()
    for edges in (edge_index, edge_index[:, :30].contiguous()):
        torch.testing.assert_close(compiled(x, edges), conv(x, edges))
        grads = [torch.autograd.grad(layer(x, edges).square().sum(), x)[0] for layer in (compiled, conv)]
        torch.testing.assert_close(*grads)


def test_compiled_code_returns_the_attention_weights(conv, x, edge_index):
    torch._dynamo.reset()
    compiled = torch.compile(conv, backend="eager", fullgraph=True)
    (out, (edges, alpha)), (expected_out, expected) = (
        call(x, edge_index, return_attention_weights=True) for call in (compiled, conv)
    )
    torch.testing.assert_close(out, expected_out)
    kept = alpha.sum(dim=1) > 0  # dropped self-loops stay with coefficient 0, for the shapes' sake
    assert torch.equal(edges[0, ~kept], edges[1, ~kept])
    torch.testing.assert_close((edges[:, kept], alpha[kept]), expected)


@pytest.mark.parametrize("x", [-1e6, 1e6, float("nan")])
def test_lambdas_of_a_diverged_layer_can_still_be_read(x):
    conv = LCATConv(4, 2)
    torch.nn.init.constant_(conv.interpolation.x, x)
    torch.nn.init.constant_(conv.interpolation.y, x)
    expected = [value.item() for value in conv.interpolation()]
    assert conv.lambdas() == pytest.approx(expected, nan_ok=True, abs=1e-6)
    assert "(learned)" in repr(conv)


@pytest.mark.parametrize("score", SCORES)
def test_the_size_of_edge_features_comes_from_the_first_input(score, x, edge_index):
    edge_attr = torch.randn(edge_index.size(1), 4, dtype=torch.double)
    torch.manual_seed(0)
    lazy = LCATConv(5, 3, score=score, edge_dim=-1).double()
    out = lazy(x, edge_index, edge_attr)
    assert lazy.lin_edge.weight.shape == (3, 4)
    assert 0 < lazy.lin_edge.weight.abs().max() <= (6 / 7) ** 0.5
    fixed = LCATConv(5, 3, score=score, edge_dim=4).double()
    fixed.load_state_dict(lazy.state_dict())
    torch.testing.assert_close(out, fixed(x, edge_index, edge_attr))
