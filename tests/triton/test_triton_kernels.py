"""The Triton kernels, interpreted where there is no GPU, against dense attention in double precision."""

import pytest
import torch
from fused_cases import assert_all_same
from triton_cases import GRAPHS, OPERATORS, random_inputs, values

from graphgym_lcat.kernels.backend import Dropout, GATScore
from graphgym_lcat.kernels.triton import backend

# Of the largest number. Half precision rounds results, and so the numbers of the backward pass; Triton's interpreter even truncates
# bfloat16.
TOLERANCES = {torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 1.5e-3}

pytestmark = pytest.mark.usefixtures("short_chunks")


def compute(name, case, inputs, device):
    return [t.cpu() for t in values(name, backend, case, [t.to(device) for t in inputs], case.graph.to(device))]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", OPERATORS)
def test_equals_dense_attention(name, graph, device):
    case = GRAPHS[graph]
    inputs = random_inputs(name, case)
    assert_all_same(compute(name, case, inputs, device), values(name, None, case, inputs), TOLERANCES[torch.float32])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", OPERATORS)
def test_equals_dense_attention_in_half_precision(name, dtype, device):
    case = GRAPHS["hub"]
    inputs = random_inputs(name, case, dtype=dtype)
    actual = compute(name, case, inputs, device)
    assert [t.dtype for t in actual] == [dtype] * len(actual)
    assert_all_same(actual, values(name, None, case, inputs), TOLERANCES[dtype])


def test_the_result_has_the_type_of_the_values(device):
    case = GRAPHS["hub"]
    query, key, value = random_inputs("gat", case)
    inputs = [query, key, value.bfloat16()]  # as under autocast
    actual = compute("gat", case, inputs, device)
    assert [t.dtype for t in actual] == [torch.bfloat16, torch.float32, torch.float32, torch.bfloat16]
    assert_all_same(actual, values("gat", None, case, inputs), TOLERANCES[torch.bfloat16])


@pytest.mark.parametrize("name", ["convolve", "gat, edges, dropout", "gatv2, edges, dropout"])
def test_results_do_not_depend_on_the_order_of_programs(name, device, monkeypatch):
    if device.type == "cuda":
        pytest.skip("a GPU chooses the order of programs; repeat instead")
    from triton.runtime import interpreter

    case = GRAPHS["hub"]
    inputs = random_inputs(name, case)
    first = compute(name, case, inputs, device)
    builder = interpreter.interpreter_builder
    place = builder.set_grid_idx

    def backwards(x, y, z):
        place(builder.grid_dim[0] - 1 - x, builder.grid_dim[1] - 1 - y, z)

    monkeypatch.setattr(builder, "set_grid_idx", backwards)
    for a, b in zip(first, compute(name, case, inputs, device), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("heads", "channels"), [(1, 1), (5, 64), (2, 300)])
def test_heads_and_columns_that_need_several_blocks(heads, channels, device):
    case = GRAPHS["bipartite"]
    for name in ("mean", "gat", "gatv2"):
        inputs = random_inputs(name, case, heads, channels)
        assert_all_same(compute(name, case, inputs, device), values(name, None, case, inputs), 5e-6)


def test_rows_of_minus_infinity_have_no_weight(device):
    case = GRAPHS["hub"]
    query, key, value = random_inputs("gat", case)
    query[0] = -torch.inf
    out, *_ = compute("gat", case, [query, key, value], device)
    assert torch.equal(out[0], torch.zeros_like(out[0]))
    assert out.isfinite().all()


def test_a_dropout_of_one_drops_everything(device):
    case = GRAPHS["hub"]
    query, key, value = (t.to(device) for t in random_inputs("gat", case))
    out = backend.attend(
        case.graph.to(device), GATScore(query, key, 0.2), value, Dropout(1.0, torch.tensor([5], device=device))
    )
    assert not out.any()
