"""Label propagation: the labels of the training nodes, spread over the graph. Nothing is trained.

F ← (1 − α) D^(−1/2) A D^(−1/2) F + α Y        (Y: one-hot labels of the training nodes, 0 elsewhere)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import ON_WEIGHTED_EDGES, Architecture, Layer, Recipe, Source, same
from propreg.engine.models.network import Draw, Network, Parameters, Weight, no_dropout
from propreg.engine.spec import Method, Model, Protocol, Replica, Report, Result, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem
    from propreg.engine.training.batches import Options


@dataclass(frozen=True)
class LabelPropagationModel(Model):
    """The settings of label propagation.

    Args:
        name: ``"label-propagation"``.
        steps: The number of steps.
        teleport: The share of the labels themselves in each step, α.
    """

    name: str = "label-propagation"
    steps: int = 50
    teleport: float = 0.1


class LabelPropagation(Network):
    """Its only parameter, which is not trained, is Y."""

    def __init__(self, problem: Problem, model: Model) -> None:
        self.problem, self.spec, self.adjacency = problem, model, problem.adjacency("sym", False)

    def weights(self) -> dict[str, Weight]:
        """Y."""
        return {"labels": Weight((self.problem.num_nodes, self.problem.num_classes), trained=False)}

    def initial(self, problem: Problem, model: Model, replicas: Sequence[Replica]) -> Parameters:  # noqa: ARG002
        """The labels of each replica's training nodes."""
        return {"labels": training_labels(problem, replicas)}

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:  # noqa: ARG002
        """The logarithm of F, [R, N, C]."""
        return ops.logarithm(ops.personalized(self.adjacency, p["labels"], self.spec.steps, self.spec.teleport))


def training_labels(problem: Problem, replicas: Sequence[Replica]) -> Tensor:
    """The one-hot labels of each replica's training nodes, 0 for all others. [R, N, C]."""
    import torch

    size = (len(replicas), problem.num_nodes, problem.num_classes)
    labels = torch.zeros(size, dtype=problem.dtype, device=problem.device)
    targets = problem.targets(replicas)
    replica = torch.arange(len(replicas), device=problem.device).unsqueeze(1).expand_as(targets.nodes)
    real = targets.weights > 0  # rows are filled up with node 0
    labels[replica[real], targets.nodes[real], targets.classes[real]] = 1.0
    return labels


def train(
    problem: Problem,
    replicas: Sequence[Replica],
    /,
    *,
    model: Model,
    method: Method,  # noqa: ARG001
    protocol: Protocol,
    options: Options,
) -> Iterator[tuple[int, Result]]:
    """Spread the labels once: every rule reports epoch 1."""
    import numpy as np

    if options.stop():
        return
    network = problem.network(model)
    p = network.initial(problem, model, replicas)
    logits = network.finish(p, None, no_dropout)
    targets = problem.targets(replicas)
    loss = ops.cross_entropy(logits, targets).cpu()
    right = (logits.max(-1).indices == problem.y).cpu().numpy()
    for place, replica in enumerate(replicas):
        split = problem.splits[replica.split]
        val, test = (float(right[place][nodes].mean()) for nodes in (split.val, split.test))
        reports = tuple(Report(rule, 1, val, test) for rule in dict.fromkeys((protocol.rule, *options.rules)))
        weights = {name: t[place].cpu() for name, t in p.items()} if options.keep_weights else {}
        history = {"loss": loss[place : place + 1].double().numpy(), "val": np.array([val]), "test": np.array([test])}
        yield place, Result(replica, val, test, 1, 1, history=history, weights=weights, reports=reports)


def build(problem: Problem, model: Model) -> LabelPropagation:
    """On the graph without self-loops, symmetrically normalized."""
    return LabelPropagation(problem, model)


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:  # noqa: ARG001
    """A module of ours that holds the labels."""
    from propreg.engine.models.modules import SpreadLabels

    module = SpreadLabels(model.steps, model.teleport, classes)
    return [Layer(module, ON_WEIGHTED_EDGES, {"labels": same("labels")})]


def count_labels(model: Model, sizes: Sizes) -> int:  # noqa: ARG001
    """Y."""
    return sizes.nodes * sizes.classes


def count_activations(model: Model, sizes: Sizes, passes: int) -> int:  # noqa: ARG001
    """A few slabs of logits."""
    return 6 * sizes.nodes * sizes.classes


_OURS = Recipe(training={"rule": "latest_best", "max_epochs": 1}, ours=True)

LABEL_PROPAGATION = Architecture(
    "label-propagation",
    "label propagation",
    build=build,
    export=export,
    streams=(),
    settings=("steps", "teleport"),
    kind=LabelPropagationModel,
    dropout=0.0,
    training={"max_epochs": 1},
    trainer=train,
    trained=False,
    source=Source("Zhou and others", 2004, "NeurIPS", "the labels of the training nodes, spread over the graph"),
    recipes=dict.fromkeys(("cora", "citeseer", "pubmed"), _OURS),
    parameters=count_labels,
    activations=count_activations,
)
