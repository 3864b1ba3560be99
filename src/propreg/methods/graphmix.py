"""GraphMix: a GCN and, in every other epoch or so, its twin without the graph, trained by mixup on the same weights.

Each epoch a coin decides. Tails: cross entropy of the GCN on the training nodes. Heads:

1. Pseudo-labels: the mean of ten predictions of the GCN, with dropout, sharpened, p^(1/T)/Σ.
2. As many nodes without a label are drawn, with replacement, as there are training nodes.
3. The twin, relu(X W) W', mixes hidden rows and targets of the training nodes, λ h_i + (1 − λ) h_π(i) with λ uniform,
   and those of the drawn nodes with their pseudo-labels.
4. loss = BCE of the training nodes + w(t) BCE of the drawn nodes, where BCE is the binary cross entropy between
   softmax outputs and targets, entry by entry, and w(t) = w exp(−5 (1 − u)²) as u goes from 0 to 1.

The published code has an average of the weights that shares their memory. It multiplies them by 1 − 1/t² after epoch t,
and so by 0 after the first one: what is trained starts from Adam's momentum. It also writes the mixed rows of a node
that is drawn twice to one place, where the last one stays. ``as_published`` has both, and without it neither is there.
A regularizer goes on top of the GCN's logits in every epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from propreg.engine.ranges import check_above_0, check_at_least_0, check_whole
from propreg.engine.spec import Method, Model, Protocol, Replica, Sizes
from propreg.engine.training.objective import RegularizedLoss
from propreg.methods.networks import FromFeatures, export_without_bias, rows

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from propreg.engine.models.network import Draw, Parameters
    from propreg.engine.regularizers.regularizer import Term
    from propreg.engine.tasks.node import Problem
    from propreg.engine.training.passes import Passes
    from propreg.engine.training.phases import Phase
    from propreg.engine.training.state import State

LARGEST_AVERAGE = 0.999


@dataclass(frozen=True)
class GraphMixModel(Model):
    """GraphMix's settings; the defaults are those of Cora.

    Args:
        name: ``"graphmix"`` or ``"graphmix-clean"``.
        hidden: Width of the hidden layer.
        input_dropout: Dropout on the features.
        predictions: How many predictions of the GCN pseudo-labels are the mean of.
        temperature: The temperature of the sharpened mean, T.
        consistency: The largest weight of the drawn nodes' loss, w.
        ramp_start, ramp_end: The epochs between which that weight rises.
        as_published: Whether the average of the weights is that of the published code; else there is none.
        binarize: Whether features count as 1 where they are not 0, divided by their number in the row.
    """

    name: str = "graphmix"
    hidden: int = 16
    input_dropout: float = 0.5
    predictions: int = 10
    temperature: float = 0.1
    consistency: float = 10.0
    ramp_start: int = 500
    ramp_end: int = 1000
    as_published: bool = True
    binarize: bool = False


class Twins(FromFeatures):
    """A GCN without biases, and the same weights without the graph."""

    def alone(self, p: Parameters, draw: Draw) -> Tensor:
        """The hidden layer without the graph, [R, N, H]."""
        return self.first(p, draw("input") if self.spec.input_dropout > 0 else None).relu()

    def from_hidden(self, p: Parameters, h: Tensor, draw: Draw) -> Tensor:
        """The logits of hidden rows without the graph, [R, T, C]."""
        return ops.dropped_linear(h, p["w1"], draw("hidden1"))


class GraphMixLoss(RegularizedLoss):
    """Cross entropy or, by a coin, mixup; with the regularizer in both.

    Args:
        model, method, term: What is trained.
        network: The twins.
        unlabeled: By the replica's place in the input, the nodes without a label.
        skips: Whether an epoch in which all coins agree leaves out the other branch: a recorded epoch cannot.
    """

    def __init__(
        self,
        model: GraphMixModel,
        method: Method,
        term: Term,
        network: Twins,
        unlabeled: Mapping[int, np.ndarray],
        *,
        skips: bool,
    ) -> None:
        super().__init__(method, term)
        self.model, self.network, self.unlabeled, self.skips = model, network, unlabeled, skips
        self.branches = (True, True)  # whether any coin of the epoch shows tails, heads

    def advance(self, state: State, epoch: int) -> None:
        """Average the weights as the published code does, toss the coins, and draw nodes, pairs and shares."""
        import torch

        super().advance(state, epoch)
        if self.model.as_published and epoch > 1:
            average(state.parameters, epoch - 1)
        counts = (state.targets.weights > 0).sum(1).tolist()
        width, found = state.targets.nodes.shape[1], dict[str, list[Any]]()
        for row, stream in enumerate(state.keys.streams.tolist()):
            drawn = draws(stream, epoch, counts[row], width, self.unlabeled[int(state.number[row])])
            for name, value in drawn.items():
                found.setdefault(name, []).append(value)
        for name, values in found.items():
            state.held[name].copy_(torch.tensor(values, dtype=state.held[name].dtype))
        state.held["ramp"].fill_(ramp(self.model, epoch))
        heads = found["heads"]
        self.branches = (not all(heads), any(heads)) if self.skips else (True, True)

    def loss(self, state: State, logits: Passes) -> Tensor:
        """The loss of each replica, [R]."""
        import torch

        tails, heads = self.branches
        if not heads:
            return super().loss(state, logits)
        mixup = self.mixup(state, logits)
        if not tails and self.method.name == "plain":
            return mixup
        regularized = super().loss(state, logits)
        added = regularized - ops.cross_entropy(logits.trained(0), state.targets)
        return torch.where(state.held["heads"], mixup + added, regularized)

    def mixup(self, state: State, logits: Passes) -> Tensor:
        """BCE of the training nodes and, by its weight, of the drawn nodes. [R]."""
        from torch.nn.functional import one_hot

        held, targets = state.held, state.targets
        pseudo = self.pseudo_labels(logits)
        labels = one_hot(targets.classes, pseudo.shape[2]).to(pseudo.dtype)
        nodes, count = held["drawn"], self.passes + self.model.predictions
        supervised = self.mixed(logits, count, targets.nodes, labels, 0, held)
        unsupervised = self.mixed(logits, count + 1, nodes, ops.rows(pseudo, nodes), 1, held)
        real = (targets.weights > 0).to(pseudo.dtype)
        found = ops.elementwise_cross_entropy(*supervised, targets.weights)
        return found + held["ramp"] * ops.elementwise_cross_entropy(*unsupervised, real / real.sum(1, keepdim=True))

    def pseudo_labels(self, logits: Passes) -> Tensor:
        """The sharpened mean of predictions with dropout, a constant. [R, N, C]."""
        import torch

        with torch.no_grad():
            numbers = range(self.passes, self.passes + self.model.predictions)
            each = [self.network.finish(logits.p, None, logits.another(number)).softmax(-1) for number in numbers]
            return ops.sharpened(sum(each[1:], each[0]) / len(each), self.model.temperature)

    def mixed(
        self, logits: Passes, number: int, nodes: Tensor, targets: Tensor, call: int, held: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Logits and targets of the twin's mixed rows: of training nodes in call 0, of drawn nodes in call 1."""
        draw, order, share = logits.another(number), held["order"][:, call], held["share"][:, call]
        h = ops.mixed(rows(self.network.alone(logits.p, draw), nodes), order, share)
        if call and self.model.as_published:
            h = rows(h, held["last"])
        return self.network.from_hidden(logits.p, h, draw), ops.mixed(targets, order, share)


