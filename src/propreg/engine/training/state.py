"""What changes while a batch trains, and shrinks when replicas leave it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.engine.models.network import MakeOptimizer, Network, Optimizer, Parameters
from propreg.engine.ops.adam import Adam
from propreg.engine.ops.dropout import MaskKeys, Rates
from propreg.engine.ops.random import generator, stream_key
from propreg.engine.spec import Model, Protocol, Replica
from propreg.engine.tasks.node import Problem, Targets
from propreg.engine.training.memory import warm_up_malloc
from propreg.engine.training.stopping import Stopper

Judged = tuple[Tensor, Tensor]
RATES = {"input": "input_dropout", "attention": "attention_dropout"}
"""The settings of a model that are dropout rates, by kind of place."""


@dataclass
class State:
    """A network of the replicas that still train; ``number`` is each replica's place in the input.

    ``parameters`` are trained if they require a gradient; others are constants, or statistics that a training pass
    updates in place. ``held`` is what a procedure keeps per replica [R, …] for its objective and network, by name.
    """

    number: NDArray[np.int64]
    parameters: Parameters
    optimizer: Optimizer
    targets: Targets
    val: Judged
    test: Judged
    strength: Tensor
    current: Tensor  # the strength in this epoch
    rates: dict[str, Rates]
    keys: MaskKeys
    counted: Tensor | None
    patience: Tensor
    loss: Tensor  # of the last step
    held: Parameters = field(default_factory=dict)
    epochs: int = 0  # of earlier phases: mask keys go on from here
    stopper: Stopper | None = None  # on the device, where something of the reported epoch is kept:
    best: Parameters = field(default_factory=dict)  # weights and buffers,
    moments: Parameters = field(default_factory=dict)  # the optimizer's tensors,
    logits: Parameters = field(default_factory=dict)  # and the logits of validation and test nodes, by rule

    @property
    def tensors(self) -> Parameters:
        """The tensors that a network may read."""
        return self.parameters | self.held if self.held else self.parameters

    def keep(self, kept: NDArray[np.int64]) -> None:
        """Compact to these replicas: the others leave the batch."""
        index = torch.from_numpy(kept).to(self.strength.device)
        self.number, self.keys = self.number[kept], self.keys.keep(kept)
        self.parameters = {
            name: p.detach()[index].requires_grad_(p.requires_grad) for name, p in self.parameters.items()
        }
        self.optimizer.keep(index)
        self.targets = self.targets.keep(index)
        self.val, self.test = ((nodes[index], real[index]) for nodes, real in (self.val, self.test))
        self.rates = {place: rates.keep(index) for place, rates in self.rates.items()}
        self.counted = None if self.counted is None else self.counted[index]
        for name in ("strength", "current", "patience", "loss"):
            setattr(self, name, getattr(self, name)[index])
        for name in ("held", "best", "moments", "logits"):
            setattr(self, name, {key: tensor[index] for key, tensor in getattr(self, name).items()})
        if self.stopper is not None:
            self.stopper.keep(index)

    @torch.no_grad()
    def restore(self, steps: int) -> None:
        """Go back to the weights and the optimizer of the epoch that the phase's first rule reports, of so many."""
        if self.stopper is None:
            raise RuntimeError("the phase kept no weights to restore.")
        for name, p in self.parameters.items():
            p.copy_(self.best[name])
        self.optimizer.restore(self.moments, steps - self.stopper.watches[0].epoch)


def begin(
    problem: Problem,
    network: Network,
    model: Model,
    replicas: Sequence[Replica],
    protocol: Protocol,
    *,
    optimizer: MakeOptimizer = Adam,
    stream: str = "dropout",
) -> State:
    """The state before the first step: weights and streams from each run's identity, settings from each replica.

    Args:
        problem, network, model, replicas, protocol: As for :func:`.train.train`.
        optimizer: What makes it.
        stream: The random stream of the dropout masks; a second network of the same model needs one of its own.
    """

    def vector(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=problem.dtype, device=problem.device)

    if problem.device.type == "cpu":
        warm_up_malloc()
    parameters = network.initial(problem, model, replicas)
    decay, none = vector([r.weight_decay for r in replicas]), vector([0.0] * len(replicas))
    first_only = protocol.weight_decay_scope == "first"
    scoped = {name: none if first_only and not re.fullmatch("[a-z]+0", name) else decay for name in parameters}
    own = {name: weight.decay for name, weight in network.weights().items() if weight.decay is not None}
    scoped |= {
        name: vector([r.setting(model, value) for r in replicas] if isinstance(value, str) else [value] * len(replicas))
        for name, value in own.items()
    }
    streams = [stream_key(problem.digest, r, model, stream) for r in replicas]
    return State(
        number=np.arange(len(replicas)),
        parameters=parameters,
        optimizer=optimizer(parameters, vector([r.lr for r in replicas]), scoped),
        targets=problem.targets(replicas),
        val=problem.judged(replicas, "val"),
        test=problem.judged(replicas, "test"),
        strength=vector([r.strength for r in replicas]),
        current=vector([r.strength for r in replicas]),
        keys=MaskKeys(np.array(streams, np.uint64), problem.device),
        rates={"hidden": Rates(vector([r.dropout for r in replicas]))}
        | {
            kind: Rates(vector([r.setting(model, setting) for r in replicas]))
            for kind, setting in {**RATES, **model.architecture.rates}.items()
        },
        counted=_counted(problem, model, replicas),
        patience=torch.tensor([r.patience for r in replicas], device=problem.device),
        loss=vector([0.0] * len(replicas)),
    )


def hold(state: State, problem: Problem, model: Model, replicas: Sequence[Replica], *names: str) -> None:
    """Keep these settings per replica, [R], where one of them has its own; else an objective reads the model's."""
    for name in names:
        if any(name in dict(r.own) for r in replicas):
            values = [r.setting(model, name) for r in replicas]
            state.held[name] = torch.tensor(values, dtype=problem.dtype, device=problem.device)


def _counted(problem: Problem, model: Model, replicas: Sequence[Replica]) -> Tensor | None:
    """The weights of a mean over a random share of the nodes; a larger share includes the smaller ones."""
    if all(r.unmask == 1.0 for r in replicas):
        return None
    nodes = problem.num_nodes
    weights = np.zeros((len(replicas), nodes))
    for i, replica in enumerate(replicas):
        order = generator(stream_key(problem.digest, replica, model, "unmask")).permutation(nodes)
        chosen = order[: round(replica.unmask * nodes)]
        weights[i, chosen] = 1.0 / max(len(chosen), 1)
    return torch.from_numpy(weights).to(problem.device, problem.dtype)
