"""What changes while a batch trains, and shrinks when replicas finish."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.engine.adam import Adam
from propreg.engine.dropout import Rates
from propreg.engine.heap import keep_freed_memory
from propreg.engine.mask_keys import MaskKeys
from propreg.engine.models import Network, Parameters
from propreg.engine.problem import Problem
from propreg.engine.spec import Model, Protocol, Replica
from propreg.engine.streams import generator, glorot, stream_key
from propreg.engine.targets import Targets

Judged = tuple[Tensor, Tensor]


class Patience(NamedTuple):
    """The stopping rule on the device: which epoch's weights are kept must not wait for the host. [R] each."""

    patience: Tensor
    best_val: Tensor
    counter: Tensor
    failed: Tensor
    loss: Tensor  # of the last step

    @staticmethod
    def fresh(patience: list[int], device: torch.device, dtype: torch.dtype = torch.float32) -> "Patience":
        """Before the first epoch."""
        given = torch.tensor(patience, device=device)
        loss = torch.zeros(len(patience), device=device, dtype=dtype)
        return Patience(
            given, torch.full_like(given, -1), torch.zeros_like(given), torch.zeros_like(given).bool(), loss
        )

    def recorded(self, val: Tensor, official: bool) -> Tensor:
        """Take the counts after the last step, as :class:`propreg.engine.stopping.Stopper` does: who reports them.

        A replica whose loss was not finite takes these counts and no later ones.
        """
        live = (self.counter <= self.patience if official else self.counter < self.patience) | (self.best_val < 0)
        live &= ~self.failed
        better = live & (val > self.best_val)
        recorded = better | (live & (val == self.best_val)) if official else better
        self.best_val.copy_(torch.where(better, val, self.best_val))
        self.counter.add_((live & ~recorded).long()).mul_((~better).long())
        self.failed.logical_or_(~self.loss.isfinite())
        return recorded


@dataclass
class State:
    """The replicas that still train; ``number`` is each one's place in the input."""

    number: NDArray[np.int64]
    parameters: Parameters
    adam: Adam
    targets: Targets
    val: Judged
    test: Judged
    strength: Tensor
    current: Tensor  # the strength in this epoch
    rates: dict[str, Rates]
    keys: MaskKeys
    counted: Tensor | None
    rule: "Patience"
    best: Parameters

    def keep(self, kept: NDArray[np.int64]) -> None:
        """Compact to these replicas: the others leave the batch."""
        index = torch.from_numpy(kept).to(self.strength.device)
        self.number = self.number[kept]
        self.keys = self.keys.keep(kept)
        self.parameters = {
            name: p.detach()[index].requires_grad_(p.requires_grad) for name, p in self.parameters.items()
        }
        self.adam.keep(index)
        self.targets = self.targets.keep(index)
        self.val = (self.val[0][index], self.val[1][index])
        self.test = (self.test[0][index], self.test[1][index])
        self.strength, self.current = self.strength[index], self.current[index]
        self.rule = Patience(*(t[index] for t in self.rule))
        self.rates = {place: rates.keep(index) for place, rates in self.rates.items()}
        self.counted = None if self.counted is None else self.counted[index]
        self.best = {name: p[index] for name, p in self.best.items()}


def begin(problem: Problem, network: Network, model: Model, replicas: Sequence[Replica], protocol: Protocol) -> State:
    """The state before the first step: weights and streams from each run's identity, settings from each replica."""

    def vector(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=problem.dtype, device=problem.device)

    if problem.device.type == "cpu":
        keep_freed_memory()
    own = getattr(network, "initial", None)  # a network of the caller's own brings its weights along
    parameters = own(replicas) if own else initial(problem, network, model, replicas)
    decay, none = vector([r.weight_decay for r in replicas]), vector([0.0] * len(replicas))
    first_only = protocol.weight_decay_scope == "first"
    scoped = {name: none if first_only and not re.fullmatch("[a-z]+0", name) else decay for name in parameters}
    streams = [stream_key(problem.digest, r, model, "dropout") for r in replicas]
    return State(
        number=np.arange(len(replicas)),
        parameters=parameters,
        adam=Adam(parameters, vector([r.lr for r in replicas]), scoped),
        targets=problem.targets(replicas),
        val=problem.judged(replicas, "val"),
        test=problem.judged(replicas, "test"),
        strength=vector([r.strength for r in replicas]),
        current=vector([r.strength for r in replicas]),
        keys=MaskKeys(np.array(streams, np.uint64), problem.device),
        rates={
            "input": Rates(vector([model.input_dropout] * len(replicas))),
            "hidden": Rates(vector([r.dropout for r in replicas])),
            "attention": Rates(vector([model.attention_dropout] * len(replicas))),
        },
        counted=_counted(problem, model, replicas),
        rule=Patience.fresh([r.patience for r in replicas], problem.device, problem.dtype),
        best={},
    )


def initial(problem: Problem, network: Network, model: Model, replicas: Sequence[Replica]) -> Parameters:
    """The weights that the runs start from, [R, …]: drawn in float64 from each run's own stream.

    Runs that differ in strength or method have the same: they are drawn once and copied.
    """
    parameters = {}
    for name, weight in network.weights().items():
        if weight.fans is None:
            zeros = torch.zeros(len(replicas), *weight.shape, dtype=problem.dtype, device=problem.device)
            parameters[name] = zeros.requires_grad_()
            continue
        keys = [stream_key(problem.digest, replica, model, name) for replica in replicas]
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        values = np.empty((len(number), *weight.shape))
        for key, i in number.items():
            values[i] = glorot(key, *weight.fans, weight.shape)
        drawn = torch.from_numpy(values).to(problem.dtype).to(problem.device)
        place = torch.tensor([number[key] for key in keys], device=problem.device)
        parameters[name] = drawn[place].requires_grad_()
    return parameters


def _counted(problem: Problem, model: Model, replicas: Sequence[Replica]) -> Tensor | None:
    """The weights of a mean over a random share of the nodes; a larger share contains the smaller ones."""
    if all(r.unmask == 1.0 for r in replicas):
        return None
    nodes = problem.num_nodes
    weights = np.zeros((len(replicas), nodes))
    for i, replica in enumerate(replicas):
        order = generator(stream_key(problem.digest, replica, model, "unmask")).permutation(nodes)
        chosen = order[: round(replica.unmask * nodes)]
        weights[i, chosen] = 1.0 / max(len(chosen), 1)
    return torch.from_numpy(weights).to(problem.device, problem.dtype)
