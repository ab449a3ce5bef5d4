"""The Triton kernels in compiled programs, in layers, and behind 'auto'."""

import warnings

import pytest
import torch
from largest_tensor import LargestTensor
from torch.utils._python_dispatch import TorchDispatchMode
from triton_cases import GRAPHS, random_inputs

from graphgym_lcat.kernels import dispatch, torch_path
from graphgym_lcat.kernels.backend import Request
from graphgym_lcat.kernels.triton import backend, layout, self_test
from graphgym_lcat.nn import LCATConv

CASE = GRAPHS["hub"]
ON_GPU = Request("attend", "cuda", (torch.float32,), (7, 7), 2, "gat", device_index=0)

pytestmark = pytest.mark.usefixtures("short_chunks")


@pytest.mark.parametrize("name", ["mean", "convolve", "fill_loops", "gat", "gatv2 edges", "coefficients"])
def test_operators_are_what_they_declare(name, device):
    from graphgym_lcat.kernels.triton import operators

    edge_index = CASE.edge_index.to(device)
    handle = (edge_index, 7, 7, True, True)

    def tensors(case_name):
        return [t.to(device).requires_grad_() for t in random_inputs(case_name, CASE)]

    nothing = torch.empty(0, device=device)
    if name in ("gat", "coefficients"):
        query, key, value = tensors("gat")
    if name == "gatv2 edges":
        query, key, value, att, features, weight = tensors("gatv2, edges, dropout")
        features = torch.cat([features, features[:7]]).detach().requires_grad_()
    seed = torch.tensor([3], device=device)
    operator, inputs = {
        "mean": lambda: (operators.neighbor_mean, tensors("mean")),
        "convolve": lambda: (operators.convolve, [*tensors("convolve"), True]),
        "fill_loops": lambda: (operators.fill_loops, [torch.randn(22, 3, device=device, requires_grad=True), True]),
        "gat": lambda: (operators.attend, [query, key, nothing, value, nothing, nothing, seed, 0.5, 0.2]),
        "gatv2 edges": lambda: (operators.attend, [query, key, att, value, features, weight, seed, 0.5, 0.2]),
        "coefficients": lambda: (operators.coefficients, [query, key, nothing, nothing, nothing, 0.2]),
    }[name]()
    checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(operator.compiled, (*handle, *inputs), test_utils=checks)


def make_layer(device, **options):
    torch.manual_seed(0)
    return LCATConv(6, 5, heads=3, edge_dim=2, backend="triton", **options).to(device)


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_a_layer_compiles_without_graph_breaks(score, device):
    torch._dynamo.reset()
    conv, edges = make_layer(device, score=score), CASE.edge_index.to(device)
    x, edge_attr = torch.randn(7, 6, device=device), torch.randn(22, 2, device=device)
    # Inductor would only turn the rest of the layer into C++, which takes longer than all else here.
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    grads = []
    for call in (conv, compiled):
        inputs = x.clone().requires_grad_()
        out = call(inputs, edges, edge_attr)
        grads.append([out.detach(), *torch.autograd.grad(out.square().sum(), (inputs, conv.lin.weight))])
    torch.testing.assert_close(*grads)


class _Synchronising(TorchDispatchMode):
    """Notes the calls for which the host waits for a GPU: a number or a shape that depends on data, or a copy to the host."""

    WAIT = (
        "_local_scalar_dense",
        "nonzero",
        "equal",
        "masked_select",
        "_unique2",
        "unique_dim",
        "repeat_interleave",
        "bincount",
    )

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        boolean_index = name == "index" and any(t is not None and t.dtype == torch.bool for t in args[1])
        if name in self.WAIT or boolean_index:
            self.calls.append(name)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("options", [{}, {"score": "gatv2", "dropout": 0.5}, {"lambda1": 0}])
