"""GMNN: two GCNs that label the nodes for each other, one round of variational EM.

q predicts classes from features, p from the classes of neighbors:

1. q is trained on the labels, and goes on from its first best epoch on validation;
2. M-step: a class of each node is drawn from softmax(q / τ), once, and the label of a training node is its class. p is
   trained on all nodes with these classes as inputs and targets;
3. E-step: the softmax of p, again with the labels of training nodes, is what q is trained on, all nodes alike.

The numbers are those of q within the E-step. A regularizer goes on top of q's loss in steps 1 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from propreg.engine import ops
from propreg.engine.models.architecture import (
    Architecture,
    Layer,
    Recipe,
    Source,
    check_two_layers,
    count_activations,
    settings_of,
)
from propreg.engine.models.label_propagation import training_labels
from propreg.engine.models.network import Draw, Network, Parameters, Weight
from propreg.engine.ranges import check_above_0, check_whole
from propreg.engine.spec import Method, Model, Protocol, Replica, Sizes
from propreg.engine.training.objective import Objective, RegularizedLoss
from propreg.methods.networks import FromFeatures, export_without_bias, two_layers

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem
    from propreg.engine.training.passes import Passes
    from propreg.engine.training.phases import Phase
    from propreg.engine.training.state import State


@dataclass(frozen=True)
class GmnnModel(Model):
    """GMNN's settings; the protocol's ``max_epochs`` are those of the E-step.

    Args:
        name: ``"gmnn"``.
        hidden: Width of both networks.
        input_dropout: Dropout on the input of both.
        pretraining, m_step: The epochs of the first two steps.
        temperature: The temperature of the predictions that classes are drawn from, τ.
        optimizer: ``"rmsprop"`` or ``"adam"``.
        binarize: Whether features count as 1 where they are not 0, divided by their number in the row.
    """

    name: str = "gmnn"
    hidden: int = 16
    input_dropout: float = 0.5
    pretraining: int = 100
    m_step: int = 100
    temperature: float = 0.1
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    binarize: bool = False


class FromClasses(Network):
    """p: as q, on the classes of the nodes, which its state holds."""

    def __init__(self, problem: Problem, model: GmnnModel) -> None:
        self.spec, self.classes, self.adjacency = model, problem.num_classes, problem.adjacency("sym", True)

    def weights(self) -> dict[str, Weight]:
        """Uniform within 1/√fan_out."""
        return two_layers("v", self.classes, self.spec.hidden, self.classes)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:  # noqa: ARG002
        """Logits [R, N, C]."""
        h = self.adjacency(ops.dropped_linear(p["targets"], p["v0"], draw("input0"))).relu()
        return self.adjacency(ops.dropped_linear(h, p["v1"], draw("hidden1")))


class OnAllNodes(Objective):
    """Cross entropy of all nodes against the targets that the state holds."""

    def loss(self, state: State, logits: Passes) -> Tensor:
        """The mean over the nodes, [R]."""
        return target_cross_entropy(logits.trained(0), state.held["targets"])


class RegularizedOnAllNodes(RegularizedLoss):
    """The same, with what the regularizer adds to the cross entropy of the training nodes."""

    def loss(self, state: State, logits: Passes) -> Tensor:
        """The mean over the nodes, and the regularizer. [R]."""
        z = logits.trained(0)
        added = super().loss(state, logits) - ops.cross_entropy(z, state.targets)
        return target_cross_entropy(z, state.held["targets"]) + added


def target_cross_entropy(z: Tensor, targets: Tensor) -> Tensor:
    """−mean_i Σ_c target_ic log p_ic of logits and targets [R, N, C]. [R]."""
    return -(targets * z.log_softmax(-1)).sum(-1).mean(-1)


def phases(
    problem: Problem, replicas: Sequence[Replica], /, *, model: Model, method: Method, protocol: Protocol
) -> Iterator[Phase]:
    """Pretraining, M-step, E-step."""
    from propreg.engine.ops.adam import Adam
    from propreg.engine.ops.rmsprop import RMSprop
    from propreg.engine.training.phases import Phase, evaluate
    from propreg.engine.training.state import begin
    from propreg.engine.training.stopping import FIRST_BEST, LAST, RULES

    mine, term = settings_of(model, GmnnModel), problem.regularizer(method)
    optimizer = RMSprop if mine.optimizer == "rmsprop" else Adam
    network, of_classes = FromFeatures(problem, mine, mine.binarize), FromClasses(problem, mine)
    labels = training_labels(problem, replicas)
    q = begin(problem, network, model, replicas, protocol, optimizer=optimizer)
    yield Phase(network, q, RegularizedLoss(method, term), [FIRST_BEST], mine.pretraining, leaves="best")
    p = begin(problem, of_classes, model, replicas, protocol, optimizer=optimizer, stream="dropout of p")
    predicted = (evaluate(network, q) / mine.temperature).softmax(-1)
    p.held["targets"] = known_where_labeled(drawn(problem, replicas, model, predicted), labels)
    yield Phase(of_classes, p, OnAllNodes(), [LAST], mine.m_step, leaves="last")
    q.held["targets"] = known_where_labeled(evaluate(of_classes, p).softmax(-1), labels)
    loss = RegularizedOnAllNodes(method, term)
    yield Phase(network, q, loss, [RULES[protocol.rule]], protocol.max_epochs)


def drawn(problem: Problem, replicas: Sequence[Replica], model: Model, p: Tensor) -> Tensor:
    """A class of each node from probabilities [R, N, C], from each replica's own stream, as one-hot vectors."""
    import numpy as np
    import torch

    from propreg.engine.ops.random import generator, stream_key

    keys = [stream_key(problem.digest, replica, model, "classes") for replica in replicas]
    uniform = np.stack([generator(key).random((p.shape[1], 1)) for key in keys])
    below = p.cumsum(-1) < torch.from_numpy(uniform).to(p.device, p.dtype)
    chosen = below.sum(-1, keepdim=True).clamp(max=p.shape[2] - 1)
    return torch.zeros_like(p).scatter_(2, chosen, 1.0)


