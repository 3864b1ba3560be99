"""Training in mini-batches: the runs of a split and a seed, at all strengths, share the sampled subgraphs."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.engine import Method, Model, Problem, Protocol, Replica, Result
from propreg.engine.models.architecture import Layered
from propreg.engine.models.network import Draw, Network, Parameters
from propreg.engine.models.user_module import OwnNetwork
from propreg.engine.ops.random import stream_key
from propreg.engine.regularizers.plain import PlainTerm
from propreg.engine.tasks.node import Targets
from propreg.engine.tasks.values import Values
from propreg.engine.torch_modes import seed_torch
from propreg.engine.training.batches import CPU_GROUP
from propreg.engine.training.epoch import Epoch, step
from propreg.engine.training.objective import Objective, RegularizedLoss
from propreg.engine.training.optimizers import OPTIMIZERS
from propreg.engine.training.passes import Passes
from propreg.engine.training.phases import Phase
from propreg.engine.training.state import begin
from propreg.engine.training.stopping import RULES
from propreg.engine.training.train import Ledger
from propreg.scale.blocks import Block, LargeGraph
from propreg.scale.inference import Evaluated, LayerByLayer, Logits, OnNeighborhoods
from propreg.scale.loader import Loader
from propreg.scale.reach import Reach
from propreg.scale.regularizer import MiniBatchPReg

NEIGHBORS = 10
COST = 4.0
"""How large P-reg makes a batch, as a multiple. Few nodes make its gradient so noisy that strengths seem to do harm:
``benchmarks/scale.py`` compares with 1.25, which is right for a step's time alone.
"""


@dataclass(frozen=True)
class MiniBatches:
    """Trains replicas as :func:`propreg.engine.training.train.train` does, in steps on some of the training nodes.

    An epoch takes each training node once. Of those of a batch, and of the nodes that are drawn for P-reg, neighbors
    are sampled; validation and test nodes are evaluated without sampling. Batches depend on split and seed alone.

    Args:
        whole: The graph.
        model, method, protocol: What is trained, and how.
        size: The training nodes of a batch.
        network: The user's own module; None for the model.
        reach: That of the module.
        num_neighbors: The number of neighbors drawn for each node; −1 for all.
        cost: How many times larger P-reg makes a batch, see :class:`propreg.scale.MiniBatchPReg`.
        preg_seeds: The nodes of a batch on which P-reg is computed, in place of ``cost``.
    """

    whole: LargeGraph
    model: Model
    method: Method
    protocol: Protocol
    size: int
    network: OwnNetwork | None = None
    reach: Reach | None = None
    num_neighbors: int = NEIGHBORS
    cost: float = COST
    preg_seeds: int | None = None

    def __call__(
        self, problem: Problem, replicas: Sequence[Replica], /, *, stop: Callable[[], bool]
    ) -> Iterator[tuple[int, Result]]:
        groups: dict[tuple[str, int], list[int]] = {}
        for number, replica in enumerate(replicas):
            groups.setdefault((replica.split, replica.seed), []).append(number)
        for numbers in groups.values():
            for place, result in self._train(problem, [replicas[number] for number in numbers], stop):
                yield numbers[place], result

    @torch.no_grad()
    def logits(self, result: Result) -> Tensor:
        """The logits [N, C] of a finished run."""
        weights, logits = result.weights, self._everywhere
        if self.network is not None:
            network = self._own()
            network.base = network.module(weights, result.replica.seed)
            weights, logits = dict(network.base.named_parameters()), self.evaluation(network, self._all)
        return logits({name: w.detach().to(self.whole.problem.device)[None] for name, w in weights.items()})[0]

    @property
    def _all(self) -> Tensor:
        return torch.arange(self.whole.num_nodes)

    @cached_property
    def _everywhere(self) -> Logits:
        return self.evaluation(self.network_of(), self._all)

    def _own(self) -> OwnNetwork:
        """A copy of the user's, for a replica of its own."""
        network = copy.copy(self.network)
        assert network is not None
        network.together = False
        return network

    def loader(self, problem: Problem, like: Replica) -> Loader:
        """The batches of a split and seed."""
        preg = None
        if self.method.regularizer.masked:
            preg = MiniBatchPReg(add_self_loops=self.method.add_self_loops, cost=self.cost, seeds=self.preg_seeds)
        return Loader(
            self.whole.source,
            [self.num_neighbors] * self.hops.sampled,
            batch_size=self.size,
            input_nodes=torch.from_numpy(problem.splits[like.split].train),
            preg=preg,
            seed=stream_key(problem.digest, like, self.model, "batches"),
        )

    @property
    def hops(self) -> Reach:
        """The reach of the model."""
        if self.reach is not None:
            return self.reach
        hops = self._layered().hops
        return Reach(hops, hops)

    def _layered(self) -> Layered:
        found = self.model.architecture.layered
        if found is None:
            raise ValueError(f"model={self.model.name!r} needs the whole graph at once.")
        return found(self.model)

    def network_of(self) -> Network:
        """A network with the model's weights."""
        if self.network is not None:
            return self._own()
        one = torch.zeros(1, dtype=torch.int64)
        return Block(self.whole, one, one.new_empty(2, 0)).network(self.model)

    def evaluation(self, network: Network, nodes: Tensor) -> Logits:
        """What computes the logits of nodes, without sampling."""
        if isinstance(network, OwnNetwork):
            return OnNeighborhoods(self.whole, network, self.hops.whole, nodes)
        return LayerByLayer(self.whole, self._layered(), nodes)

    def _train(
        self, problem: Problem, replicas: Sequence[Replica], stop: Callable[[], bool]
    ) -> Iterator[tuple[int, Result]]:
        """The runs of one split and seed."""
        loader, like = self.loader(problem, replicas[0]), replicas[0]
        split = problem.splits[like.split]
        judged = np.flatnonzero(split.val | split.test)
        at_once = 1 if self.network is not None else CPU_GROUP if problem.device.type == "cpu" else len(replicas)
        numbers = [range(i, min(i + at_once, len(replicas))) for i in range(0, len(replicas), at_once)]
        logits = None if self.network is not None else self.evaluation(self.network_of(), torch.from_numpy(judged))
        parts = [Part(self, problem, [replicas[number] for number in some], judged, logits) for some in numbers]
        for epoch in range(1, self.protocol.max_epochs + 1):
            for batch in loader:
                seen = Batch(self, batch)
                for part in parts:
                    part.step(seen, epoch)
            if stop():
                return
            for some, part in zip(numbers, parts, strict=True):
                yield from ((some[place], result) for place, result in part.finished())
            left = [(some, part) for some, part in zip(numbers, parts, strict=True) if not part.ledger.all_done()]
            numbers, parts = [some for some, _ in left], [part for _, part in left]
            if not parts:
                return