def draws(stream: int, epoch: int, count: int, width: int, unlabeled: np.ndarray) -> dict[str, Any]:
    """What a run draws in an epoch: its coin, λ and π of both calls, nodes, and where each node was drawn last.

    Rows are filled up to a width beyond the number of training nodes.
    """
    import numpy as np

    rng = np.random.Generator(np.random.Philox(key=[stream, epoch]))
    beyond = np.arange(count, width)
    found: dict[str, Any] = {"heads": bool(rng.random() < 0.5), "share": rng.beta(1.0, 1.0, 2).tolist()}
    found["order"] = [np.concatenate([rng.permutation(count), beyond]).tolist() for _ in range(2)]
    nodes = unlabeled[rng.integers(len(unlabeled), size=width)].tolist()
    place = {node: i for i, node in enumerate(nodes[:count])}
    return found | {"drawn": nodes, "last": [place.get(node, i) for i, node in enumerate(nodes)]}


def ramp(model: GraphMixModel, epoch: int) -> float:
    """w(t) in this epoch, the first of which is 1."""
    import math

    whole = max(model.ramp_end - model.ramp_start, 1)
    done = min(max((epoch - 1 - model.ramp_start) / whole, 0.0), 1.0)
    return model.consistency * math.exp(-5 * (1 - done) ** 2)


