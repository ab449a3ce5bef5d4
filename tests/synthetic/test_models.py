"""The blocked computation against the ansatz of the appendix, written out densely in double precision."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, leaky_relu

from graphgym_lcat.kernels import fused
from graphgym_lcat.synthetic.learned import PairwiseAttentionLoss
from graphgym_lcat.synthetic.models import Ansatz, attend, convolve, neighbour_sums, score_terms

S = torch.tensor([[1, 1], [-1, -1], [1, -1], [-1, 1], [0, 1], [1, 0], [0, -1], [-1, 0]], dtype=torch.double)
B = torch.tensor([-1.5] * 4 + [-0.5] * 4, dtype=torch.double)
R_VECTOR = torch.tensor([2, -2, -2, 2, -1, -1, -1, -1], dtype=torch.double)


def dense_score(u, v, m, ansatz: Ansatz):
    pairs = torch.stack(torch.broadcast_tensors(u[:, None], v[None, :]), dim=-1)
    hidden = leaky_relu(pairs @ S.t() + B * m, ansatz.slope)
    return ansatz.scale * (hidden @ R_VECTOR)


def dense_gamma(u, m, ansatz, adjacency, lambda1):
    score = lambda1 * dense_score(u, u, m, ansatz)
    with_self = adjacency.bool() | torch.eye(len(u), dtype=torch.bool)
    return torch.softmax(score.masked_fill(~with_self, -torch.inf), dim=1)


@pytest.fixture
def graph():
    generator = torch.Generator().manual_seed(0)
    upper = (torch.rand(70, 70, generator=generator) < 0.3).triu(1)
    z = torch.randn(70, generator=generator, dtype=torch.double)
    targets = (torch.rand(70, generator=generator) < 0.5).double()
    return (upper | upper.t()).to(torch.uint8), z, targets


@pytest.mark.parametrize("slope", [0.0, 0.01, 0.2])
def test_the_scores_of_class_centres_are_those_of_the_lemma_with_its_two_misprints_corrected(slope):
    centre = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.double)
    found = dense_score(centre, centre, 1.0, Ansatz(slope, 1.0))
    expected = torch.tensor(
        [
            [-2 * (1 + 2 * slope), -0.5 * (1 - 5 * slope), 10 * slope],
            [-0.5 * (1 + 11 * slope), 2 * slope, -0.5 * (1 - 21 * slope)],
            [-2 * (1 + 2 * slope), -0.5 * (1 - 5 * slope), 10 * slope],
        ],
        dtype=torch.double,
    )
    assert torch.allclose(found, expected)


@pytest.fixture(params=["torch", "fused"])
def backend(request, monkeypatch):
    if request.param == "fused" and fused.UNAVAILABLE is not None:
        pytest.skip(fused.UNAVAILABLE)
    monkeypatch.setenv("LCAT_BACKEND", request.param)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("m", [1.3, 0.2, 0.0, -0.7])
@pytest.mark.parametrize("lambda1", [1.0, 0.3])
def test_attention_equals_the_dense_ansatz(graph, m, lambda1):
    adjacency, z, _ = graph
    ansatz = Ansatz(0.1, 2.0)
    values = torch.stack([z, z**2], dim=1)
    expected = dense_gamma(z, m, ansatz, adjacency, lambda1) @ values
    assert torch.allclose(attend(z, values, adjacency, m, ansatz, lambda1), expected)


@pytest.mark.usefixtures("backend")
def test_attention_survives_scores_that_would_overflow(graph):
    adjacency, z, _ = graph
    ansatz = Ansatz(0.01, 1400.0)
    out = attend(z.float(), z.float()[:, None], adjacency, 0.005, ansatz)
    expected = dense_gamma(z, 0.005, ansatz, adjacency, 1.0) @ z
    assert torch.allclose(out[:, 0].double(), expected, atol=1e-3)


@pytest.mark.usefixtures("backend")
def test_an_isolated_node_attends_to_itself(graph):
    _, z, _ = graph
    out = attend(z, z[:, None], torch.zeros(70, 70, dtype=torch.uint8), 1.0, Ansatz(0.01, 2.0))
    assert torch.allclose(out[:, 0], z)


def test_attention_does_not_depend_on_the_number_of_threads(graph):
    adjacency, z, _ = graph
    before = torch.get_num_threads()
    try:
        outputs = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            outputs.append(
                attend(z.float(), torch.randn(70, 4, generator=torch.manual_seed(0)), adjacency, 0.4, Ansatz(0.01, 2.0))
            )
    finally:
        torch.set_num_threads(before)
    assert torch.equal(outputs[0], outputs[1])
    assert torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("lambda2", [0.0, 0.4, 1.0])
def test_convolution_is_equation_7(graph, lambda2):
    adjacency, z, _ = graph
    sums = neighbour_sums(torch.stack([z, torch.ones_like(z)], dim=1), adjacency)
    dense = adjacency.double()
    expected = (z + lambda2 * dense @ z) / (1 + lambda2 * dense.sum(dim=1))
    assert torch.allclose(convolve(z, sums[:, 0], sums[:, 1], lambda2), expected)


@pytest.mark.parametrize("m", [1.3, 0.2, -0.7])
@pytest.mark.parametrize("logit_scale", [1.0, 5.0])
def test_loss_and_derivatives_equal_those_of_autograd_on_the_dense_ansatz(graph, m, logit_scale):
    adjacency, z, targets = graph
    ansatz = Ansatz(0.1, 2.0)

    def parameters():
        score_input = (0.8 * z).requires_grad_()
        return score_input, *(torch.tensor(v, dtype=torch.double, requires_grad=True) for v in (m, 0.6))

    ours = parameters()
    terms = score_terms(ours[0], ours[1], ansatz, ours[2])
    loss = PairwiseAttentionLoss.apply(ours[0], *terms, ours[1] / 2, z, targets, adjacency, logit_scale)
    loss.backward()

    dense = parameters()
    logits = logit_scale * (dense_gamma(dense[0], dense[1], ansatz, adjacency, dense[2]) @ z - dense[1] / 2)
    expected = binary_cross_entropy_with_logits(logits, targets)
    expected.backward()

    assert torch.allclose(loss, expected)
    for mine, theirs in zip(ours, dense, strict=True):
        assert torch.allclose(mine.grad, theirs.grad)