class Batch:
    """A batch as the engine reads it: its subgraph, the graph of its term, and its training nodes, which come first.

    Args:
        trainer: What is trained.
        data: The batch of a loader.
    """

    def __init__(self, trainer: MiniBatches, data: Any) -> None:
        whole, nodes = trainer.whole, data.n_id
        weight = data.edge_weight if "edge_weight" in data else None
        drawn = torch.bincount(data.edge_index[1], minlength=len(nodes)).clamp(min=1)
        share = whole.counts(nodes) / drawn
        self.block = Block(whole, nodes, data.edge_index, weight, share, data.num_sampled_nodes)
        self.nodes, self.rows = nodes[: data.batch_size], data.num_sampled_nodes[0]
        problem, self.counted = whole.problem, None
        outer = Block(whole, nodes[: self.rows], nodes.new_empty(2, 0))
        if "preg_rows" in data:
            edges, own = data.preg_rows[data.preg_edge_index], data.preg_rows[: data.preg_seeds]
            weight = data.preg_edge_weight if "preg_edge_weight" in data else None
            outer = Block(whole, outer.nodes, edges, weight)
            counted = torch.zeros(self.rows, dtype=problem.dtype)
            counted[own] = 1 / data.preg_seeds
            self.counted = counted.to(problem.device)
        self.term = outer.regularizer(trainer.method)
        self.network = None if trainer.network is not None else self.block.network(trainer.model)
        self.tensors = self.block.tensors() if trainer.network is not None else {}


class Rows(Network):
    """A network of which only the first rows are wanted."""

    def __init__(self, network: Network, rows: int) -> None:
        self.network, self.rows = network, rows

    def begin(self, p: Parameters) -> Tensor | None:
        """What the network computes."""
        return self.network.begin(p)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """The logits of these rows."""
        z = self.network.finish(p, begun, draw)
        self.auxiliary = self.network.auxiliary
        return z[:, : self.rows].contiguous()


