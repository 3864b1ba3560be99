"""DAGNN: the predictions of an MLP after 0 to K hops, each weighed at each node by a learned gate.

z = MLP(x),    logits_i = Σ_{k=0..K} σ(s · (Â^k z)_i + b) (Â^k z)_i
"""

from __future__ import annotations

from dataclasses import dataclass
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
    same,
    transposed,
)
from propreg.engine.models.gcn_mlp import Layers, OnMlp, export_mlp
from propreg.engine.models.network import Draw, Parameters, Weight, linear
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem


@dataclass(frozen=True)
class DagnnModel(Model):
    """DAGNN's settings; ``steps`` is K."""

    name: str = "dagnn"
    steps: int = 10


class Dagnn(OnMlp):
    """An MLP and the gates of its hops."""

    def __init__(self, problem: Problem, model: Model) -> None:
        self.spec, self.classes, self.adjacency = model, problem.num_classes, problem.adjacency("sym", True)
        self.mlp = Layers(model, problem.features, problem.num_classes, None)

    def weights(self) -> dict[str, Weight]:
        """Those of the MLP, and those of the gate."""
        width, hidden, classes = self.mlp.widths
        return linear(0, width, hidden) | linear(1, hidden, classes) | linear(2, classes, 1)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        z = self.mlp.finish(p, begun, draw)
        gate, bias = p["w2"], p["b2"].unsqueeze(1)
        logits = (z @ gate + bias).sigmoid() * z
        for each in ops.powers(self.adjacency, z, self.spec.steps):
            logits = logits + (each @ gate + bias).sigmoid() * each
        return logits


def build(problem: Problem, model: Model) -> Dagnn:
    """On the graph with self-loops, symmetrically normalized."""
    return Dagnn(problem, model)


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """Linear layers, and the gated hops as a module of ours."""
    from propreg.engine.models.modules import GatedHops

    gate = {"gate.weight": transposed("w2"), "gate.bias": same("b2")}
    hops = Layer(GatedHops(model.steps, classes), ON_WEIGHTED_EDGES, gate)
    return [*export_mlp(model, features, classes, dropout), hops]


def count_kept(model: Model, sizes: Sizes, passes: int) -> int:
    """Those of the MLP, and of each hop the logits, their gate and their product."""
    return count_activations(model, sizes, passes) + (3 * passes + 1) * (model.steps + 1) * sizes.nodes * sizes.classes


def _recipe(steps: int, rate: float, weight_decay: float) -> Recipe:
    training = {"rule": "lowest_val_loss", "max_epochs": 1000, "dropout": rate, "weight_decay": weight_decay}
    return Recipe({"steps": steps, "input_dropout": rate}, training)


DAGNN = Architecture(
    "dagnn",
    "DAGNN",
    build=build,
    export=export,
    streams=("hidden", "layers", "steps"),
    settings=("steps",),
    kind=DagnnModel,
    defaults={"input_dropout": 0.8},
    dropout=0.8,
    training={"weight_decay": 0.005, "rule": "val_loss"},
    source=Source("Liu and others", 2020, "KDD", "the predictions after each number of hops, weighed by a gate"),
    recipes={
        "cora": _recipe(10, 0.8, 0.005),
        "citeseer": _recipe(10, 0.5, 0.02),
        "pubmed": _recipe(20, 0.8, 0.005),
    },
    check=check_two_layers,
    activations=count_kept,
)
