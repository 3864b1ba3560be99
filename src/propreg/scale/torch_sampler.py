"""Neighbor sampling in torch, for a graph on a GPU: every shape of a sampled hop follows from the number of seeds.

Nothing waits for the GPU between hops: candidates that a hop does not need stay in place and are masked, and the
host learns the sizes once, at the end. A hop with all neighbors (−1) has to ask how many there are.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from propreg.scale.sample import Sample, checked_fanouts


class TorchSampler:
    """What :class:`propreg.scale.numpy_sampler.NumpySampler` does, on the device of the graph.

    Args:
        start, source: The graph as :class:`propreg.data.csr.InEdges` has it, as tensors.
        num_neighbors: For each hop the number of edges into a node, or −1 for all.
        replace: Draw each neighbor anew; else a node that has no more neighbors than are drawn keeps each once.

    Example:
        >>> start, source = torch.tensor([0, 1, 3, 4]), torch.tensor([1, 0, 2, 1])
        >>> sample = TorchSampler(start, source, [-1])(torch.tensor([1]), torch.Generator())
        >>> sample.nodes.tolist(), sample.edge_index.tolist()
        ([1, 0, 2], [[1, 2], [0, 0]])
    """

    def __init__(self, start: Tensor, source: Tensor, num_neighbors: Sequence[int], *, replace: bool = False) -> None:
        self.start, self.source = start, source if len(source) else source.new_zeros(1)  # what padding reads
        self.num_neighbors, self.replace = checked_fanouts(num_neighbors), replace
        self._nodes = len(start) - 1
        # One entry more than there are nodes: what does not count is written there.
        self._row = torch.full((self._nodes + 1,), -1, dtype=torch.int32, device=start.device)
        # A number in torch.where is a launch of its own on a GPU: these lie there.
        self._spare, self._zero, self._none, self._no_row = (
            torch.tensor(number, dtype=dtype, device=start.device)
            for number, dtype in ((self._nodes, None), (0, None), (-1, None), (-1, torch.int32))
        )

    def __call__(self, seeds: Tensor, generator: torch.Generator, roots: Tensor | None = None) -> Sample:
        """The subgraph around seeds, which may repeat, and other roots; equal generators give equal samples."""
        try:
            return self._sampled(seeds, generator, seeds[:0] if roots is None else roots)
        except BaseException:
            self._row.fill_(-1)
            raise

    def _sampled(self, seeds: Tensor, generator: torch.Generator, others: Tensor) -> Sample:
        row, device = self._row, seeds.device
        row.scatter_reduce_(0, seeds, torch.arange(len(seeds), dtype=torch.int32, device=device), "amax")
        count = torch.full((), len(seeds), device=device)
        fresh, numbers, count = self._numbered(others, count)
        nodes, rows = torch.cat([seeds, fresh]), torch.cat([torch.arange(len(seeds), device=device), numbers])
        root_rows = row[others].long()
        kept, kept_rows, counts, hops = [nodes], [rows], [count], []
        for k in self.num_neighbors:
            target, edge, valid = self._drawn(nodes, rows, k, generator)
            # Rows are read before the next hop's are written, and stay; a padded edge reads the spare entry.
            reached = torch.where(valid, self.source[edge].long(), self._spare)
            nodes, rows, count = self._numbered(reached, count)
            hops.append((row[reached].long(), target, edge, valid))
            kept.append(nodes)
            kept_rows.append(rows)
            counts.append(count)
        sample = self._cut(torch.cat(kept), torch.cat(kept_rows), counts, hops, root_rows)
        row.index_fill_(0, torch.cat(kept), -1)
        return sample

    def _numbered(self, reached: Tensor, count: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Number the nodes that have no row; the spare node, row −1, in the place of each other. And the new count."""
        row = self._row
        fresh = (row[reached] < 0) & (reached != self._nodes)
        own = torch.arange(len(reached), dtype=torch.int32, device=reached.device)
        # Of equal nodes the last is kept: a maximum does not depend on the order in which a GPU writes. Nodes that have
        # a row keep it, as −1 is no maximum; writing them all to the spare entry would make a GPU do it one by one.
        row.scatter_reduce_(0, reached, torch.where(fresh, own, self._no_row), "amax")
        first = fresh & (row[reached] == own)
        rows = torch.where(first, count + first.cumsum(0) - 1, self._none)
        nodes = torch.where(first, reached, self._spare)
        row.index_copy_(0, nodes, rows.int())  # all that write the spare entry write −1
        return nodes, rows, count + first.sum()

    def _drawn(self, nodes: Tensor, rows: Tensor, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Target rows, places and validity of the drawn edges; the spare node has none."""
        inside = nodes.clamp(max=self._nodes - 1)
        start = self.start[inside]
        degree = torch.where(rows >= 0, self.start[inside + 1] - start, self._zero)
        if k < 0:
            ends = degree.cumsum(0)
            size = int(ends[-1]) if len(ends) else 0
            target = torch.repeat_interleave(rows, degree, output_size=size)
            shift = torch.repeat_interleave(start - ends + degree, degree, output_size=size)
            return target, torch.arange(size, device=nodes.device) + shift, torch.ones_like(target, dtype=torch.bool)
        offset, valid = self._offsets(degree, k, generator)
        edge = torch.where(valid, start + offset, self._zero)
        return rows.expand(k, -1).reshape(-1), edge.reshape(-1), valid.reshape(-1)

    def _offsets(self, degree: Tensor, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Which of its edges each node keeps, [k, n], and which entries count."""
        column = torch.arange(k, device=degree.device).unsqueeze(-1)
        drawn = torch.rand((k, len(degree)), generator=generator, device=degree.device, dtype=torch.float64)
        if self.replace:
            return (drawn * degree).long(), (degree > 0).expand(k, -1)
        top = degree - k + column
        chosen = (drawn * (top + 1)).long()
        for j in range(1, k):  # Floyd's algorithm: every subset is equally likely
            taken = (chosen[:j] == chosen[j]).any(dim=0)
            torch.where(taken, top[j], chosen[j], out=chosen[j])
        return torch.where(degree > k, chosen, column), column < degree

    def _cut(
        self,
        nodes: Tensor,
        rows: Tensor,
        counts: list[Tensor],
        hops: list[tuple[Tensor, Tensor, Tensor, Tensor]],
        roots: Tensor,
    ) -> Sample:
        """Leave out what does not count; here the host waits."""
        columns = [torch.cat(parts) for parts in zip(*hops, strict=True)] if hops else []
        totals = torch.stack([*counts, *(valid.sum() for *_, valid in hops)]).tolist()
        reached, num_edges = totals[: len(counts)], totals[len(counts) :]
        num_nodes = [here - before for here, before in zip(reached, [0, *reached[:-1]], strict=True)]
        # Rows say where each node goes: no search for the valid ones, whose number would have to be asked again.
        table = nodes.new_empty(reached[-1] + 1).index_copy_(0, torch.where(rows >= 0, rows, reached[-1]), nodes)
        if not columns:
            empty = nodes.new_empty(0)
            return Sample(table[:-1], nodes.new_empty(2, 0), empty, roots, num_nodes, num_edges)
        source, target, edge, valid = columns
        place = torch.where(valid, valid.cumsum(0) - 1, sum(num_edges))
        cut = edge.new_empty(3, sum(num_edges) + 1).index_copy_(1, place, torch.stack([source, target, edge]))
        return Sample(table[:-1], cut[:2, :-1], cut[2, :-1], roots, num_nodes, num_edges)


def in_edges(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Start, sources and weights of :class:`propreg.data.csr.InEdges`, on the device of the edges.

    Example:
        >>> in_edges(torch.tensor([[0, 2, 1], [1, 1, 0]]), 3, None)
        (tensor([0, 1, 3, 3]), tensor([1, 0, 2], dtype=torch.int32), None)
    """
    target, order = edge_index[1].sort(stable=True)
    start = torch.searchsorted(target, torch.arange(num_nodes + 1, device=target.device))
    narrow = torch.int32 if num_nodes < 1 << 31 else torch.int64
    return start, edge_index[0][order].to(narrow), None if edge_weight is None else edge_weight[order]
