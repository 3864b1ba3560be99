"""Networks that several training methods share."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import ON_WEIGHTED_EDGES, Layer, transposed
from propreg.engine.models.gcn_mlp import Layers
from propreg.engine.models.network import Draw, OnFeatures, Parameters, Start, Weight

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Features
    from propreg.engine.spec import Model
    from propreg.engine.tasks.node import Problem


class WithoutBias(Layers):
    """A GCN or MLP whose biases stay at 0."""

    def weights(self) -> dict[str, Weight]:
        """Those of the layers, with biases that are not trained."""
        known = super().weights()
        return {name: replace(w, trained=False) if name[0] == "b" else w for name, w in known.items()}


def build_gcn_without_bias(problem: Problem, model: Model) -> WithoutBias:
    """On the graph with self-loops, symmetrically normalized."""
    return WithoutBias(model, problem.features, problem.num_classes, problem.adjacency("sym", True))


class FromFeatures(OnFeatures):
    """Two layers of a GCN without biases, as the authors of GMNN and GraphMix have them."""

    def __init__(self, problem: Problem, model: Model, binarize: bool) -> None:
        self.spec, self.classes, self.adjacency = model, problem.num_classes, problem.adjacency("sym", True)
        self.features = binarized(problem.features) if binarize else problem.features

    def weights(self) -> dict[str, Weight]:
        """Uniform within 1/√fan_out."""
        return two_layers("w", self.features.shape[1], self.spec.hidden, self.classes)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:  # noqa: ARG002
        """Logits [R, N, C]."""
        h = self.adjacency(self.first(p, draw("input") if self.spec.input_dropout > 0 else None)).relu()
        return self.adjacency(ops.dropped_linear(h, p["w1"], draw("hidden1")))


def two_layers(name: str, *widths: int) -> dict[str, Weight]:
    """Weights uniform within 1/√fan_out."""
    sizes = enumerate(itertools.pairwise(widths))
    return {f"{name}{i}": Weight(size, start=Start(spread=size[1] ** -0.5)) for i, size in sizes}


def rows(h: Tensor, nodes: Tensor) -> Tensor:
    """The rows [R, K, W] of h [R, N, W] at nodes [R, K], which may repeat: a GPU, too, sums gradients in one order."""
    import torch

    return h[torch.arange(len(h), device=h.device).unsqueeze(1), nodes]


def binarized(features: Features) -> Features:
    """1 over the number of features in a row, where there is one that is not 0."""
    pattern, values = features.matrix.pattern, features.matrix.values
    there = (values != 0).to(values.dtype)
    count = there.new_zeros(pattern.shape[0]).index_add_(0, pattern.row, there).clamp_min_(1.0)
    return ops.Features(ops.Matrix(pattern.row, pattern.col, there / count[pattern.row], pattern.shape))


def export_without_bias(model: Model, features: int, classes: int, dropout: float, *, binarize: bool) -> list[Layer]:
    """PyG's ``GCNConv`` layers without biases, after a module of ours where features are binarized."""
    from torch import nn
    from torch_geometric.nn import GCNConv

    from propreg.engine.models.modules import Binarized

    found = [Layer(Binarized())] if binarize else []
    for i, (fan_in, fan_out) in enumerate(((features, model.hidden), (model.hidden, classes))):
        found += [Layer(nn.ReLU()), Layer(nn.Dropout(dropout))] if i else []
        conv = GCNConv(fan_in, fan_out, bias=False)
        found.append(Layer(conv, ON_WEIGHTED_EDGES, {"lin.weight": transposed(f"w{i}")}))
    return found
