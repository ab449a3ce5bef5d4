"""The attention adjacency, and PNA, GCNII and GIN over it, against dense oracles and PyG's plain layers."""

import math

import oracle
import pytest
import torch
from graphs import random_edges
from test_models_against_oracle import LAMBDAS, assert_same_values_and_gradients, lambda_value
from torch_geometric.nn import ChebConv, GCN2Conv, GINConv, GraphConv, PNAConv, SGConv, TAGConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import coalesce, remove_self_loops, to_edge_index

from graphgym_lcat.nn import AttentionAdjacency, Graph, LCATGCN2Conv, LCATGINConv, LCATPNAConv

N, C, SLOPE = 12, 6, 0.2
AGGREGATORS = ["mean", "min", "max", "std"]
SCALERS = ["identity", "amplification", "attenuation"]


@pytest.fixture
def edges(edge_index):
    return coalesce(remove_self_loops(edge_index)[0], num_nodes=N)


@pytest.fixture
def x():
    return torch.randn(N, C, generator=torch.Generator().manual_seed(6), dtype=torch.double)


@pytest.fixture
def x_0():
    return torch.randn(N, C, generator=torch.Generator().manual_seed(7), dtype=torch.double)


def degree_histogram(edges):
    return torch.bincount(torch.bincount(edges[1], minlength=N))


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(C, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4))


def pna(edges, **options):
    return LCATPNAConv(C, 4, AGGREGATORS, SCALERS, degree_histogram(edges), **options).double()


def gcn2(**options):
    return LCATGCN2Conv(C, alpha=0.1, theta=0.5, layer=2, **options).double()


def gin(**options):
    return LCATGINConv(mlp(), **options).double()


def coefficients(conv, model, x, counts, score_weight):
    """``n_i γ_ij`` of each head as dense matrices, from the equations."""
    lambda1 = lambda_value(conv.interpolation.x, LAMBDAS[model][0], mirrored=False)
    lambda2 = lambda_value(conv.interpolation.y, LAMBDAS[model][1], mirrored=True)
    x_hat = oracle.convolved(x, x, oracle.without_self_loops(counts), lambda2)
    projected = x_hat @ score_weight.t()
    matrices = []
    for head, u in enumerate(projected.chunk(conv.heads, dim=1)):
        if conv.score == "gat":
            alpha = oracle.gat_alpha(u, u, conv.att_dst[0, head], conv.att_src[0, head], SLOPE)
        else:
            alpha = oracle.gatv2_alpha(u, u, conv.att[0, head], SLOPE)
        gamma = oracle.coefficients(lambda1 * alpha, counts)
        matrices.append(counts.sum(dim=1, keepdim=True) * gamma)
    return matrices


def per_head(matrices, x):
    """Each head's matrix times its slice of the channels."""
    return torch.cat([m @ part for m, part in zip(matrices, x.chunk(len(matrices), dim=1), strict=True)], dim=1)


def options_of(model, score, heads):
    lambda1, lambda2 = LAMBDAS[model]
    return {"lambda1": lambda1, "lambda2": lambda2, "score": score, "heads": heads, "init": "normal"}


every_model = pytest.mark.parametrize("model", LAMBDAS)
every_score = pytest.mark.parametrize("score", ["gat", "gatv2"])
both_weights = pytest.mark.parametrize("score_weights", ["shared", "separate"])


@both_weights
@every_score
@every_model
def test_gcnii_equals_dense_oracle(model, score, score_weights, x, x_0, edges):
    conv = gcn2(score_weights=score_weights, **options_of(model, score, 2))
    x.requires_grad_()
    counts = oracle.with_self_loops(oracle.edge_counts(edges, N, N))
    score_weight = conv.weight1.t() if conv.lin_score is None else conv.lin_score.weight
    matrices = coefficients(conv, model, x, counts, score_weight)
    degree = counts.sum(dim=1)
    norm = counts / (degree[:, None] * degree[None, :]).sqrt()
    mixed = 0.9 * per_head([m * norm for m in matrices], x) + 0.1 * x_0
    beta = math.log(0.5 / 2 + 1)
    dense = (1 - beta) * mixed + beta * mixed @ conv.weight1
    assert_same_values_and_gradients(conv, conv(x, x_0, edges), dense, x)


