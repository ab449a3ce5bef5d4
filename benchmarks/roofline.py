"""An estimate of the least time that layers take on a GPU: the bytes that their kernels move, over the bandwidth of its memory.

    python -m lcat_benchmarks.roofline

Every row that an edge needs is counted as read from memory: the cache of a GPU serves some of them, and latency adds to what is
left. The true time of a kernel may be below or above; the ratios between the rows are safer than the times.
"""

from __future__ import annotations

from dataclasses import dataclass

from lcat_benchmarks.graphs import SIZES

#: Bytes per second, from the data sheets of the 80 GB versions with SXM.
BANDWIDTHS = {"A100": 2.039e12, "H100": 3.35e12}
HEADS, CHANNELS, NUMBER, INDEX = 8, 16, 4, 4


@dataclass(frozen=True)
class Traffic:
    """What is moved for each edge and each node: rows of H·C numbers, rows of H numbers, and 4-byte indices."""

    name: str
    edge_rows: float
    edge_heads: float
    edge_indices: float
    node_rows: float
    node_heads: float

    def bytes_moved(self, nodes: int, edges: int) -> float:
        row, heads = HEADS * CHANNELS * NUMBER, HEADS * NUMBER
        per_edge = self.edge_rows * row + self.edge_heads * heads + self.edge_indices * INDEX
        return edges * per_edge + nodes * (self.node_rows * row + self.node_heads * heads)


OURS = (
    Traffic("mean, forward or backward", 1, 0, 1, 1, 0),
    # The target, the result, its derivative by λ2.
    Traffic("convolution, forward", 1, 0, 1, 3, 0),
    # The gradient is divided first (a row in, a row out), and multiplied with the derivative by λ2 (two in, one out, one summed).
    Traffic("convolution, backward", 1, 0, 1, 7, 0),
    # Keys and values of the neighbours; query, result, shift and scale of the node.
    Traffic("attention of GAT, forward", 1, 1, 1, 1, 3),
    # Gradients, queries, shifts, scales and Σ grad·out of the neighbours, and a number per edge that is written and read again.
    Traffic("attention of GAT, backward", 1, 6, 3, 4, 4),
    Traffic("attention of GATv2, forward", 2, 0, 1, 2, 2),
    # By source: queries and gradients; by destination: keys; and the shares of the gradient of the attention vector.
    Traffic("attention of GATv2, backward", 3, 5, 4, 10, 2),
)
#: PyG's layers, eager, operation by operation: a gather reads and writes a row, a product reads and writes, a scatter reads.
PYG = (
    # x_j; α from two gathers, a sum, a LeakyReLU and the six steps of softmax; α x_j; the sum.
    Traffic("PyG GATConv, attention, forward", 5, 24, 16, 1, 4),
    # The gathered gradient; two products, one of them reduced; the gradient of softmax; the scatter to the sources.
    Traffic("PyG GATConv, attention, backward", 9, 24, 10, 2, 4),
    # x_i and x_j; their sum, LeakyReLU and product with the attention vector, reduced; softmax; x_j again; α x_j; the sum.
    Traffic("PyG GATv2Conv, attention, forward", 17, 18, 16, 1, 4),
    # As above, and the gradients of the product, of the LeakyReLU and of three gathers.
    Traffic("PyG GATv2Conv, attention, backward", 18, 20, 10, 3, 4),
)


def table() -> str:
    """Return a Markdown table for the size of ogbn-arxiv."""
    size = SIZES["arxiv"]
    nodes, edges = size.num_nodes, size.num_edges + size.num_nodes
    lines = [
        f"| {HEADS} heads of {CHANNELS}, float32 | bytes per edge | GB | {' | '.join(f'ms, {gpu}' for gpu in BANDWIDTHS)} |",
        "|---|---:|---:|" + "---:|" * len(BANDWIDTHS),
    ]
    for traffic in (*OURS, *PYG):
        moved = traffic.bytes_moved(nodes, edges)
        times = " | ".join(f"{1e3 * moved / bandwidth:.2f}" for bandwidth in BANDWIDTHS.values())
        lines.append(f"| {traffic.name} | {moved / edges:,.0f} | {moved / 1e9:.1f} | {times} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
