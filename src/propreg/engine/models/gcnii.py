"""GCNII: a deep GCN whose layers keep a share of the first one (initial residual) and are close to the identity.

h⁰ = relu(x W + b),    s = (1 − α) Â h^{l−1} + α h⁰,    h^l = relu((1 − β_l) s + β_l s W_l),    β_l = ln(λ/l + 1)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import (
    ON_WEIGHTED_EDGES,
    Architecture,
    Layer,
    Recipe,
    Source,
    count_dropped,
    same,
    settings_of,
    transposed,
)
from propreg.engine.models.network import Draw, OnFeatures, Parameters, Start, Weight, linear
from propreg.engine.ranges import check_above_0, check_at_least_0
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem


@dataclass(frozen=True)
class GcniiModel(Model):
    """GCNII's settings; the defaults are those of Cora.

    Args:
        name: ``"gcnii"``.
        hidden, layers: Width and number of the convolutions.
        teleport: The share of the first layer, α.
        identity_decay: How slowly the layers approach the identity, λ.
        conv_decay: The weight decay of the convolutions; the replica's own is that of the two dense layers.
    """

    name: str = "gcnii"
    layers: int = 64
    identity_decay: float = 0.5
    conv_decay: float = 0.01


class Gcnii(OnFeatures):
    """Dropout acts on the input, before every convolution and before the output."""

    def __init__(self, problem: Problem, model: GcniiModel) -> None:
        self.spec, self.features, self.classes = model, problem.features, problem.num_classes
        import torch

        self.adjacency = problem.adjacency("sym", True).scaled(1 - model.teleport)
        self.identity = torch.eye(model.hidden, dtype=self.adjacency.values.dtype, device=problem.device)

    def weights(self) -> dict[str, Weight]:
        """The convolutions between two dense layers."""
        width, layers = self.spec.hidden, self.spec.layers
        conv = Weight((width, width), start=Start(spread=width**-0.5), decay="conv_decay")
        first, last = linear(0, self.features.shape[1], width), linear(layers + 1, width, self.classes)
        return first | {f"w{i}": conv for i in range(1, layers + 1)} | last

    def begin_from(self, p: Parameters, xw: Tensor) -> Tensor:
        """relu(X W + b), from X W."""
        return ops.bias_relu(xw.clone(), p["b0"])

    def begin(self, p: Parameters) -> Tensor | None:
        """The first layer, where its input is not dropped."""
        return None if self.spec.input_dropout > 0 else ops.bias_relu(self.first(p), p["b0"])

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        start = ops.bias_relu(self.first(p, draw("input")), p["b0"]) if begun is None else begun
        h, residual, last = start, self.spec.teleport * start, self.spec.layers + 1
        for i in range(1, last):
            beta = math.log(self.spec.identity_decay / i + 1)
            mixed = self.adjacency.plus(ops.dropped(h, draw(f"hidden{i}")), residual)
            h = (mixed @ ((1 - beta) * self.identity + beta * p[f"w{i}"])).relu_()
        return ops.dropped_linear(h, p[f"w{last}"], draw(f"hidden{last}")) + p[f"b{last}"].unsqueeze(1)


def build(problem: Problem, model: Model) -> Gcnii:
    """On the graph with self-loops, symmetrically normalized."""
    return Gcnii(problem, settings_of(model, GcniiModel))


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """PyG's ``GCN2Conv`` layers in a module of ours, which hands the first layer to each of them."""
    from propreg.engine.models.modules import DeepResidual

    mine, last = settings_of(model, GcniiModel), model.layers + 1
    module = DeepResidual(
        features, mine.hidden, classes, mine.layers, mine.teleport, mine.identity_decay, dropout=dropout
    )
    state = {f"convs.{i - 1}.weight1": same(f"w{i}") for i in range(1, last)}
    for name, number in (("first", 0), ("last", last)):
        state |= {f"{name}.weight": transposed(f"w{number}"), f"{name}.bias": same(f"b{number}")}
    return [Layer(module, ON_WEIGHTED_EDGES, state)]


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_above_0(model, "identity_decay")
    check_at_least_0(model, "conv_decay")


def count_parameters(model: Model, sizes: Sizes) -> int:
    """Two dense layers and the convolutions."""
    return model.hidden * (sizes.features + sizes.classes + model.layers * model.hidden)


def count_activations(model: Model, sizes: Sizes, passes: int) -> int:
    """Of each convolution its mix and its output; a few slabs in the making."""
    slabs = (2.5 * model.layers + 8) * passes + 4
    logits = (2 + 2 * passes) * sizes.classes
    return int(sizes.nodes * (slabs * model.hidden + logits)) + count_dropped(model, sizes, passes)


def count_propagating(model: Model, sizes: Sizes) -> int:
    """The numbers that a layer touches."""
    return sizes.nodes * model.width * (6 + model.width // 16) + sizes.edges * model.width


_TRAINING = {"lr": 0.01, "weight_decay": 5e-4, "max_epochs": 1500, "patience": 100, "rule": "val_loss"}


def _recipe(layers: int, hidden: int, identity_decay: float, rate: float, conv_decay: float) -> Recipe:
    settings = {"layers": layers, "hidden": hidden, "identity_decay": identity_decay, "conv_decay": conv_decay}
    return Recipe({**settings, "input_dropout": rate}, {**_TRAINING, "dropout": rate})


GCNII = Architecture(
    "gcnii",
    "GCNII",
    build=build,
    export=export,
    streams=("hidden", "layers"),
    settings=("teleport",),
    per_replica=("input_dropout", "conv_decay"),
    kind=GcniiModel,
    defaults={"input_dropout": 0.6},
    dropout=0.6,
    training=_TRAINING,
    source=Source("Chen and others", 2020, "ICML", "a deep GCN with initial residuals and layers near the identity"),
    recipes={
        "cora": _recipe(64, 64, 0.5, 0.6, 0.01),
        "citeseer": _recipe(32, 256, 0.6, 0.7, 0.01),
        "pubmed": _recipe(16, 256, 0.4, 0.5, 5e-4),
    },
    check=check,
    parameters=count_parameters,
    activations=count_activations,
    cost=count_propagating,
)