@pytest.mark.parametrize("eps", [0.0, 0.4])
@every_score
@every_model
def test_gin_equals_dense_oracle(model, score, eps, x, edges):
    conv = gin(eps=eps, train_eps=eps > 0, **options_of(model, score, 3))
    x.requires_grad_()
    counts = oracle.with_self_loops(oracle.edge_counts(edges, N, N))
    matrices = coefficients(conv, model, x, counts, conv.lin_score.weight)
    matrices = [m + conv.eps * torch.diag(m.diag()) for m in matrices]
    assert_same_values_and_gradients(conv, conv(x, edges), conv.nn(per_head(matrices, x)), x)


@both_weights
@every_score
@every_model
def test_pna_equals_dense_oracle(model, score, score_weights, x, edges):
    conv = pna(edges, score_weights=score_weights, **options_of(model, score, 2))
    x.requires_grad_()
    counts = oracle.edge_counts(edges, N, N)
    pre = conv.pre_nns[0][0]
    score_weight = pre.weight[:, C:] if conv.lin_score is None else conv.lin_score.weight
    matrices = torch.stack(coefficients(conv, model, x, counts, score_weight))
    histogram = degree_histogram(edges).double()
    degrees = torch.arange(len(histogram), dtype=torch.double)
    average = conv.aggr_module.avg_deg_log.double().squeeze()  # PyG computes it in single precision
    torch.testing.assert_close(average, (torch.log(degrees + 1) * histogram).sum() / histogram.sum(), rtol=1e-6, atol=0)
    rows = []
    for i in range(N):
        neighbors = counts[i].nonzero().view(-1)
        n = max(1, len(neighbors))
        weight = matrices[:, i, neighbors].repeat_interleave(C // conv.heads, dim=0).t()
        message = pre(torch.cat([x[i].expand(len(neighbors), -1), x[neighbors]], dim=1)) * weight
        if len(neighbors):
            variance = ((message**2).mean(0) - message.mean(0) ** 2).clamp(min=1e-5)
            std = torch.where(variance > 1e-5, variance.sqrt(), 0.0)
            parts = torch.cat([message.mean(0), message.min(0)[0], message.max(0)[0], std])
        else:
            parts = torch.zeros(4 * C, dtype=torch.double)
        log = math.log(n + 1)
        rows.append(torch.cat([x[i], parts, parts * (log / average), parts * (average / log)]))
    dense = conv.lin(conv.post_nns[0](torch.stack(rows)))
    assert_same_values_and_gradients(conv, conv(x, edges), dense, x)


def assert_plain(ours, plain, arguments, x):
    plain.load_state_dict(ours.state_dict(), strict=False)
    outputs = [layer(*arguments) for layer in (ours, plain)]
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*(torch.autograd.grad(out.square().sum(), x)[0] for out in outputs))


@pytest.mark.parametrize("towers", [1, 2])
def test_uniform_attention_is_plain_pna(towers, x, edges):
    weights = "shared" if towers == 1 else "separate"
    ours = pna(edges, lambda1=0, heads=3, towers=towers, score_weights=weights)
    plain = PNAConv(C, 4, AGGREGATORS, SCALERS, degree_histogram(edges), towers=towers).double()
    assert_plain(ours, plain, (x.requires_grad_(), edges), x)


def test_uniform_attention_is_plain_pna_with_edge_features(x, edges):
    attr = torch.randn(edges.size(1), 2, dtype=torch.double)
    ours = pna(edges, lambda1=0, edge_dim=2)
    plain = PNAConv(C, 4, AGGREGATORS, SCALERS, degree_histogram(edges), edge_dim=2).double()
    assert_plain(ours, plain, (x.requires_grad_(), edges, attr), x)


