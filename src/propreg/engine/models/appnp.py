"""APPNP: a two-layer MLP, then K steps of personalized PageRank, z ← (1 − α) Â z + α h."""

from __future__ import annotations

from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import (
    ON_WEIGHTED_EDGES,
    Architecture,
    Layer,
    Recipe,
    Source,
    check_two_layers,
    count_activations,
)
from propreg.engine.models.gcn_mlp import Layers, OnMlp, export_mlp
from propreg.engine.models.network import Draw, Parameters, Weight
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Features, Matrix, ReplicaMatrix
    from propreg.engine.tasks.node import Problem


class Appnp(OnMlp):
    """The logits of an MLP, propagated."""

    def __init__(self, spec: Model, features: Features, classes: int, adjacency: Matrix) -> None:
        self.spec, self.adjacency = spec, adjacency
        self.mlp = Layers(spec, features, classes, None)

    def weights(self) -> dict[str, Weight]:
        """Those of the MLP."""
        return self.mlp.weights()

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        start = self.mlp.finish(p, begun, draw)
        return ops.personalized(self.propagation(draw), start, self.spec.steps, self.spec.teleport)

    def propagation(self, draw: Draw) -> Matrix | ReplicaMatrix:  # noqa: ARG002
        """Â of all steps of a pass."""
        return self.adjacency


def build(problem: Problem, model: Model) -> Appnp:
    """On the graph with self-loops, symmetrically normalized."""
    return Appnp(model, problem.features, problem.num_classes, problem.adjacency("sym", True))


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """Linear layers and PyG's ``APPNP``."""
    from torch_geometric import nn

    mlp = export_mlp(model, features, classes, dropout)
    return [*mlp, Layer(nn.APPNP(model.steps, model.teleport), ON_WEIGHTED_EDGES)]


def count_kept(model: Model, sizes: Sizes, passes: int) -> int:
    """Those of the MLP, and two slabs of logits: a step is linear, so that its backward pass needs none of them."""
    return count_activations(model, sizes, passes) + 2 * sizes.nodes * sizes.classes


# Of the citation benchmark of PyG, which has one setting for all three graphs; the authors' own are for other splits.
_BENCHMARK = {"rule": "loss_window", "max_epochs": 200}

APPNP = Architecture(
    "appnp",
    "APPNP",
    build=build,
    export=export,
    streams=("hidden", "layers", "steps", "teleport"),
    settings=("steps", "teleport"),
    per_replica=("input_dropout",),
    defaults={"input_dropout": 0.5},
    source=Source("Gasteiger and others", 2019, "ICLR", "the predictions of an MLP, spread by personalized PageRank"),
    recipes={dataset: Recipe(training=_BENCHMARK) for dataset in ("cora", "citeseer", "pubmed")},
    check=check_two_layers,
    activations=count_kept,
)