class Part:
    """Some of the runs of a split and seed: those that one program computes.

    Args:
        trainer: What is trained.
        problem: The graph with its splits.
        replicas: The runs.
        judged: The validation and test nodes of the split, rising.
        logits: What computes their logits; None: a module of the user's own does, which is this part's.
    """

    def __init__(
        self,
        trainer: MiniBatches,
        problem: Problem,
        replicas: Sequence[Replica],
        judged: NDArray[np.int64],
        logits: Logits | None,
    ) -> None:
        protocol, rule = trainer.protocol, RULES[trainer.protocol.rule]
        self.trainer, self.problem, self.method = trainer, problem, trainer.method
        self.network = trainer.network_of()
        optimizer = self.network.optimizer or OPTIMIZERS[protocol.optimizer]
        self.state = state = begin(problem, self.network, trainer.model, replicas, protocol, optimizer=optimizer)
        nodes = torch.from_numpy(judged)
        place = nodes.to(problem.device)
        state.val, state.test = ((torch.searchsorted(place, each), real) for each, real in (state.val, state.test))
        self.targets = state.targets  # those of all training nodes, of which rules read the units of numbers
        if isinstance(self.targets, Values):
            first = {name: getattr(self.targets, name)[:, :1] * 0 for name in ("nodes", "classes", "weights")}
            self.targets = replace(self.targets, **first, values=self.targets.values[place])
        self.importance = self._importance(problem, replicas[0])
        self.evaluated = Evaluated(self.network, logits or trainer.evaluation(self.network, nodes))
        phase = Phase(self.evaluated, state, Objective(), [rule], protocol.max_epochs)
        self.epoch = Epoch(phase, problem.y[place], keep_weights=True)
        self.ledger = Ledger(problem, replicas, keep_history=True)
        self.ledger.begin([rule], protocol.max_epochs)
        self.stream = stream_key(problem.digest, replicas[0], trainer.model, "steps") >> 1
        self.steps, self.loss = 0, torch.zeros_like(state.loss)

    def step(self, batch: Batch, epoch: int) -> None:
        """One step of the optimizer."""
        state, network = self.state, batch.network or self.network
        self.steps += 1
        if isinstance(network, OwnNetwork):
            network.on(batch.tensors)
            seed_torch((self.stream + self.steps) % 2**63, self.problem.device)  # strengths drop the same
        plain = isinstance(network, OwnNetwork) and not any(state.strength.tolist())
        plain = plain and self.method.regularizer.passes(self.method) == 1
        objective = RegularizedLoss(*((Method(), PlainTerm()) if plain else (self.method, batch.term)))
        state.targets, state.counted = self._targets(batch), batch.counted
        state.keys.advance(self.steps)
        state.optimizer.advance()
        objective.advance(state, epoch)
        rows = Rows(network, batch.rows)
        with torch.enable_grad():
            loss = step(objective, state, Passes(rows, state, rows.begin(state.tensors), objective.passes))
        self.loss += loss * (len(batch.nodes) / len(self.trained))

    def finished(self) -> Iterator[tuple[int, Result]]:
        """Evaluate after an epoch; the runs that it has ended, by their place."""
        state, ledger = self.state, self.ledger
        state.targets, state.counted = self.targets, None
        state.loss.copy_(self.loss)
        numbers = self.epoch.look()
        finite = torch.where(self.evaluated.finite, 0.0, torch.nan)
        ledger.write([numbers._replace(loss=self.loss)], finite)
        rows = ledger.finished(True)
        yield from [ledger.result(row, state, True) for row in rows]
        if rows and not ledger.all_done():
            kept = ledger.compact()
            state.keep(kept)
            self.targets = state.targets
        self.loss = torch.zeros_like(state.loss)

    def _importance(self, problem: Problem, like: Replica) -> Tensor:
        """The weight of each node in a mean over training nodes, 1 unless classes are balanced. [N]."""
        known = problem.targets([like])
        self.trained = known.nodes[0]
        return known.weights.new_zeros(problem.num_nodes).index_copy(
            0, self.trained, known.weights[0] * len(self.trained)
        )

    def _targets(self, batch: Batch) -> Targets:
        """The training nodes of a batch, for each replica."""
        nodes, runs = batch.nodes.to(self.problem.device), len(self.state.strength)
        rows = torch.arange(len(nodes), device=nodes.device).repeat(runs, 1)
        classes = self.problem.y[nodes].clamp(min=0).repeat(runs, 1)
        weights = (self.importance[nodes] / len(nodes)).repeat(runs, 1)
        if not isinstance(self.targets, Values):
            return Targets(rows, classes, weights)
        assert self.problem.values is not None
        units, task = self.targets.units, self.targets.task
        return Values(rows, classes, weights, self.problem.values[nodes], units, task)