@pytest.mark.parametrize("options", [{}, {"shared_weights": False}, {"normalize": False}, {"add_self_loops": False}])
def test_uniform_attention_is_plain_gcnii(options, x, x_0, edges):
    plain = GCN2Conv(C, 0.1, 0.5, 2, **options).double()
    assert_plain(gcn2(lambda1=0, heads=3, **options), plain, (x.requires_grad_(), x_0, edges), x)


@pytest.mark.parametrize("normalize", [True, False])
def test_uniform_attention_is_plain_gcnii_with_edge_weights(normalize, x, x_0, edge_index):
    weight = torch.rand(edge_index.size(1), dtype=torch.double)
    plain = GCN2Conv(C, 0.1, 0.5, 2, normalize=normalize).double()
    ours = gcn2(lambda1=0, heads=3, normalize=normalize)
    assert_plain(ours, plain, (x.requires_grad_(), x_0, edge_index, weight), x)


@pytest.mark.parametrize("train_eps", [True, False])
def test_uniform_attention_is_plain_gin(train_eps, x, edges):
    ours = gin(lambda1=0, heads=2, eps=0.3, train_eps=train_eps)
    plain = GINConv(mlp(), eps=0.3, train_eps=train_eps).double()
    assert_plain(ours, plain, (x.requires_grad_(), edges), x)


def test_adjacency_has_the_row_sums_of_the_graph_and_its_edges(x, edge_index):
    adjacency = AttentionAdjacency(C, heads=2).double()
    edges, weight = adjacency(x, edge_index)
    assert torch.equal(edges, edge_index)
    sums = torch.zeros(N, dtype=torch.double).index_add(0, edges[1], weight)
    torch.testing.assert_close(sums, torch.bincount(edges[1], minlength=N).double())


def test_adjacency_without_attention_is_the_graph(x, edge_index):
    _, weight = AttentionAdjacency(C, lambda1=0).double()(x, edge_index)
    torch.testing.assert_close(weight, torch.ones_like(weight))


def test_adjacency_multiplies_given_weights(x, edge_index):
    adjacency = AttentionAdjacency(C).double()
    given = torch.rand(edge_index.size(1), dtype=torch.double)
    torch.testing.assert_close(adjacency(x, edge_index, given)[1], adjacency(x, edge_index)[1] * given)


@pytest.mark.parametrize(
    "layer",
    [GraphConv(C, 4), TAGConv(C, 4, normalize=False), SGConv(C, 4, add_self_loops=False), ChebConv(C, 4, K=2)],
    ids=lambda layer: type(layer).__name__,
)
def test_adjacency_feeds_layers_that_take_edge_weights(layer, x, edges):
    both_ways = coalesce(torch.cat([edges, edges.flip(0)], dim=1))
    adjacency = AttentionAdjacency(C, heads=2).double()
    layer.double()(x, *adjacency(x, both_ways)).square().sum().backward()
    assert adjacency.interpolation.x.grad.abs() > 0


def test_adjacency_makes_gcnii_of_pygs_own_layer(x, x_0, edges):
    """The layer of ours is a shortcut for PyG's with ``normalize=False`` and the adjacency's weights."""
    closed, norm = gcn_norm(edges, num_nodes=N, dtype=torch.double)
    adjacency = AttentionAdjacency(C, channels=C).double()
    plain = GCN2Conv(C, 0.1, 0.5, 2, normalize=False).double()
    ours = gcn2(score_weights="separate")
    ours.load_state_dict({**plain.state_dict(), **adjacency.state_dict()})
    torch.testing.assert_close(plain(x, x_0, *adjacency(x, closed, norm)), ours(x, x_0, edges))


