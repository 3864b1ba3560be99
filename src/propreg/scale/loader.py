"""Mini-batches for models that take PyG's ``Data``."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from propreg.data.own.pyg import data_class
from propreg.scale.batches import Batches
from propreg.scale.regularizer import MiniBatchPReg
from propreg.scale.source import source_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Loader:
    """Batches of seeds with sampled neighborhoods, as PyG's ``NeighborLoader`` yields them, without compiled extras.

    A batch is a ``Data``: its first ``batch_size`` nodes are the seeds; ``n_id`` numbers all nodes in the whole graph;
    ``edge_index``, ``x``, ``y`` and whatever else the graph has for each node are theirs, ``edge_weight`` as well;
    ``degree`` is the weight of each node's edges in the whole graph; ``num_sampled_nodes`` and ``num_sampled_edges``
    count by hop. Batches depend on ``seed``, the epoch and their number alone. A graph on a GPU is sampled there.

    Args:
        data: A PyG ``Data``, or a folder that ``propreg data convert`` wrote; then only what batches need is read.
        num_neighbors: For each hop the number of edges into a node that are drawn, −1 for all.
        batch_size: Seeds in a batch.
        input_nodes: The seeds of an epoch, as a mask or numbers; None for all nodes.
        preg: The regularizer for which each batch holds extra nodes.
        replace: Draw neighbors with replacement.
        shuffle: Draw a new order in each epoch.
        seed: The seed of all draws.
        num_workers: Processes that prepare batches ahead; on a CPU only.
        rank, world_size: Yield only every ``world_size``-th batch; all ranks get the same number.

    Attributes:
        epoch: The number of the next epoch, from 0; set it to resume a training.

    Example:
        >>> from torch_geometric.data import Data
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> data = Data(x=torch.eye(3), edge_index=path, y=torch.tensor([0, 1, 0]))
        >>> batch = next(iter(Loader(data, [-1], batch_size=1, input_nodes=torch.tensor([0]))))
        >>> batch.n_id.tolist(), batch.edge_index.tolist(), batch.degree.tolist()
        ([0, 1], [[1], [0]], [1.0, 2.0])
    """

    def __init__(
        self,
        data: "Data | str | os.PathLike[str]",
        num_neighbors: Sequence[int],
        *,
        batch_size: int = 1024,
        input_nodes: Tensor | None = None,
        preg: MiniBatchPReg | None = None,
        replace: bool = False,
        shuffle: bool = True,
        seed: int = 0,
        num_workers: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        for name, value, low in (
            ("batch_size", batch_size, 1),
            ("seed", seed, 0),
            ("num_workers", num_workers, 0),
            ("rank", rank, 0),
            ("world_size", world_size, rank + 1),
        ):
            if type(value) is not int or value < low:
                raise ValueError(f"{name} must be a whole number of at least {low}, got {value!r}.")
        self._source = source_of(data)
        self._data = data_class()  # before the first batch, should PyG be missing
        self._nodes = _numbers(input_nodes, self._source.num_nodes).to(self._source.start.device)
        self.batch_size, self.shuffle, self.seed, self.epoch = batch_size, shuffle, seed, 0
        self._rank, self._world, self._workers = rank, world_size, num_workers
        if len(self._nodes) < batch_size * (world_size - 1) + 1:
            raise ValueError(
                f"input_nodes holds {len(self._nodes)} nodes, too few for {world_size} batches of {batch_size}: take "
                "smaller batches or fewer processes."
            )
        self._batches = Batches(self._source, num_neighbors, replace=replace, seed=seed)
        if preg is not None:
            self._batches.choose(preg, self._nodes[:: max(1, len(self._nodes) // batch_size)][:batch_size])
        if num_workers and self._source.start.is_cuda:
            raise ValueError("num_workers is for graphs on a CPU: a graph on a GPU is sampled there, pass 0.")

    @property
    def preg_seeds(self) -> int:
        """How many nodes each batch holds for ``preg``."""
        return self._batches.preg_seeds

    def __len__(self) -> int:
        return -(-len(self._nodes) // self.batch_size) // self._world

    def __iter__(self) -> "Iterator[Data]":
        epoch, self.epoch = self.epoch, self.epoch + 1
        for content in self._contents(epoch):
            self._source.check()
            yield self._data(**content)

    def _contents(self, epoch: int) -> Iterator[dict[str, Any]]:
        order = self._batches.order(len(self._nodes), epoch) if self.shuffle else slice(None)
        nodes = self._nodes[order]
        numbers = range(self._rank, len(self) * self._world, self._world)
        if not self._workers:
            for number in numbers:
                yield self._batches[epoch, number, nodes[number * self.batch_size :][: self.batch_size]]
            return
        tasks = [(epoch, i, nodes[i * self.batch_size :][: self.batch_size].numpy()) for i in numbers]
        yield from torch.utils.data.DataLoader(
            self._batches,  # type: ignore[arg-type]
            batch_size=None,
            sampler=tasks,
            num_workers=min(self._workers, len(tasks)),
            generator=torch.Generator(),  # DataLoader would draw from torch's own
        )


def _numbers(nodes: Tensor | None, count: int) -> Tensor:
    """A mask or numbers as numbers."""
    if nodes is None:
        return torch.arange(count)
    if not isinstance(nodes, Tensor) or nodes.dim() != 1 or nodes.dtype not in (torch.bool, torch.int64):
        got = f"{nodes.dtype} {list(nodes.shape)}" if isinstance(nodes, Tensor) else f"a {type(nodes).__name__}"
        raise TypeError(f"input_nodes must be a bool mask or int64 numbers of nodes, got {got}.")
    if nodes.dtype == torch.bool:
        if len(nodes) != count:
            raise ValueError(f"input_nodes is a mask of {len(nodes)} entries for {count} nodes: give one for each.")
        nodes = nodes.nonzero().flatten()
    if not len(nodes):
        raise ValueError("input_nodes is empty: there is nothing to train on.")
    low, high = (int(v) for v in nodes.aminmax())
    if low < 0 or high >= count:
        raise ValueError(f"input_nodes holds node {low if low < 0 else high}: node numbers go from 0 to {count - 1}.")
    return nodes
