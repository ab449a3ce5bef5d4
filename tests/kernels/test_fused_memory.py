"""Training with the fused kernels takes no memory that grows with edges times heads."""

import subprocess
import sys

import pytest
import torch
from largest_tensor import LargestTensor

from graphgym_lcat.nn import LCATConv

pytestmark = pytest.mark.slow

NODES, EDGES, HEADS, CHANNELS = 50, 4000, 4, 8


@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_no_tensor_grows_with_edges(score):
    torch.manual_seed(0)
    conv = LCATConv(16, CHANNELS, HEADS, score=score, backend="fused")
    x, edge_index = torch.randn(NODES, 16, requires_grad=True), torch.randint(NODES, (2, EDGES))
    conv(x, edge_index)  # the layout is built once
    with LargestTensor() as largest:
        conv(x, edge_index).sum().backward()
    assert 0 < largest.numel <= NODES * HEADS * CHANNELS < EDGES


SCRIPT = """
import resource, sys, torch
from graphgym_lcat.nn import LCATConv

torch.set_num_threads(1)
torch.manual_seed(0)
nodes, edges = 1000, 2_000_000
conv = LCATConv(16, 8, 4, score=sys.argv[1], backend="fused")
x = torch.randn(nodes, 16, requires_grad=True)
conv(x, torch.randint(nodes, (2, 10))).sum().backward()
edge_index = torch.randint(nodes, (2, edges))
with torch.no_grad():
    conv(x, edge_index)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(2):
    conv(x, edge_index).sum().backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured in KiB on Linux only")
@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_the_process_grows_by_less_than_one_number_per_edge(score):
    run = subprocess.run([sys.executable, "-c", SCRIPT, score], capture_output=True, text=True, check=True)
    grown_bytes = 1024 * int(run.stdout)
    assert grown_bytes < 2_000_000  # one float per edge would be 8 MB, E·H of them 32 MB