def test_sparse_input_equals_edge_index(x, x_0, edges):
    adj_t = torch.sparse_coo_tensor(edges.flip(0), torch.ones(edges.size(1)).double(), (N, N)).to_sparse_csr()
    ordered = to_edge_index(adj_t)[0].flip(0)
    for conv, arguments in ((pna(edges), (x,)), (gin(), (x,)), (gcn2(), (x, x_0))):
        torch.testing.assert_close(conv(*arguments, adj_t), conv(*arguments, ordered))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda e: pna(e, heads=4), "`heads` must divide the 6 channels of a message, got 4"),
        (lambda e: pna(e, towers=2), "`score_weights='shared'` needs one tower, got 2"),
        (lambda e: gcn2(heads=4), "`heads` must divide the 6 channels of a message, got 4"),
        (lambda e: LCATGCN2Conv(C, 0.1, theta=0.5), "`theta` and `layer` must be given together"),
        (lambda e: gin(heads=4), "`heads` must divide the 6 channels of a message, got 4"),
        (lambda e: LCATGINConv(torch.nn.ReLU()), "`in_channels` must be given"),
        (lambda e: gin(score="gta"), "did you mean 'gat'"),
        (lambda e: pna(e, score_weights="own"), "`score_weights` must be one of"),
        (lambda e: pna(e, heads=0), "`heads` must be a whole number of at least 1, got 0"),
        (lambda e: gcn2(heads=0), "`heads` must be a whole number of at least 1, got 0"),
        (lambda e: gin(heads=0), "`heads` must be a whole number of at least 1, got 0"),
        (lambda e: LCATGINConv(torch.nn.Linear(C, C), in_channels=-1), "`in_channels` must be a whole number"),
    ],
)
def test_bad_arguments(build, message, edges):
    with pytest.raises(ValueError, match=message):
        build(edges)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, e: pna(e)(x[None], e), r"`x` must have shape \[nodes, channels\], got \[1, 12, 6\]"),
        (lambda x, e: gcn2()(x[:, :5], x, e), "`x` must have 6 channels, got 5"),
        (lambda x, e: gin()((x, x[:, :3]), e), r"`x\[1\]` must have 6 channels, got 3"),
        (lambda x, e: gin()((x, x[:3]), e, size=(N, 4)), r"`size` must be \(12, 3\), the numbers of nodes in `x`"),
        (lambda x, e: gin()(x, e, size=(N, 3)), r"`size` must be \(12, 12\), one set of nodes, got \(12, 3\)"),
        (lambda x, e: AttentionAdjacency(C).double()(x[None], e), r"`x` must have shape \[nodes, channels\]"),
        (lambda x, e: pna(e)(x, e, x), "needs a layer with `edge_dim`, got None"),
        (lambda x, e: pna(e, edge_dim=3)(x, e), "`edge_dim` is 3, so `edge_attr` must be given, got None"),
        (
            lambda x, e: gcn2()(x, x, e, x[:, :1]),
            r"`edge_weight` must have shape \[\d+\], one number per edge, got \[12, 1\]",
        ),
        (
            lambda x, e: AttentionAdjacency(C).double()(x, e, e[:1].t()),
            r"`edge_weight` must have shape .* got \[\d+, 1\]",
        ),
    ],
)
def test_bad_inputs(call, message, x, edges):
    with pytest.raises((TypeError, ValueError), match=message):
        call(x, edges)


def test_values_of_a_sparse_matrix_are_edge_features_of_pna(x, edges):
    adj_t = torch.sparse_coo_tensor(edges.flip(0), torch.rand(edges.size(1)).double(), (N, N)).to_sparse_csr()
    conv = pna(edges, edge_dim=1)
    edge_index, values = to_edge_index(adj_t)
    torch.testing.assert_close(conv(x, adj_t), conv(x, edge_index.flip(0), values.view(-1, 1)))