def average(parameters: Parameters, epoch: int) -> None:
    """After so many epochs, a p + (1 − a) p with a = min(1 − 1/epoch, 0.999), where a p is already in p's place."""
    a = min(1 - 1 / epoch, LARGEST_AVERAGE)
    for p in parameters.values():
        p.detach().mul_(a * (2 - a))


def phases(
    problem: Problem, replicas: Sequence[Replica], /, *, model: Model, method: Method, protocol: Protocol
) -> Iterator[Phase]:
    """One phase with the loss of GraphMix."""
    import numpy as np
    import torch

    from propreg.engine.training.phases import single_phase

    mine, network = settings_of(model, GraphMixModel), build(problem, model)
    unlabeled = {i: np.flatnonzero(~problem.splits[r.split].train) for i, r in enumerate(replicas)}
    term, on_cpu = problem.regularizer(method), problem.device.type == "cpu"
    loss = GraphMixLoss(mine, method, term, network, unlabeled, skips=on_cpu)
    phase = single_phase(problem, network, loss, model, replicas, protocol)
    held, (runs, width) = phase.state.held, phase.state.targets.nodes.shape
    shapes = {"order": (runs, 2, width), "drawn": (runs, width), "last": (runs, width)}
    for name, shape in shapes.items():
        held[name] = torch.zeros(shape, dtype=torch.long, device=problem.device)
    held["heads"] = torch.zeros(runs, dtype=torch.bool, device=problem.device)
    held["share"] = torch.zeros(runs, 2, dtype=torch.float64, device=problem.device)
    held["ramp"] = torch.zeros(runs, dtype=problem.dtype, device=problem.device)
    yield phase


def build(problem: Problem, model: Model) -> Twins:
    """On the graph with self-loops, symmetrically normalized."""
    return Twins(problem, model, settings_of(model, GraphMixModel).binarize)


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """The GCN as PyG's layers."""
    return export_without_bias(model, features, classes, dropout, binarize=settings_of(model, GraphMixModel).binarize)


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_two_layers(model)
    mine = settings_of(model, GraphMixModel)
    check_whole(mine, "predictions")
    check_above_0(mine, "temperature")
    check_at_least_0(mine, "consistency")
    if not 0 <= mine.ramp_start <= mine.ramp_end:
        raise ValueError(
            f"ramp_start must lie between 0 and ramp_end, got {mine.ramp_start!r} and {mine.ramp_end!r}: lower it."
        )


def count_twins(model: Model, sizes: Sizes, passes: int) -> int:
    """Those of a GCN in two more passes, and the predictions."""
    return count_activations(model, sizes, passes + 3) + 6 * sizes.nodes * (model.hidden + sizes.classes)


_TRAINING = {"rule": "latest_best", "max_epochs": 2000}
_PUBLISHED: dict[str, dict[str, Any]] = {"cora": {}, "citeseer": {}, "pubmed": {"consistency": 1.0}}


def _entry(name: str, title: str, idea: str, settings: dict[str, Any]) -> Architecture:
    return Architecture(
        name,
        title,
        build=build,
        export=export,
        streams=("hidden",),
        kind=GraphMixModel,
        defaults=settings,
        dropout=0.0,
        training=_TRAINING,
        phases=phases,
        source=Source("Verma and others", 2021, "AAAI", idea),
        recipes={
            dataset: Recipe({**settings, **own, "binarize": True}, {**_TRAINING, "dropout": 0.0})
            for dataset, own in _PUBLISHED.items()
        },
        check=check,
        activations=count_twins,
    )


GRAPHMIX = _entry("graphmix", "GraphMix", "a GCN whose weights are trained by mixup without the graph, too", {})
GRAPHMIX_CLEAN = _entry(
    "graphmix-clean", "GraphMix (clean)", "GraphMix without the average that sets weights to 0", {"as_published": False}
)
