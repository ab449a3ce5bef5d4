"""Every model of the paper's table, both scores, against the dense oracle in double precision: values and gradients."""

import oracle
import pytest
import torch

from graphgym_lcat.nn import LCATConv

LAMBDAS = {
    "gcn": (0, "learn"),
    "gat": (1, 0),
    "cat": (1, 1),
    "lcat": ("learn", "learn"),
    "gcngat": ("learn", 0),
    "cat_l1": ("learn", 1),
    "cat_l2": (1, "learn"),
    "between": (0.3, 0.7),
}
OUT, SLOPE = 3, 0.2


def build(model, score, heads, score_weights="shared", **kwargs):
    lambda1, lambda2 = LAMBDAS[model]
    torch.manual_seed(3)
    conv = LCATConv(
        5,
        OUT,
        heads,
        score=score,
        lambda1=lambda1,
        lambda2=lambda2,
        score_weights=score_weights,
        init="normal",
        **kwargs,
    ).double()
    with torch.no_grad():
        for parameter in conv.interpolation.parameters():
            parameter += torch.linspace(0.1, 0.3, parameter.numel())
    return conv


def lambda_value(parameter, fixed, mirrored):
    if fixed != "learn":
        return torch.tensor(float(fixed), dtype=torch.double)
    exponent = 2.2 - parameter if mirrored else parameter
    return 1 / (1 + torch.exp(6 - 10**exponent))


def dense_output(conv, model, x, edge_index):
    counts = oracle.edge_counts(edge_index, len(x), len(x))
    lambda1 = lambda_value(conv.interpolation.x, LAMBDAS[model][0], mirrored=False)
    lambda2 = lambda_value(conv.interpolation.y, LAMBDAS[model][1], mirrored=True)
    score_weight = conv.lin.weight if conv.lin_score is None else conv.lin_score.weight

    def alpha(head, u, v):
        if conv.score == "gat":
            return oracle.gat_alpha(u, v, conv.att_dst[0, head], conv.att_src[0, head], SLOPE)
        return oracle.gatv2_alpha(u, v, conv.att[0, head], SLOPE)

    outputs = oracle.attention_layer(
        x, counts, conv.lin.weight, score_weight, alpha, conv.heads, lambda1, lambda2, conv.add_self_loops
    )
    out = torch.cat(outputs, dim=1) if conv.concat else torch.stack(outputs).mean(dim=0)
    return out if conv.bias is None else out + conv.bias


def assert_same_values_and_gradients(conv, ours, dense, x):
    torch.testing.assert_close(ours, dense, rtol=1e-9, atol=1e-11)
    leaves = {"x": x, **dict(conv.named_parameters())}
    weights = torch.linspace(-1, 1, ours.numel(), dtype=torch.double).view_as(ours)
    grads = [
        torch.autograd.grad((out * weights).sum(), leaves.values(), allow_unused=True, retain_graph=True)
        for out in (ours, dense)
    ]
    for name, got, expected in zip(leaves, *grads, strict=True):
        zero = torch.zeros_like(leaves[name])
        got, expected = (zero if grad is None else grad for grad in (got, expected))
        torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-10, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize("score_weights", ["shared", "separate"])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("model", LAMBDAS)
def test_layer_equals_dense_oracle(model, score, heads, score_weights, x, edge_index):
    conv = build(model, score, heads, score_weights)
    x.requires_grad_()
    assert_same_values_and_gradients(conv, conv(x, edge_index), dense_output(conv, model, x, edge_index), x)


@pytest.mark.parametrize("kwargs", [{"concat": False}, {"bias": False}, {"add_self_loops": False}, {"residual": True}])
@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_options_equal_dense_oracle(score, kwargs, x, edge_index):
    conv = build("lcat", score, 2, **kwargs)
    x.requires_grad_()
    dense = dense_output(conv, "lcat", x, edge_index)
    if conv.res is not None:
        dense = dense + x @ conv.res.weight.t()
    assert_same_values_and_gradients(conv, conv(x, edge_index), dense, x)


@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("model", ["lcat", "gcngat", "cat_l2"])
def test_gradcheck_of_inputs_weights_and_lambdas(model, score, x, edge_index):
    conv = build(model, score, 2)
    names, parameters = zip(*conv.named_parameters(), strict=True)

    def run(x, *parameters):
        return torch.func.functional_call(conv, dict(zip(names, parameters, strict=True)), (x, edge_index))

    assert torch.autograd.gradcheck(run, (x.requires_grad_(), *parameters), atol=1e-6)


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_one_lambda_pair_per_head_equals_single_heads(score, x, edge_index):
    conv = build("lcat", score, 2, lambda_per_head=True, bias=False)
    assert conv.interpolation.x.shape == (2,)
    out = conv(x, edge_index)
    for head in range(2):
        single = LCATConv(5, OUT, 1, score=score, bias=False).double()
        rows = slice(head * OUT, (head + 1) * OUT)
        with torch.no_grad():
            single.lin.weight.copy_(conv.lin.weight[rows])
            single.interpolation.x.copy_(conv.interpolation.x[head : head + 1])
            single.interpolation.y.copy_(conv.interpolation.y[head : head + 1])
            for name in ("att_src", "att_dst", "att"):
                if getattr(conv, name) is not None:
                    getattr(single, name).copy_(getattr(conv, name)[:, head : head + 1])
        torch.testing.assert_close(out[:, rows], single(x, edge_index))


def test_dot_product_score_equals_dense_oracle(x, edge_index):
    conv = LCATConv(5, OUT, 2, score=lambda u, v: (u * v).sum(dim=-1), lambda1=0.6, lambda2=0.4).double()
    counts = oracle.edge_counts(edge_index, 12, 12)
    dense = oracle.attention_layer(
        x, counts, conv.lin.weight, conv.lin.weight, lambda head, u, v: u @ v.t(), 2, 0.6, 0.4
    )
    torch.testing.assert_close(conv(x, edge_index), torch.cat(dense, dim=1))


def test_gatv2_in_many_chunks_equals_one_chunk(x, edge_index, monkeypatch):
    from graphgym_lcat.kernels import torch_path

    conv = build("lcat", "gatv2", 2, backend="torch")
    x.requires_grad_()
    whole = torch.autograd.grad(conv(x, edge_index).square().sum(), [x, *conv.parameters()])
    monkeypatch.setattr(torch_path, "CHUNK_NUMEL", 30)
    chunked = torch.autograd.grad(conv(x, edge_index).square().sum(), [x, *conv.parameters()])
    torch.testing.assert_close(chunked, whole)
