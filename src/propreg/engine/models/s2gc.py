"""S²GC: logistic regression on features averaged over the hops, 1/K Σ_{k=1..K} ((1 − α) Â^k X + α X)."""

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
    same,
    transposed,
)
from propreg.engine.models.network import Draw, Parameters, SharedMap, Weight, linear
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem


@dataclass(frozen=True)
class S2gcModel(Model):
    """S²GC's settings.

    Args:
        name: ``"s2gc"``.
        steps, teleport: K and α.
    """

    name: str = "s2gc"
    steps: int = 16
    teleport: float = 0.05


class S2gc(SharedMap):
    """The features, mapped to logits and then propagated: both are linear."""

    def __init__(self, problem: Problem, model: Model) -> None:
        self.spec, self.features, self.classes = model, problem.features, problem.num_classes
        self.adjacency = problem.adjacency("sym", True)

    def weights(self) -> dict[str, Weight]:
        """One layer."""
        return linear(0, self.features.shape[1], self.classes)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        xw = self.first(p, draw("input")) if begun is None else begun
        steps, teleport = self.spec.steps, self.spec.teleport
        z = teleport * xw + p["b0"].unsqueeze(1)
        for each in ops.powers(self.adjacency, xw, steps):
            z = z + ((1 - teleport) / steps) * each
        return z


def build(problem: Problem, model: Model) -> S2gc:
    """On the graph with self-loops, symmetrically normalized."""
    return S2gc(problem, model)


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:  # noqa: ARG001
    """PyG's ``SSGConv``."""
    from torch_geometric.nn import SSGConv

    layer = SSGConv(features, classes, alpha=model.teleport, K=model.steps)
    return [Layer(layer, ON_WEIGHTED_EDGES, {"lin.weight": transposed("w0"), "lin.bias": same("b0")})]


def count_parameters(model: Model, sizes: Sizes) -> int:  # noqa: ARG001
    """One layer."""
    return sizes.features * sizes.classes


def count_activations(model: Model, sizes: Sizes, passes: int) -> int:
    """A step is linear: its backward pass needs none of its numbers."""
    dropped = sizes.nonzeros * (passes + 1) if model.input_dropout > 0 else 0
    return sizes.nodes * sizes.classes * (4 + 4 * passes) + dropped


def _recipe(weight_decay: float, epochs: int) -> Recipe:
    # The authors' "best" model is a reference to the one in training: its last epoch is what they test.
    return Recipe(training={"lr": 0.2, "weight_decay": weight_decay, "max_epochs": epochs, "rule": "last"})


S2GC = Architecture(
    "s2gc",
    "S²GC",
    build=build,
    export=export,
    streams=("steps", "teleport"),
    settings=("steps", "teleport"),
    kind=S2gcModel,
    dropout=0.0,
    training={"lr": 0.2, "weight_decay": 1e-5, "max_epochs": 100},
    source=Source("Zhu and Koniusz", 2021, "ICLR", "logistic regression on features averaged over the hops"),
    recipes={"cora": _recipe(1e-5, 100), "citeseer": _recipe(1e-4, 150), "pubmed": _recipe(2e-5, 100)},
    parameters=count_parameters,
    activations=count_activations,
)
