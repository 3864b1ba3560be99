"""What a trained model gives for a large graph, without sampling: layer by layer, or on whole neighborhoods."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from propreg.engine.models.architecture import Layered
from propreg.engine.models.network import Draw, Network, Parameters, no_dropout
from propreg.engine.models.user_module import OwnNetwork
from propreg.scale.blocks import Block, LargeGraph, Neighborhoods

AT_ONCE = 1 << 26  # numbers of a layer of all nodes that are in memory at a time, where one run has not more

Logits = Callable[[Parameters], Tensor]
"""Of the parameters [R, …] the logits of some nodes [R, n, C]."""


class LayerByLayer:
    """Computes each layer for all nodes before the next one: no node is computed twice.

    Args:
        whole: The graph.
        layered: The model.
        nodes: The nodes whose logits are wanted.
    """

    def __init__(self, whole: LargeGraph, layered: Layered, nodes: Tensor) -> None:
        self.whole, self.layered, hops = whole, layered, min(1, layered.hops)
        self.inner = Neighborhoods(whole, torch.arange(whole.num_nodes), hops)
        # Of most nodes: all, whose neighborhoods are at hand, and then these.
        self.chosen = nodes if 2 * len(nodes) > whole.num_nodes else None
        self.last = self.inner if self.chosen is not None else Neighborhoods(whole, nodes, hops)

    @torch.no_grad()
    def __call__(self, p: Parameters) -> Tensor:
        """The logits [R, n, C], of few runs at a time where the graph is large."""
        runs = max(1, AT_ONCE // (self.whole.num_nodes * max(t.shape[-1] for t in p.values())))
        count = len(next(iter(p.values())))
        parts = [{name: t[i : i + runs] for name, t in p.items()} for i in range(0, count, runs)]
        return torch.cat([self._logits(part) for part in parts])

    def _logits(self, p: Parameters) -> Tensor:
        h: Tensor | None = None
        nodes, last = self.whole.num_nodes, len(self.layered.rows) - 1
        for i, (rows, edges) in enumerate(zip(self.layered.rows, self.layered.edges, strict=True)):
            parts = (rows(b, p, None if h is None else _some(h, b)) for b in self.whole.without_edges())
            mapped, h = _joined(parts, nodes), None
            around = self.last if i == last else self.inner
            h = _joined((edges(b, p, _some(mapped, b))[:, : len(part)] for part, b in around), around.count)
        assert h is not None
        return h if self.chosen is None else h[:, self.chosen]


class OnNeighborhoods:
    """Runs a module of the user's own on the whole neighborhoods of some nodes.

    Args:
        whole: The graph.
        network: The module.
        hops: How far away the nodes are that its logits depend on.
        nodes: The nodes whose logits are wanted.
    """

    def __init__(self, whole: LargeGraph, network: OwnNetwork, hops: int, nodes: Tensor) -> None:
        self.network, self.around = network, Neighborhoods(whole, nodes, hops)

    @torch.no_grad()
    def __call__(self, p: Parameters) -> Tensor:
        """The logits [R, n, C]."""

        def parts() -> Iterator[Tensor]:
            for part, block in self.around:
                self.network.on(block.tensors())
                yield self.network.finish(p, None, no_dropout)[:, : len(part)]

        return _joined(parts(), self.around.count)


class Evaluated(Network):
    """A network whose evaluations are of some nodes of a large graph, for :class:`.training.epoch.Epoch`."""

    def __init__(self, network: Network, logits: Logits) -> None:
        self.network, self.logits = network, logits
        self.finite = torch.empty(0)

    def buffers(self) -> Parameters:
        """Those of the network."""
        return self.network.buffers()

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:  # noqa: ARG002
        """The logits [R, n, C]."""
        z = self.logits(p)
        self.finite = z.isfinite().all(2).all(1)
        return z


def _some(h: Tensor, block: Block) -> Tensor:
    """The rows of a block."""
    return h.index_select(1, block.nodes.to(h.device))


def _joined(parts: Iterable[Tensor], count: int) -> Tensor:
    """The parts [R, …, W] in one tensor [R, count, W], without having them twice."""
    out, first = torch.empty(0), 0
    for part in parts:
        out = part.new_empty(len(part), count, part.shape[2]) if first == 0 else out
        out[:, first : first + part.shape[1]] = part
        first += part.shape[1]
    return out
