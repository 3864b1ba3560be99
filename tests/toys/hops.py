"""An architecture in one file: logistic regression on features that are propagated k times, Â^k X W + b."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.engine.models.architecture import ON_WEIGHTED_EDGES, Architecture, Layer, same, transposed
from propreg.engine.models.network import Draw, Network, Parameters, Weight
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Masks
    from propreg.engine.tasks.node import Problem


@dataclass(frozen=True)
class Hops(Model):
    """Its settings: the number of propagations."""

    name: str = "hops"
    hops: int = 2


class HopsNetwork(Network):
    """The features, mapped and then propagated."""

    def __init__(self, problem: Problem, hops: int) -> None:
        self.features, self.classes, self.hops = problem.features, problem.num_classes, hops
        self.adjacency = problem.adjacency("sym", True)

    def weights(self) -> dict[str, Weight]:
        size = self.features.shape[1], self.classes
        return {"w0": Weight(size, size), "b0": Weight((self.classes,))}

    def first(self, p: Parameters, masks: Masks | None = None) -> Tensor:
        return self.features(p["w0"], masks)

    def begin_from(self, p: Parameters, xw: Tensor) -> Tensor:  # noqa: ARG002
        return xw

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        z = self.first(p, draw("input")) if begun is None else begun
        for _ in range(self.hops):
            z = self.adjacency(z)
        return z + p["b0"].unsqueeze(1)


def build(problem: Problem, model: Model) -> HopsNetwork:
    return HopsNetwork(problem, _settings(model).hops)


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:  # noqa: ARG001
    from torch_geometric.nn import SGConv

    layer = SGConv(features, classes, K=_settings(model).hops)
    return [Layer(layer, ON_WEIGHTED_EDGES, {"lin.weight": transposed("w0"), "lin.bias": same("b0")})]


def check(model: Model) -> None:
    if _settings(model).hops < 1:
        raise ValueError(f"hops must be a whole number of at least 1, got {_settings(model).hops}.")


def count_parameters(model: Model, sizes: Sizes) -> int:  # noqa: ARG001
    return sizes.features * sizes.classes


def _settings(model: Model) -> Hops:
    if not isinstance(model, Hops):
        raise TypeError(f"model must be a Hops, got a {type(model).__name__}.")
    return model


HOPS = Architecture(
    "hops",
    "k hops",
    build=build,
    export=export,
    streams=("hops",),
    kind=Hops,
    defaults={"hops": 3},
    dropout=0.0,
    check=check,
    parameters=count_parameters,
)
