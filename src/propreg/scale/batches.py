"""One batch from its number: what a loader, or its worker processes, call."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.scale.numpy_sampler import NumpySampler
from propreg.scale.outer import Outer, edges_into, some_edges_into
from propreg.scale.randomness import distinct_numbers, numpy_generator, torch_generator
from propreg.scale.regularizer import MiniBatchPReg
from propreg.scale.sample import Sample
from propreg.scale.source import Source
from propreg.scale.torch_sampler import TorchSampler

_TRIALS = 4
_ORDER, _TRIAL = 1, 2  # keys of what is drawn beside batches


class Batches:
    """The batches of a graph; ``batches[epoch, number, seeds]`` is one, as the attributes of a ``Data``."""

    def __init__(self, source: Source, num_neighbors: Sequence[int], *, replace: bool, seed: int) -> None:
        self._source, self._seed = source, seed
        self._sample = self._sampler(num_neighbors, replace=replace)
        self._nodes = {"degree": source.degree(False).float(), **source.nodes}
        self._preg: MiniBatchPReg | None = None
        self.preg_seeds = 0

    def choose(self, preg: MiniBatchPReg, seeds: Tensor) -> None:
        """Let each batch hold nodes for ``preg``: as many as it asks for, or as its cost allows around ``seeds``."""
        o, source = preg.options, self._source
        if preg.num_neighbors > 0:
            _check_estimable(source, o.add_self_loops)
        self._preg = preg
        self._degree = source.degree(o.add_self_loops)

        def work(count: int) -> tuple[int, int]:
            self.preg_seeds = count
            drawn = [self._drawn(seeds, self._rng(_TRIAL, trial))[0] for trial in range(_TRIALS)]
            return sum(len(sample.nodes) for sample in drawn), sum(len(sample.edge) for sample in drawn)

        most = source.num_nodes
        wanted = most_within(preg.cost, work, most) if preg.seeds is None else preg.seeds
        self.preg_seeds = min(wanted, most)

    def order(self, count: int, epoch: int) -> Tensor:
        """The order of the seeds in an epoch."""
        rng = self._rng(_ORDER, epoch)
        if isinstance(rng, torch.Generator):
            return torch.randperm(count, generator=rng, device=rng.device)
        return torch.from_numpy(rng.permutation(count))

    def __getitem__(self, task: tuple[int, int, Tensor | NDArray[np.int64]]) -> dict[str, Any]:
        epoch, number, seeds = task
        seeds = seeds if isinstance(seeds, Tensor) else torch.from_numpy(seeds)
        sample, outer = self._drawn(seeds, self._rng(0, epoch, number))
        content: dict[str, Any] = {key: value[sample.nodes] for key, value in self._nodes.items()}
        content |= {"edge_index": sample.edge_index, "n_id": sample.nodes, "batch_size": len(seeds)}
        content |= {"num_sampled_nodes": sample.num_nodes, "num_sampled_edges": sample.num_edges}
        if self._source.weight is not None:
            content["edge_weight"] = self._source.weight[sample.edge]
        return content if outer is None else content | self._for_preg(sample, outer)

    def _drawn(self, seeds: Tensor, rng: Any) -> tuple[Sample, Outer | None]:
        """The neighborhoods of the seeds, and with P-reg of its nodes and the sources of the edges into them."""
        if self._preg is None or not self.preg_seeds:
            return self._sample(seeds, rng, None), None
        start, k = self._source.start, self._preg.num_neighbors
        own = distinct_numbers(self.preg_seeds, self._source.num_nodes, rng)
        doubled = self._preg.options.phi != "squared_error"
        outer = edges_into(start, own) if k < 0 else some_edges_into(start, own, k, rng, doubled=doubled)
        roots = torch.cat([own, self._source.source[outer.edge].long()])
        return self._sample(seeds, rng, roots), outer

    def _for_preg(self, sample: Sample, outer: Outer) -> dict[str, Any]:
        """A row for each own node, and one for each edge into them: that of its source, which may come repeatedly."""
        assert self._preg is not None  # a batch that has them was drawn for it
        count, nodes = self.preg_seeds, sample.nodes[sample.roots]
        source = torch.arange(count, len(nodes), device=nodes.device)
        if self._preg.options.add_self_loops:  # a loop of its own leads to the same row
            source = torch.where(nodes[count:] == outer.own[outer.target], outer.target, source)
        content = {
            "preg_rows": sample.roots,
            "preg_seeds": count,
            "preg_edge_index": torch.stack([source, outer.target]),
            "preg_degree": self._degree[nodes],
        }
        if self._source.weight is not None:
            content["preg_edge_weight"] = self._source.weight[outer.edge]
        if outer.rank is not None:
            content |= {"preg_rank": outer.rank, "preg_level": outer.level, "preg_in_edges": outer.in_edges}
        return content

    def _sampler(
        self, num_neighbors: Sequence[int], *, replace: bool
    ) -> Callable[[Tensor, Any, Tensor | None], Sample]:
        source = self._source
        if source.start.device.type == "cpu":
            return NumpySampler(source.edges(), num_neighbors, replace=replace)
        return TorchSampler(source.start, source.source, num_neighbors, replace=replace)

    def _rng(self, *key: int) -> np.random.Generator | torch.Generator:
        device = self._source.start.device
        key = (self._seed, *key)
        return numpy_generator(key) if device.type == "cpu" else torch_generator(key, device)


def most_within(cost: float, work: Callable[[int], tuple[float, ...]], most: int) -> int:
    """The largest count, at least 1, none of whose kinds of work is more than ``cost`` times that of count 0.

    Example:
        >>> most_within(1.25, lambda count: (1000 + 10 * count, 1000 + count), most=500)
        25
    """
    limits = [cost * each for each in work(0)]

    def fits(count: int) -> bool:
        return all(each <= limit for each, limit in zip(work(count), limits, strict=True))

    low, high = 1, 2
    while high <= most and fits(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _check_estimable(source: Source, add_self_loops: bool) -> None:
    """With sampled neighbors, refuse what the drawn edges of a seed could not stand for."""
    if source.weight is not None and bool((source.weight == 0).any()):
        raise ValueError(
            "num_neighbors of a MiniBatchPReg needs edges of positive weight: drop those of weight 0, or keep all "
            "neighbors with num_neighbors=-1."
        )
    if add_self_loops and bool((source.source == torch.repeat_interleave(source.start.diff())).any()):
        raise ValueError(
            "num_neighbors of a MiniBatchPReg with add_self_loops=True needs a graph without loops of its own: drop "
            "them, or keep all neighbors with num_neighbors=-1."
        )