def known_where_labeled(p: Tensor, labels: Tensor) -> Tensor:
    """Probabilities with the one-hot labels of the nodes that have one: rows of ``labels`` that are not 0."""
    return labels + (1 - labels.sum(-1, keepdim=True)) * p


def build(problem: Problem, model: Model) -> FromFeatures:
    """q, on the graph with self-loops, symmetrically normalized."""
    return FromFeatures(problem, model, settings_of(model, GmnnModel).binarize)


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """q as PyG's layers."""
    return export_without_bias(model, features, classes, dropout, binarize=settings_of(model, GmnnModel).binarize)


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_two_layers(model)
    mine = settings_of(model, GmnnModel)
    check_whole(mine, "pretraining", "m_step")
    check_above_0(mine, "temperature")
    if mine.optimizer not in ("rmsprop", "adam"):
        raise ValueError(f"optimizer must be 'rmsprop' or 'adam', got {mine.optimizer!r}.")


def count_both(model: Model, sizes: Sizes, passes: int) -> int:
    """Those of a GCN, and the targets and classes."""
    return count_activations(model, sizes, passes) + 4 * sizes.nodes * (model.hidden + sizes.classes)


_TRAINING = {"lr": 0.05, "weight_decay": 5e-4, "max_epochs": 100, "rule": "first_best", "dropout": 0.0}

GMNN = Architecture(
    "gmnn",
    "GMNN",
    build=build,
    export=export,
    streams=("hidden",),
    kind=GmnnModel,
    dropout=0.0,
    training={name: value for name, value in _TRAINING.items() if name != "dropout"},
    phases=phases,
    source=Source("Qu and others", 2019, "ICML", "two GCNs that label the nodes for each other, by variational EM"),
    recipes={
        "cora": Recipe({"binarize": True}, _TRAINING),
        "citeseer": Recipe({"binarize": True, "pretraining": 200}, _TRAINING),
        "pubmed": Recipe({"binarize": True, "pretraining": 200, "optimizer": "adam"}, {**_TRAINING, "lr": 0.01}),
    },
    check=check,
    activations=count_both,
)
