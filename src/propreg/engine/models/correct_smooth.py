"""Correct and Smooth: the predictions of an MLP, corrected by their errors on the training nodes, then smoothed.

    E = spread of (Y − P) on the training nodes,    P' = P + E scaled to the mean error,    F = spread of (Y or P')

with P the softmax of the MLP, Y the labels of the training nodes, and spread K steps of x ← (1 − α) Â x + α x₀. The MLP
is trained as ever, with any regularizer; only evaluations see the two steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import (
    ON_WEIGHTED_EDGES,
    Architecture,
    Layer,
    Recipe,
    Source,
    count_activations,
    count_parameters,
    same,
    settings_of,
)
from propreg.engine.models.gcn_mlp import Layers, OnMlp, export_mlp
from propreg.engine.models.label_propagation import training_labels
from propreg.engine.models.network import Draw, Parameters, Weight, initial
from propreg.engine.ranges import check_share
from propreg.engine.spec import Model, Replica, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem


@dataclass(frozen=True)
class CorrectSmoothModel(Model):
    """The settings of Correct and Smooth.

    Args:
        name: ``"correct-smooth"``.
        hidden, layers: Of the MLP.
        steps: The number of steps of each spread.
        teleport: The share of the errors themselves in each step of the correction, α.
        smoothing_teleport: The share of the labels and predictions in each step of the smoothing.
    """

    name: str = "correct-smooth"
    steps: int = 50
    teleport: float = 0.2
    smoothing_teleport: float = 0.2


class CorrectSmooth(OnMlp):
    """An MLP whose evaluations are corrected and smoothed with the labels of the training nodes."""

    def __init__(self, problem: Problem, model: CorrectSmoothModel) -> None:
        self.problem, self.spec, self.adjacency = problem, model, problem.adjacency("sym", False)
        self.mlp = Layers(model, problem.features, problem.num_classes, None)

    def weights(self) -> dict[str, Weight]:
        """Those of the MLP, and the labels, which are not trained."""
        labels = Weight((self.problem.num_nodes, self.problem.num_classes), trained=False)
        return self.mlp.weights() | {"labels": labels}

    def initial(self, problem: Problem, model: Model, replicas: Sequence[Replica]) -> Parameters:
        """Drawn weights, and the labels of each replica's training nodes."""
        return initial(problem, self.mlp, model, replicas) | {"labels": training_labels(problem, replicas)}

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]: those of the MLP in training."""
        z = self.mlp.finish(p, begun, draw)
        if draw.training:
            return z
        s, predicted, labels = self.spec, z.softmax(-1), p["labels"]
        return ops.logarithm(
            ops.corrected_and_smoothed(self.adjacency, predicted, labels, s.steps, s.teleport, s.smoothing_teleport)
        )


def build(problem: Problem, model: Model) -> CorrectSmooth:
    """On the graph without self-loops, symmetrically normalized."""
    return CorrectSmooth(problem, settings_of(model, CorrectSmoothModel))


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """Linear layers, and a module of ours that holds the labels."""
    from propreg.engine.models.modules import SmoothedPredictions

    mine = settings_of(model, CorrectSmoothModel)
    module = SmoothedPredictions(mine.steps, mine.teleport, mine.smoothing_teleport, classes)
    last = Layer(module, ON_WEIGHTED_EDGES, {"labels": same("labels")})
    return [*export_mlp(model, features, classes, dropout), last]


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_share(model, "smoothing_teleport")


def count_weights(model: Model, sizes: Sizes) -> int:
    """Those of the MLP, and the labels."""
    return count_parameters(model, sizes) + sizes.nodes * sizes.classes


def count_kept(model: Model, sizes: Sizes, passes: int) -> int:
    """Those of the MLP, and a few slabs of logits."""
    return count_activations(model, sizes, passes) + 8 * sizes.nodes * sizes.classes


_OURS = Recipe(training={"rule": "latest_best", "max_epochs": 300}, ours=True)

CORRECT_SMOOTH = Architecture(
    "correct-smooth",
    "Correct & Smooth",
    build=build,
    export=export,
    streams=("hidden", "layers"),
    settings=("steps", "teleport"),
    kind=CorrectSmoothModel,
    source=Source("Huang and others", 2021, "ICLR", "an MLP, corrected by its propagated errors and then smoothed"),
    # The authors' release has settings for OGB's graphs alone.
    recipes=dict.fromkeys(("cora", "citeseer", "pubmed"), _OURS),
    check=check,
    parameters=count_weights,
    activations=count_kept,
)
