"""The number of threads changes the time, not one bit of the result."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from fused_cases import PRIMITIVES, Case, compute, run

from graphgym_lcat.kernels import Graph, calls, fused


@pytest.fixture
def case(monkeypatch):
    monkeypatch.setattr("graphgym_lcat.kernels.threads.MIN_WORK_PER_THREAD", 1)
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(700, (2, 9000), generator=generator)
    edge_index[1, :2000] = 5  # one long row
    return Case(Graph.from_edge_index(edge_index, 700), heads=4, channels=8, seed=0)


@pytest.fixture(autouse=True)
def restore_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_results_repeat_bit_for_bit_with_any_number_of_threads(primitive, case):
    results = []
    for threads in (1, 2, 2, 3, 1):
        torch.set_num_threads(threads)
        results.append(run(fused, primitive, case.graph, case.inputs(primitive, torch.float32)))
    for other in results[1:]:
        for expected, actual in zip(results[0], other, strict=True):
            assert torch.equal(actual, expected)


def test_symmetric_graphs_repeat_bit_for_bit_too(case):
    edge_index = case.graph.edge_index
    graph = Graph.from_edge_index(torch.cat([edge_index, edge_index.flip(0)], dim=1), 700)
    _, features, value, att = case.inputs("attend_gatv2", torch.float32)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        out = compute(fused, "attend_gatv2", graph, [features, features, value, att])
        results.append((out, *torch.autograd.grad(out.square().sum(), (features, value, att))))
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_as_many_threads_as_torch_has_but_none_for_little_work(monkeypatch, case):
    torch.set_num_threads(2)
    assert calls._threads(case.graph.compact, 32) == 2
    torch.set_num_threads(1)
    assert calls._threads(case.graph.compact, 32) == 1
    monkeypatch.setattr("graphgym_lcat.kernels.threads.MIN_WORK_PER_THREAD", 10**9)
    torch.set_num_threads(2)
    assert calls._threads(case.graph.compact, 32) == 1


def loaded_openmp_runtimes():
    paths = Path("/proc/self/maps").read_text().split()
    return {path for path in paths if Path(path).name.startswith(("libgomp", "libiomp", "libomp"))}


@pytest.mark.slow
def test_the_kernels_bring_no_openmp_runtime_of_their_own():
    script = (
        "import torch, sklearn.metrics, pathlib\n"  # which GraphGym imports, with a runtime of its own
        f"{inspect.getsource(loaded_openmp_runtimes).replace('Path(', 'pathlib.Path(')}\n"
        "before = loaded_openmp_runtimes()\n"
        "from graphgym_lcat.kernels import library\n"
        "assert library.load().has_openmp\n"
        "assert loaded_openmp_runtimes() == before, loaded_openmp_runtimes() - before\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
