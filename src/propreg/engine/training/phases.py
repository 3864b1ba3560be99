"""What a training is made of: phases, each of which trains one network on one objective.

A procedure yields its phases and goes on when each has been trained; results come from the last one. Ours is a single
phase. One that trains a second network on the predictions of a first one reads::

    def procedure(problem: Problem, replicas: Sequence[Replica]) -> Iterator[Phase]:
        teacher = begin(problem, network, model, replicas, protocol, optimizer=RMSprop)
        yield Phase(network, teacher, CrossEntropy(), [FIRST_BEST], epochs=100, leaves="best")
        student = begin(problem, other, smaller, replicas, protocol)
        student.held["targets"] = evaluate(network, teacher).softmax(-1)
        yield Phase(other, student, Distillation(), [LATEST_BEST], epochs=200)

A replica is the same run alone and in a batch if random numbers come from its own streams
(:func:`.random.stream_key`) and what belongs to it lies in a state.
"""

import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from propreg.engine.models.network import Network, no_dropout
from propreg.engine.spec import Method, Model, Protocol, Replica, Result
from propreg.engine.tasks.node import Problem
from propreg.engine.training.objective import Objective, RegularizedLoss
from propreg.engine.training.optimizers import OPTIMIZERS
from propreg.engine.training.state import State, begin
from propreg.engine.training.stopping import RULES, Rule


@dataclass
class Phase:
    """A part of a training.

    Args:
        network: What is trained.
        state: Its parameters and optimizer.
        objective: What is minimized.
        rules: What watches the validation nodes. The first rule ends the training of a replica.
        epochs: How many epochs at most.
        leaves: The ``"results"``; or, of a phase before the last one, the state with the weights and the optimizer of
            the epoch that the first rule reports (``"best"``), or those of the ``"last"`` epoch.
        along: Other states that the objective reads, which shrink when replicas leave.
        recordable: Whether an epoch may be a CUDA graph: every shape is fixed, and the host reads no tensor.
    """

    network: Network
    state: State
    objective: Objective
    rules: Sequence[Rule]
    epochs: int
    leaves: Literal["results", "best", "last"] = "results"
    along: Sequence[State] = ()
    recordable: bool = True

    def __post_init__(self) -> None:
        if self.leaves == "last" and self.rules[0].stops:
            raise ValueError(
                f"rule {self.rules[0].name!r} stops each replica at an epoch of its own, but leaves='last' keeps the "
                "weights of the batch's last epoch: pass leaves='best', or a rule that does not stop."
            )

    def watch(self, names: Iterable[str]) -> None:
        """Add rules by name, if they do not watch already."""
        known = {rule.name for rule in self.rules}
        self.rules = [*self.rules, *(RULES[name] for name in dict.fromkeys(names) if name not in known)]

    def end(self, steps: int) -> None:
        """Leave the state to the next phase, after so many steps."""
        if self.leaves == "best":
            self.state.restore(steps)
        self.state.epochs += self.epochs


Procedure = Callable[[Problem, Sequence[Replica]], Iterable[Phase]]


class Trainer(typing.Protocol):
    """A training that is not phases of one program; results as of :func:`.train.train`."""

    def __call__(
        self, problem: Problem, replicas: Sequence[Replica], /, *, stop: Callable[[], bool]
    ) -> Iterator[tuple[int, Result]]: ...


def one_phase(
    problem: Problem,
    replicas: Sequence[Replica],
    *,
    model: Model,
    method: Method,
    protocol: Protocol,
    network: Network | None = None,
) -> Iterator[Phase]:
    """The training of a model, or of a network of the caller's own, with a regularizer."""
    of_ours = network is None
    if not of_ours and method.regularizer.passes(method) == 1 and not any(r.strength for r in replicas):
        method = Method()  # a run of a user's module trains alone on a CPU: the plain one computes no term of size 0
    objective = RegularizedLoss(method, problem.regularizer(method))
    yield single_phase(
        problem, network or problem.network(model), objective, model, replicas, protocol, recordable=of_ours
    )


def single_phase(
    problem: Problem,
    network: Network,
    objective: RegularizedLoss,
    model: Model,
    replicas: Sequence[Replica],
    protocol: Protocol,
    *,
    recordable: bool = True,
) -> Phase:
    """The only phase of a training, which the protocol's rule ends."""
    optimizer = network.optimizer or OPTIMIZERS[protocol.optimizer]
    state = begin(problem, network, model, replicas, protocol, optimizer=optimizer)
    # What is the user's own may do anything.
    recordable = recordable and network.recordable and not objective.method.regularizer.own
    return Phase(network, state, objective, [RULES[protocol.rule]], protocol.max_epochs, recordable=recordable)


@torch.no_grad()
def evaluate(network: Network, state: State) -> Tensor:
    """The logits of a network without dropout, [R, N, C]."""
    return network.finish(state.tensors, network.begin(state.tensors), no_dropout)
