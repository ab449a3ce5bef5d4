"""Neighbour sampling for any PyG loader: uniform, without replacement, several hops, one or many types of nodes."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, NodeSamplerInput, SamplerOutput
from torch_geometric.typing import EdgeType

from graphgym_lcat.kernels.sampling import Edges, InEdges, Numbering
from lcat_core.errors import unknown_name

Sizes = Sequence[int] | Mapping[EdgeType, Sequence[int]]
_ONE_TYPE = ""
_ONE_RELATION = (_ONE_TYPE, _ONE_TYPE, _ONE_TYPE)


class NeighborSampler(BaseSampler):
    """Samples the neighbourhoods of nodes, hop by hop: a sampler for PyG's ``NodeLoader``; see :class:`NeighborLoader`.

    The batch holds the given nodes first, then those of each hop in the order in which they were found. Each hop draws in-edges of
    the nodes that the hop before it has found. What is drawn is a function of ``seed``, ``epoch`` and the given nodes, whatever
    the number of threads, processes, or batches before.

    Args:
        data: A graph with ``edge_index``.
        num_neighbors: Edges to draw per node in each hop, −1 for all; in a heterogeneous graph, for all relations or per relation.
        seed: Seed of the samples.
        threads: Threads of the C library.
        native: Whether C does the work; by default if the library was built.

    Attributes:
        epoch: Change it to draw other samples for the same nodes.
    """

    def __init__(
        self,
        data: Data | HeteroData,
        num_neighbors: Sizes,
        *,
        seed: int = 0,
        threads: int = 1,
        native: bool | None = None,
    ):
        if threads < 1:
            raise ValueError(f"`threads` must be at least 1, got {threads!r}")
        if not -(2**63) <= seed < 2**63:
            raise ValueError(f"`seed` must lie in [-2**63, 2**63 - 1], got {seed!r}")
        self.is_heterogeneous = isinstance(data, HeteroData)
        if isinstance(data, HeteroData):
            stores = {relation: data[relation] for relation in data.edge_types}
            self._counts = {kind: int(data[kind].num_nodes) for kind in data.node_types}
        else:
            stores = {_ONE_RELATION: data}
            self._counts = {_ONE_TYPE: int(data.num_nodes)}
        self._sizes = _sizes_by_relation(num_neighbors, list(stores))
        self.num_hops = len(next(iter(self._sizes.values())))
        self.seed, self.threads, self.epoch = seed, threads, 0
        self._in_edges = {
            relation: InEdges(_edge_index(store), self._counts[relation[0]], self._counts[relation[2]], native)
            for relation, store in stores.items()
        }
        self._spare: list[dict[str, Numbering]] = []  # one for each batch that is being drawn at the same time

    def sample_from_nodes(
        self, index: NodeSamplerInput, epoch: int | None = None, **_: Any
    ) -> SamplerOutput | HeteroSamplerOutput:
        """Sample the neighbourhood of ``index.node``.

        Raises:
            ValueError: The nodes are not distinct nodes of the graph.
        """
        kind = index.input_type or _ONE_TYPE
        seeds = index.node.to("cpu", torch.int64).contiguous()
        self._check_seeds(seeds, kind)
        key = derived_seed(self.seed, self.epoch if epoch is None else epoch, seeds.numpy().tobytes())
        try:
            numberings = self._spare.pop()
        except IndexError:  # not asked before: another thread may take the last one in between
            numberings = self._numberings()
        numberings[kind].number_(seeds.clone())
        if numberings[kind].count < seeds.numel():
            raise ValueError(f"the {seeds.numel()} nodes of a batch must be distinct, got {numberings[kind].count}")
        node_counts = {name: [numbering.count] for name, numbering in numberings.items()}
        edge_counts: dict[EdgeType, list[int]] = {relation: [] for relation in self._in_edges}
        drawn: dict[EdgeType, Edges] = {}
        for hop in range(self.num_hops):
            border = {name: numbering.take_new() for name, numbering in numberings.items()}
            for position, (relation, in_edges) in enumerate(self._in_edges.items()):
                first, nodes = border[relation[2]]
                size, known = self._sizes[relation][hop], sum(edge_counts[relation])
                stream = derived_seed(key, position)
                edges = in_edges.draw(nodes, size, stream, first, self.threads, drawn.get(relation))
                numberings[relation[0]].number_(edges.source[known:])
                edge_counts[relation].append(edges.source.numel() - known)
                drawn[relation] = edges
            for name, numbering in numberings.items():
                node_counts[name].append(numbering.count - sum(node_counts[name]))
        all_nodes = {name: numbering.finish() for name, numbering in numberings.items()}
        self._spare.append(numberings)
        metadata = (torch.arange(seeds.numel()) if index.input_id is None else index.input_id, index.time)
        if not self.is_heterogeneous:
            return SamplerOutput(
                all_nodes[_ONE_TYPE],
                *drawn[_ONE_RELATION],
                num_sampled_nodes=node_counts[_ONE_TYPE],
                num_sampled_edges=edge_counts[_ONE_RELATION],
                metadata=metadata,
            )
        row, col, edge = ({relation: edges[part] for relation, edges in drawn.items()} for part in range(3))
        return HeteroSamplerOutput(
            all_nodes, row, col, edge, num_sampled_nodes=node_counts, num_sampled_edges=edge_counts, metadata=metadata
        )

    def sample_from_edges(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this sampler draws neighbourhoods of nodes; it does not sample from edges")

    def _check_seeds(self, seeds: Tensor, kind: str) -> None:
        if kind not in self._counts:
            raise ValueError(unknown_name("type of nodes", kind, self._counts))
        count = self._counts[kind]
        if seeds.numel() and (int(seeds.min()) < 0 or int(seeds.max()) >= count):
            raise ValueError(
                f"`input_nodes` must lie in [0, {count - 1}] (the graph has {count} nodes), got "
                f"{int(seeds.min())} to {int(seeds.max())}"
            )

    def _numberings(self) -> dict[str, Numbering]:
        native = next(iter(self._in_edges.values())).native
        return {name: Numbering(count, native) for name, count in self._counts.items()}


def derived_seed(*parts: bytes | int) -> int:
    """A 64-bit seed from others, and from what else must change it."""
    data = b"".join(part if isinstance(part, bytes) else struct.pack("<q", part) for part in parts)
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little", signed=True)


def _edge_index(store: Any) -> Tensor:
    edge_index = store.get("edge_index")
    if edge_index is None:
        raise ValueError("sampling needs a graph with `edge_index`; a graph with `adj_t` has none")
    return edge_index


def _sizes_by_relation(sizes: Sizes, relations: list[EdgeType]) -> dict[EdgeType, list[int]]:
    if not isinstance(sizes, Mapping):
        sizes = dict.fromkeys(relations, sizes)
    by_relation = {relation: list(some) for relation, some in sizes.items()}
    if set(by_relation) != set(relations):
        raise ValueError(f"`num_neighbors` must have the relations {relations}, got {list(by_relation)}")
    lengths = {len(some) for some in by_relation.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"`num_neighbors` must have one number per hop, as many for each relation, got {sizes}")
    for some in by_relation.values():
        if any(isinstance(size, bool) or not isinstance(size, int) or size < -1 for size in some):
            raise ValueError(f"`num_neighbors` must be whole numbers, or -1 for all neighbours, got {some}")
    return by_relation
