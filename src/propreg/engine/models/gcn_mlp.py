"""GCN and MLP: linear, propagate, bias, ReLU, dropout, …, linear, propagate, bias."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import ON_WEIGHTED_EDGES, Architecture, Layer, Layered, Source, same, transposed
from propreg.engine.models.network import Draw, Network, OnFeatures, Parameters, Weight
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Features, Masks, Matrix
    from propreg.engine.tasks.node import Problem


class Layers(OnFeatures):
    """A GCN (with an adjacency for all layers, or one for each) or an MLP (without)."""

    def __init__(
        self, spec: Model, features: Features, classes: int, adjacency: Matrix | Sequence[Matrix] | None
    ) -> None:
        self.spec, self.features = spec, features
        each = adjacency if isinstance(adjacency, Sequence) else [adjacency] * spec.layers
        self.adjacencies: Sequence[Matrix | None] = each
        self.adjacency, first = each[-1], each[0]
        fold = features.prefers_dense(spec.hidden) and spec.input_dropout == 0
        self._folded = features.propagated(first) if fold and first is not None else None
        self.widths = [features.shape[1], *[spec.hidden] * (spec.layers - 1), classes]

    def weights(self) -> dict[str, Weight]:
        """Weights and biases, first layer first."""
        found = {}
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(self.widths)):
            found[f"w{i}"] = Weight((fan_in, fan_out), (fan_in, fan_out))
            found[f"b{i}"] = Weight((fan_out,))
        return found

    def begin_from(self, p: Parameters, xw: Tensor) -> Tensor:
        """relu(Â (X W) + b), from X W."""
        # Without a product the ReLU overwrites its argument, which belongs to the caller.
        first = self.adjacencies[0]
        return ops.propagate_relu(first, xw if first is not None else xw.clone(), p["b0"])

    def begin(self, p: Parameters) -> Tensor | None:
        """The first layer, where its input is not dropped."""
        return None if self.spec.input_dropout > 0 else self._first_layer(p, None)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        h = self._first_layer(p, draw("input")) if begun is None else begun
        last = self.spec.layers - 1
        for i in range(1, last + 1):
            h = ops.dropped_linear(h, p[f"w{i}"], draw(f"hidden{i}"), rectified=True)
            h = (ops.propagate_relu if i < last else ops.propagate)(self.adjacencies[i], h, p[f"b{i}"])
        return h

    def finish_all(
        self, p: Parameters, begun: Tensor | None, draws: Sequence[Draw], in_groups: bool
    ) -> tuple[Tensor, Tensor] | None:
        """The evaluation and all training passes of two layers, where kernels can."""
        from propreg.engine import kernels

        masks = [m for m in (draw("hidden1") for draw in draws) if m is not None]
        if begun is None or self.spec.layers > 2 or len(masks) < len(draws) or not kernels.usable(begun, p["w1"]):
            return None
        from propreg.engine.kernels.linear.dropped_linear import fused
        from propreg.engine.kernels.linear.last_layer import last_layer

        if not fused(begun, p["w1"]):
            return None
        return last_layer(self.adjacency, begun, p["w1"], p["b1"], masks, in_groups=in_groups)

    def _first_layer(self, p: Parameters, masks: Masks | None) -> Tensor:
        first = self.adjacencies[0]
        if masks is None and (self._folded is not None or first is None):
            return (self._folded or self.features).rectified(p["w0"], p["b0"])
        return ops.propagate_relu(first, self.features(p["w0"], masks), p["b0"])


class OnMlp(Network):
    """An MLP, and what a subclass makes of its logits."""

    mlp: Layers

    def first(self, p: Parameters, masks: Masks | None = None) -> Tensor:
        """X W."""
        return self.mlp.first(p, masks)

    def begin_from(self, p: Parameters, xw: Tensor) -> Tensor:
        """relu(X W + b), from X W."""
        return self.mlp.begin_from(p, xw)

    def begin(self, p: Parameters) -> Tensor | None:
        """The first layer, where its input is not dropped."""
        return self.mlp.begin(p)


def build_gcn(problem: Problem, model: Model) -> Layers:
    """On the graph with self-loops, symmetrically normalized."""
    return Layers(model, problem.features, problem.num_classes, problem.adjacencies("sym", True, model.layers))


def build_mlp(problem: Problem, model: Model) -> Layers:
    """Without the graph."""
    return Layers(model, problem.features, problem.num_classes, None)


def layered_gcn(model: Model) -> Layered:
    """Each layer's linear map, then its propagation."""
    return _layered(model, lambda problem: problem.adjacency("sym", True), model.layers)


def layered_mlp(model: Model) -> Layered:
    """Each layer's linear map, then its bias."""
    return _layered(model, lambda _: None, 0)


def _layered(model: Model, adjacency: Callable[[Problem], Matrix | None], hops: int) -> Layered:
    def rows(i: int, problem: Problem, p: Parameters, h: Tensor | None) -> Tensor:
        return problem.features(p["w0"]) if h is None else ops.dropped_linear(h, p[f"w{i}"], None)

    def edges(i: int, problem: Problem, p: Parameters, h: Tensor) -> Tensor:
        onward = ops.propagate_relu if i < model.layers - 1 else ops.propagate
        return onward(adjacency(problem), h, p[f"b{i}"])

    numbers = range(model.layers)
    return Layered(hops, [partial(rows, i) for i in numbers], [partial(edges, i) for i in numbers])


def export_gcn(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """PyG's ``GCNConv`` layers."""
    from torch_geometric.nn import GCNConv

    def layer(i: int, fan_in: int, fan_out: int) -> Layer:
        state = {"lin.weight": transposed(f"w{i}"), "bias": same(f"b{i}")}
        return Layer(GCNConv(fan_in, fan_out), ON_WEIGHTED_EDGES, state)

    return _stack(layer, model, features, classes, dropout)


def export_mlp(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """Linear layers."""
    from torch import nn

    def layer(i: int, fan_in: int, fan_out: int) -> Layer:
        return Layer(nn.Linear(fan_in, fan_out), state={"weight": transposed(f"w{i}"), "bias": same(f"b{i}")})

    return _stack(layer, model, features, classes, dropout)


def _stack(
    layer: Callable[[int, int, int], Layer], model: Model, features: int, classes: int, dropout: float
) -> list[Layer]:
    """Layers with ReLU and dropout between them."""
    from torch import nn

    found: list[Layer] = []
    for i, (fan_in, fan_out) in enumerate(
        itertools.pairwise([features, *[model.hidden] * (model.layers - 1), classes])
    ):
        between = [Layer(nn.ReLU()), Layer(nn.Dropout(dropout))] if i else []
        found += [*between, layer(i, fan_in, fan_out)]
    return found


def count_dense(model: Model, sizes: Sizes) -> int:
    """The numbers that a layer touches which propagates nothing."""
    return sizes.nodes * model.width


GCN = Architecture(
    "gcn",
    "GCN",
    build=build_gcn,
    export=export_gcn,
    streams=("hidden", "layers"),
    layered=layered_gcn,
    source=Source("Kipf and Welling", 2017, "ICLR", "layers that average over neighbors: a linear map, then ReLU"),
)

MLP = Architecture(
    "mlp",
    "MLP",
    build=build_mlp,
    export=export_mlp,
    streams=("hidden", "layers"),
    layered=layered_mlp,
    source=Source("", 0, "", "the features alone, without the graph"),
    uses_edge_weights=False,
    cost=count_dense,
)