def test_no_call_waits_for_the_device_once_the_layout_is_cached(options, device):
    conv, edges = make_layer(device, **options), CASE.edge_index.clone().to(device)
    x, edge_attr = torch.randn(7, 6, device=device), torch.randn(22, 2, device=device)
    counts = []
    for _ in range(2):
        with _Synchronising() as seen:
            out = conv(x.clone().requires_grad_(), edges, edge_attr)
        with _Synchronising() as seen_backward:
            out.sum().backward()
        counts.append((len(seen.calls), len(seen_backward.calls)))
    assert counts[0][0] > 0  # the layout is built by such calls, so they would be seen
    assert counts[1] == (0, 0)


@pytest.fixture
def untested():
    dispatch._SELF_TEST_RESULTS.clear()
    yield
    dispatch._SELF_TEST_RESULTS.clear()


def test_auto_takes_triton_on_a_gpu_after_one_self_test_per_device(untested, monkeypatch):
    asked = []
    monkeypatch.setitem(dispatch._SELF_TESTS, "triton", asked.append)
    for index in (0, 0, 1, 0):
        assert dispatch.choose("auto", ON_GPU._replace(device_index=index)) is backend
    assert asked == [torch.device("cuda:0"), torch.device("cuda:1")]


def test_a_failed_self_test_means_the_torch_path_and_one_warning(untested, monkeypatch):
    monkeypatch.setitem(dispatch._SELF_TESTS, "triton", lambda device: "its mean is wrong")
    with pytest.warns(RuntimeWarning, match="'triton' is not used on cuda:0, because its mean is wrong"):
        assert dispatch.choose("auto", ON_GPU) is torch_path
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dispatch.choose("auto", ON_GPU) is torch_path
    assert dispatch.choose("triton", ON_GPU) is backend  # chosen by name, it is not asked


def test_auto_does_not_interpret_kernels_on_the_cpu():
    assert dispatch.choose("auto", ON_GPU._replace(device="cpu", device_index=None)) is not backend


def test_the_self_test_passes(device):
    assert self_test.compare_with_torch_path(device) is None


def test_the_self_test_finds_a_wrong_kernel(device, monkeypatch):
    from graphgym_lcat.kernels.triton import operators

    mean = operators.neighbor_mean
    monkeypatch.setattr(operators, "neighbor_mean", lambda *inputs: mean(*inputs) * 1.01)
    assert "its mean differs from that of the torch path by 0.0" in str(self_test.compare_with_torch_path(device))


def test_the_self_test_survives_a_kernel_that_fails(device, monkeypatch):
    from graphgym_lcat.kernels.triton import operators

    def fail(*inputs):
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(operators, "convolve", fail)
    message = self_test.compare_with_torch_path(device)
    assert message == "its convolution failed in a test on this device (RuntimeError: no such instruction)"


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_a_layer_trains_under_autocast(score, device):
    conv, edges = make_layer(device, score=score), CASE.edge_index.to(device)
    x, edge_attr = torch.randn(7, 6, device=device), torch.randn(22, 2, device=device)
    results = []
    for name in ("triton", "torch"):
        conv.backend = name
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = conv(x, edges, edge_attr)
        results.append([out.detach(), *torch.autograd.grad(out.float().square().sum(), list(conv.parameters()))])
    scale = max(float(t.abs().max()) for t in results[1])
    for ours, expected in zip(*results, strict=True):
        assert ours.dtype == expected.dtype
        assert float((ours - expected).abs().max()) < 0.03 * scale


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_no_tensor_has_the_size_of_edges_times_channels(score, device, monkeypatch):
    monkeypatch.setattr(layout, "CHUNK", 64)
    nodes, edges, heads, channels = 5, 400, 2, 64
    edge_index = torch.randint(nodes, (2, edges)).to(device)
    conv = LCATConv(6, channels, heads, score=score, dropout=0.5, backend="triton").to(device)
    x = torch.randn(nodes, 6, device=device)
    conv(x, edge_index)  # the layout is built once
    with LargestTensor() as largest:
        conv(x, edge_index).sum().backward()
    assert 8 * largest.numel < edges * heads * channels  # the interpreter counts the bytes of what it copies
