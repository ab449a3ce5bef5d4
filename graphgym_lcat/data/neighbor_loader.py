"""Mini-batches of sampled neighbourhoods, prepared in a thread while the batch before trains."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import NodeLoader
from torch_geometric.typing import InputNodes

from graphgym_lcat.data.neighbor_sampler import NeighborSampler, Sizes, derived_seed


class NeighborLoader(NodeLoader):
    """The arguments and batches of :class:`torch_geometric.loader.NeighborLoader`, without pyg-lib and torch-sparse.

    A batch is a ``Data`` or ``HeteroData`` with the nodes that it was sampled for first. It holds ``n_id``, ``e_id``, ``input_id``,
    ``batch_size``, ``num_sampled_nodes`` and ``num_sampled_edges``. The order of the nodes and all samples are functions of
    ``seed``, the epoch and the number of the batch: training that stopped within an epoch continues with :meth:`batches`.

    .. code-block:: python

        loader = NeighborLoader(data, [15, 10, 5], data.train_mask, batch_size=1024, shuffle=True)
        for batch in loader:  # each loop is a new epoch
            loss = F.cross_entropy(model(batch.x, batch.edge_index)[: batch.batch_size], batch.y[: batch.batch_size])

    Args:
        data: The graph.
        num_neighbors: Edges to draw per node in each hop, −1 for all; in a heterogeneous graph, for all relations or per relation.
        input_nodes: The nodes to make batches of: numbers or a mask, by default all; with their type in a heterogeneous graph.
        batch_size: Nodes per batch.
        shuffle: Visit the nodes in another order in every epoch.
        drop_last: Leave out the last batch if it is smaller.
        transform: A function of a batch that returns the batch to use.
        seed: Seed of order and samples.
        prefetch: Batches to prepare in advance; 0 prepares each when it is asked for.
        threads: Threads that sample.

    Attributes:
        epoch: The number of the next epoch.
    """

    def __init__(
        self,
        data: Data | HeteroData,
        num_neighbors: Sizes,
        input_nodes: InputNodes = None,
        batch_size: int = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        transform: Callable[[Any], Any] | None = None,
        *,
        seed: int = 0,
        prefetch: int = 2,
        threads: int = 1,
    ):
        sampler = NeighborSampler(data, num_neighbors, seed=seed, threads=threads)
        super().__init__(
            data,
            sampler,
            input_nodes=input_nodes,
            transform=transform,
            filter_per_worker=False,
            batch_size=batch_size,
            drop_last=drop_last,
        )
        self.shuffle = shuffle
        self.prefetch = prefetch
        self.epoch = 0

    def __iter__(self) -> Iterator[Any]:
        self.epoch += 1
        return self.batches(self.epoch - 1)

    def batches(self, epoch: int, first: int = 0) -> Iterator[Any]:
        """Yield the batches of an epoch, from number ``first`` on."""
        order = self._order(epoch)
        size: int = self.batch_size

        def prepare(number: int) -> Any:
            chosen = self.input_data[order[number * size : (number + 1) * size]]
            return self.filter_fn(self.node_sampler.sample_from_nodes(chosen, epoch=epoch))

        return _prefetched(prepare, range(first, len(self)), self.prefetch)

    def _order(self, epoch: int) -> Tensor:
        count = self.input_data.node.numel()
        if not self.shuffle:
            return torch.arange(count)
        generator = torch.Generator().manual_seed(derived_seed(self.node_sampler.seed, epoch))
        return torch.randperm(count, generator=generator)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} batches of up to {self.batch_size} nodes)"


def _prefetched(prepare: Callable[[int], Any], numbers: range, ahead: int) -> Iterator[Any]:
    """Yield ``prepare(number)`` for each number; a thread prepares the next ``ahead`` of them in the meantime."""
    if ahead <= 0:
        yield from map(prepare, numbers)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="lcat-sampler") as pool:
        waiting: deque[Future[Any]] = deque()
        try:
            for number in numbers:
                waiting.append(pool.submit(prepare, number))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