@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_pairs_without_attention_are_plain_gin(eps, x):
    pair, size = (x, torch.randn(7, C, dtype=torch.double)), (N, 7)
    edges = random_edges(*size, 25, seed=4)
    ours, plain = gin(lambda1=0, heads=2, eps=eps), GINConv(mlp(), eps=eps).double()
    plain.nn.load_state_dict(ours.nn.state_dict())
    torch.testing.assert_close(ours(pair, edges), plain(pair, edges))
    torch.testing.assert_close(ours((x, None), edges, size=size), plain((x, None), edges, size=size))
    torch.testing.assert_close(ours((x, x), edges), ours(x, edges))
    reverse = gin(lambda1=0, heads=2, eps=eps, flow="target_to_source")
    reverse.load_state_dict(ours.state_dict())
    torch.testing.assert_close(reverse(pair, edges.flip(0)), ours(pair, edges))


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_pairs_in_gin_equal_the_dense_equations(score, x):
    """The sources have no known neighbours; a destination attends to them and to itself."""
    lambda1, lambda2, n = 0.8, 0.6, 7
    conv = gin(score=score, lambda1=lambda1, lambda2=lambda2, eps=0.3, init="normal")
    x_dst, edges = torch.randn(n, C, dtype=torch.double), random_edges(N, n, 25, seed=4)
    neighbors = torch.cat([torch.zeros(n, n).double(), oracle.edge_counts(edges, N, n)], dim=1)
    features = torch.cat([x_dst, x])
    key = features @ conv.lin_score.weight.t()
    hat = oracle.convolved(key[:n], key, neighbors, lambda2)
    key_hat = torch.cat([hat, key[n:]])
    if score == "gat":
        alpha = oracle.gat_alpha(hat, key_hat, conv.att_dst[0, 0], conv.att_src[0, 0], 0.2)
    else:
        alpha = oracle.gatv2_alpha(hat, key_hat, conv.att[0, 0], 0.2)
    counts = neighbors + torch.cat([torch.eye(n), torch.zeros(n, N)], dim=1).double()
    weights = oracle.coefficients(lambda1 * alpha, counts) * counts.sum(dim=1, keepdim=True)
    weights[:, :n] *= 1.3
    torch.testing.assert_close(conv((x, x_dst), edges), conv.nn(weights @ features))


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("prebuilt", [False, True])
@pytest.mark.parametrize("kind", ["pna", "gcn2", "gin", "gin_eps"])
def test_reversed_flow_is_the_reversed_graph(kind, prebuilt, observed, x, x_0, edges):
    build = {
        "pna": lambda **options: pna(edges, **options),
        "gcn2": gcn2,
        "gin": gin,
        "gin_eps": lambda **options: gin(eps=0.5, **options),
    }[kind]
    conv, backwards = build(), build(flow="target_to_source")
    backwards.load_state_dict(conv.state_dict())
    features = (x, x_0) if kind == "gcn2" else (x,)
    expected = conv(*features, edges)
    if observed:
        backwards.register_message_forward_hook(lambda module, arguments, out: None)
    # A Graph says itself which end is the source.
    graph = Graph.from_edge_index(edges, N, add_self_loops=kind != "pna") if prebuilt else edges.flip(0)
    torch.testing.assert_close(backwards(*features, graph), expected)


def test_compiled_gin_is_gin(x, edge_index):
    torch._dynamo.reset()
    conv = gin(eps=0.5)
    torch.testing.assert_close(torch.compile(conv, backend="eager", fullgraph=True)(x, edge_index), conv(x, edge_index))


def test_gin_uses_the_epsilon_that_was_loaded(x, edges):
    given, loaded = gin(eps=0.5), gin()
    loaded.load_state_dict(given.state_dict())
    torch.testing.assert_close(loaded(x, edges), given(x, edges))


@pytest.mark.parametrize("kind", ["pna", "gcn2", "gin", "adjacency"])
def test_repr_shows_the_attention(kind, edges):
    layer = {"pna": lambda: pna(edges), "gcn2": gcn2, "gin": gin, "adjacency": lambda: AttentionAdjacency(C)}[kind]()
    assert "score='gat', lambda1=0.5 (learned), lambda2=0.5 (learned)" in repr(layer)
