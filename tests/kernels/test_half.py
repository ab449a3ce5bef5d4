"""bfloat16 and float16: stored so, computed in float32."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from dense_attention import aggregate, dropped, edge_list, gat_scores, gatv2_scores, softmax
from fused_cases import PRIMITIVES, Case, cases, compute, run
from hypothesis import given, settings
from largest_tensor import LargestTensor

from graphgym_lcat.kernels import Graph, dispatch, fused, library, torch_path
from graphgym_lcat.kernels.backend import STATISTICS, Dropout, EdgeTerm, EqualScore, GATScore, GATv2Score
from graphgym_lcat.nn import LCATConv, LCATGCN2Conv, LCATGINConv

CSRC = Path(library.__file__).parent / "csrc"
HALVES = [pytest.param(dtype, id=str(dtype)) for dtype in library.HALVES]

supported = pytest.mark.skipif(
    not set(library.HALVES) <= set(fused.can.dtypes) or fused.UNAVAILABLE is not None,
    reason="the kernels for this processor have no bfloat16 and float16",
)


def assert_close(actual, expected, roundings):
    """Equal up to so many roundings of the largest number: what vanishes does so up to the rounding of the others."""
    scale = max([1.0, *(t.abs().max().item() for t in expected if t.numel())])
    for a, e in zip(actual, expected, strict=True):
        bound = roundings * torch.finfo(a.dtype).eps * scale
        torch.testing.assert_close(a.double(), e.double(), rtol=0, atol=bound)


@supported
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("extras", ["none", "dropout", "edges", "both"])
@pytest.mark.parametrize("kind", ["gat", "gatv2"])
def test_attention_equals_dense_attention_of_the_rounded_inputs(kind, extras, dtype):
    nodes, heads, channels, edge_dim = 40, 4, 8, 3
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(nodes, (2, 300), generator=generator)
    edge_index[1, :150] = 7  # more edges than a block has
    graph = Graph.from_edge_index(edge_index, nodes)

    def draw(*shape):
        return torch.randn(shape, generator=generator).to(dtype).requires_grad_()

    shape = (nodes, heads) if kind == "gat" else (nodes, heads, channels)
    query, key, value, att = draw(*shape), draw(*shape), draw(nodes, heads, channels), draw(heads, channels)
    features, loops = draw(300, edge_dim), draw(nodes, edge_dim)
    weight = draw(heads, edge_dim) if kind == "gat" else draw(heads, channels, edge_dim)
    inputs = [query, key, value, *([att] if kind == "gatv2" else [])]
    edge = EdgeTerm(features, loops, weight) if extras in ("edges", "both") else None
    inputs += edge or []
    dropout = Dropout(0.4, torch.tensor([5])) if extras in ("dropout", "both") else None
    score = GATScore(query, key, 0.2, edge) if kind == "gat" else GATv2Score(query, key, att, 0.2, edge)
    grad, grad_gamma = torch.randn(nodes, heads, channels).to(dtype), torch.randn(300, heads).to(dtype)

    q, k, v, *rest = exact = [t.detach().double().requires_grad_() for t in inputs]
    src, dst, number = edge_list(edge_index, nodes, nodes, True)
    a = rest.pop(0) if kind == "gatv2" else None
    rows = torch.cat(rest[:2]) if edge else None
    if kind == "gat":
        scores = gat_scores(src, dst, number, q, k, rows @ rest[2].t() if edge else None, 0.2)
    else:
        scores = gatv2_scores(src, dst, number, q, k, a, rows, rest[2].flatten(0, 1) if edge else None, 0.2)
    gamma = dropped(softmax(scores, dst, nodes), number, 5, dropout.probability if dropout else 0.0)
    expected = aggregate(gamma, src, dst, v, nodes)

    out = fused.attend(graph, score, value, dropout)
    assert out.dtype == dtype
    assert_close([out], [expected], 1)
    grads = torch.autograd.grad(out, inputs, grad, retain_graph=True)
    assert_close(grads, torch.autograd.grad(expected, exact, grad.double(), retain_graph=True), 4)

    actual = fused.coefficients(graph, score, dropout)
    stored = number < 300
    assert actual.edges.dtype == dtype
    assert_close([actual.edges[number[stored]], actual.loops], [gamma[stored], gamma[~stored]], 1)
    del inputs[2], exact[2]
    grads = torch.autograd.grad(actual.edges, inputs, grad_gamma)
    wanted = torch.autograd.grad(gamma[stored], exact, grad_gamma.double()[number[stored]])
    assert_close(grads, wanted, 4)


@supported
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("primitive", PRIMITIVES)
@settings(max_examples=15, deadline=None)
@given(case=cases())
def test_results_are_those_of_the_torch_path_in_double(primitive, dtype, case):
    inputs = case.inputs(primitive, dtype)
    exact = [t.detach().double().requires_grad_() for t in inputs]
    actual = run(fused, primitive, case.graph, inputs)
    assert all(t.dtype == dtype for t in actual)
    expected = run(torch_path, primitive, case.graph, exact)
    assert_close(actual[:1], expected[:1], 1)
    if primitive == "convolve":  # the gradient of λ2 is a sum over all numbers, each of them rounded
        *actual, slope = actual
        *expected, wanted = expected
        assert_close([slope], [wanted], 2 * (1 + expected[0].numel() ** 0.5))
    assert_close(actual[1:], expected[1:], 8)


@supported
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", ["equal", "gat", "gatv2"])
def test_statistics_of_messages_convert_to_float32(kind, dtype):
    graph = Graph.from_edge_index(torch.randint(20, (2, 100), generator=torch.Generator().manual_seed(0)), 20, False)
    key = torch.randn(20, 2, 4).to(dtype)
    score = {
        "equal": EqualScore(key),
        "gat": GATScore(key[..., 0], key[..., 1], 0.2),
        "gatv2": GATv2Score(key, key, key[0], 0.2),
    }[kind]
    rows = torch.randn(20, 8).to(dtype).requires_grad_()
    out = dispatch.statistics("fused", graph, score, rows, rows, STATISTICS)
    exact = score._replace(**{n: t.double() for n, t in score._asdict().items() if isinstance(t, torch.Tensor)})
    assert out.dtype == dtype
    wanted = torch_path.statistics(graph, exact, rows.double(), rows.double(), STATISTICS)
    assert_close([out], [wanted], 1)
    out.sum().backward()
    assert rows.grad.dtype == dtype


@supported
@pytest.mark.parametrize(
    "options", [{}, {"dropout": 0.5}, {"edge_dim": 3}, {"score": "gatv2"}, {"lambda1": 0}], ids=str
)
def test_autocast_stays_on_the_fused_path(options):
    torch.manual_seed(0)
    edge_index = torch.randint(30, (2, 200))
    conv, x = LCATConv(16, 8, heads=4, backend="fused", **options), torch.randn(30, 16, requires_grad=True)
    arguments = (torch.randn(200, 3),) if "edge_dim" in options else ()
    grads = []
    for enabled in (False, True):
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            out = conv(x, edge_index, *arguments)
        grads.append([out, *torch.autograd.grad(out.square().sum(), (x, conv.lin.weight))])
    for a, e in zip(*grads, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=0.05 * e.abs().max().item())


@supported
@pytest.mark.parametrize("dtype", HALVES)
def test_layers_on_the_adjacency_take_halves(dtype):
    edge_index, x = torch.randint(20, (2, 90)), torch.randn(20, 8).to(dtype)
    gin = LCATGINConv(torch.nn.Linear(8, 8), eps=0.5, backend="fused").to(dtype)
    gcnii = LCATGCN2Conv(8, 0.1, backend="fused").to(dtype)
    assert gin(x, edge_index).dtype == gcnii(x, x, edge_index).dtype == dtype


@supported
@pytest.mark.parametrize("dtype", HALVES)
def test_sums_of_a_hundred_thousand_neighbours_lose_nothing(dtype):
    """A running sum in the type itself would stop growing at 2¹¹ (float16) or 2⁸ (bfloat16), or overflow."""
    src = torch.randint(500, (100_000,), generator=torch.Generator().manual_seed(0))
    graph = Graph.from_edge_index(torch.stack([src, torch.zeros_like(src)]), 500)
    for primitive in PRIMITIVES:
        inputs = Case(graph, 4, 8, seed=0).inputs(primitive, dtype)
        exact = [t.detach().double().requires_grad_() for t in inputs]
        actual, expected = run(fused, primitive, graph, inputs), run(torch_path, primitive, graph, exact)
        assert_close(actual[:1], expected[:1], 1)
        assert_close(actual[1:], expected[1:], 8)


@supported
@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_means_of_the_largest_numbers_of_float16_stay_finite(primitive):
    graph = Graph.from_edge_index(torch.randint(10, (2, 300), generator=torch.Generator().manual_seed(0)), 10)
    inputs = Case(graph, 4, 8, seed=0).inputs(primitive, torch.float16)
    with torch.no_grad():
        for t in inputs:
            if t.dim() > 1 and t.size(-1) >= 8:
                t.copy_(t.sign() * 65504)
        if primitive == "attend_gatv2":
            inputs[3].fill_(1e-4)
        out = compute(fused, primitive, graph, inputs)
    assert out.isfinite().all()
    exact = compute(torch_path, primitive, graph, [t.detach().double() for t in inputs])
    assert_close([out], [exact], 1)


@supported
@pytest.mark.parametrize("dtype", HALVES)
def test_results_repeat_bit_for_bit_with_any_number_of_threads(dtype, monkeypatch):
    monkeypatch.setattr("graphgym_lcat.kernels.threads.MIN_WORK_PER_THREAD", 1)
    graph = Graph.from_edge_index(torch.randint(300, (2, 4000), generator=torch.Generator().manual_seed(0)), 300)
    before = torch.get_num_threads()
    try:
        for primitive in PRIMITIVES:
            results = []
            for threads in (1, 3):
                torch.set_num_threads(threads)
                inputs = Case(graph, 4, 8, seed=0).inputs(primitive, dtype)
                results.append(run(fused, primitive, graph, inputs))
            assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    finally:
        torch.set_num_threads(before)


@supported
@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_training_keeps_half_the_bytes(score):
    torch.manual_seed(0)
    edge_index, kept = torch.randint(200, (2, 2000)), {}
    for dtype in (torch.float32, torch.bfloat16):
        conv = LCATConv(32, 16, heads=4, score=score, lambda2=0, backend="fused").to(dtype)
        x, saved = torch.randn(200, 32).to(dtype).requires_grad_(), {}

        def note(tensor, saved=saved):
            saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t), LargestTensor() as largest:
            conv(x, edge_index).sum().backward()
        kept[dtype] = sum(saved.values())
        assert 0 < largest.numel <= 200 * 64
    # Shift, scale and other numbers per node and head stay in float32.
    assert kept[torch.bfloat16] < 0.6 * kept[torch.float32]


@supported
@pytest.mark.slow
@pytest.mark.parametrize("score", ["gat", "gatv2"])
@pytest.mark.parametrize("autocast", [False, True])
def test_compiles_and_exports(score, autocast):
    torch._dynamo.reset()
    torch.manual_seed(0)
    edge_index, dtype = torch.randint(30, (2, 200)), torch.float32 if autocast else torch.bfloat16
    conv = LCATConv(16, 8, heads=4, score=score, backend="fused", edge_dim=3).to(dtype)
    x, features = torch.randn(30, 16).to(dtype), torch.randn(200, 3).to(dtype)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    results = []
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        for call in (conv, compiled):
            out = call(x, edge_index, features)
            results.append((out.float(), *torch.autograd.grad(out.float().square().sum(), (conv.lin.weight,))))
        exported = torch.export.export(conv, (x, edge_index, features)).module()(x, edge_index, features)
    for a, e in zip(*results, strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=0.06 * e.abs().max().item())
    torch.testing.assert_close(exported.float(), results[0][0], rtol=0, atol=0.03)


CONVERSION = """
#include "stored.h"
void to_reals(long n, const stored *from, real *to) { as_reals(n, from, to); }
void to_stored(long n, const real *from, stored *to) { write_row(n, from, to); }
"""


@pytest.mark.parametrize("flags", [[], ["-mavx2", "-mfma", "-mf16c"]], ids=["generic", "avx2"])
@pytest.mark.parametrize("dtype", HALVES)
def test_conversion_rounds_as_torch_does(dtype, flags, tmp_path):
    compiler = shutil.which("gcc") or shutil.which("clang")
    loaded = library.load()
    if compiler is None or isinstance(loaded, str) or (flags and loaded.instruction_set == "generic"):
        pytest.skip("there is no C compiler, or the processor lacks the instructions")
    source, built = tmp_path / "conversion.c", tmp_path / "conversion.so"
    source.write_text(CONVERSION)
    name = "STORED_AS_BFLOAT16" if dtype == torch.bfloat16 else "STORED_AS_FLOAT16"
    options = ["-std=gnu11", "-O1", "-Wno-psabi", "-shared", "-fPIC", f"-I{CSRC}", f"-D{name}", *flags]
    subprocess.run([compiler, *options, str(source), "-o", str(built)], check=True)
    functions = ctypes.CDLL(str(built))

    every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(dtype)
    reals = torch.empty(2**16)
    functions.to_reals(2**16, ctypes.c_void_p(every.data_ptr()), ctypes.c_void_p(reals.data_ptr()))
    torch.testing.assert_close(reals, every.float(), rtol=0, atol=0, equal_nan=True)

    # All numbers of the type, their neighbours in float32, the midpoints between them, and random bits; an odd count.
    finite = reals[reals.isfinite()]
    middle = (finite[:-1].double() + finite[1:].double()).float() / 2
    bits = torch.randint(-(2**31), 2**31, (100_001,), dtype=torch.int64).to(torch.int32).view(torch.float32)
    up, down = (torch.nextafter(middle, torch.tensor(sign * float("inf"))) for sign in (1, -1))
    numbers = torch.cat([reals, middle, up, down, bits])
    stored = torch.empty(numbers.numel(), dtype=dtype)
    functions.to_stored(
        ctypes.c_long(numbers.numel()), ctypes.c_void_p(numbers.data_ptr()), ctypes.c_void_p(stored.data_ptr())
    )
    torch.testing.assert_close(stored, numbers.to(dtype), rtol=0, atol=0, equal_nan=True)
