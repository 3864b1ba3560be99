"""The graph attention network: attention over heads, ELU, attention with averaged output heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import (
    ON_EDGES,
    Architecture,
    Layer,
    Layered,
    Source,
    Weights,
    check_two_layers,
    count_dropped,
    same,
    transposed,
)
from propreg.engine.models.network import Draw, Parameters, SharedMap, Weight
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Features, Masks, Pattern
    from propreg.engine.tasks.node import Problem


class Gat(SharedMap):
    """Two attention layers on the graph with self-loops; ``pattern`` holds an entry for every edge j → i and loop."""

    def __init__(self, spec: Model, features: Features, classes: int, pattern: Pattern) -> None:
        self.spec, self.features, self.pattern, self.classes = spec, features, pattern, classes

    def weights(self) -> dict[str, Weight]:
        """Per layer: the map, the two halves of the attention vector, the bias."""
        s, c, width = self.spec, self.classes, self.features.shape[1]
        wide = s.heads * s.hidden
        return {
            "w0": Weight((width, wide), (width, wide)),
            # The authors' release kept both halves in one tensor [heads, 2·width], whose Glorot fans these are.
            "source0": Weight((s.heads, s.hidden), (s.heads, 2 * s.hidden)),
            "target0": Weight((s.heads, s.hidden), (s.heads, 2 * s.hidden)),
            "b0": Weight((wide,)),
            "w1": Weight((wide, s.out_heads * c), (wide, s.out_heads * c)),
            "source1": Weight((s.out_heads, c), (s.out_heads, 2 * c)),
            "target1": Weight((s.out_heads, c), (s.out_heads, 2 * c)),
            "b1": Weight((c,)),
        }

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        from torch.nn.functional import pad

        s = self.spec
        h = self.first(p, draw("input")) if begun is None else begun
        h = attention(self.pattern, h, p["source0"], p["target0"], draw("attention0"))
        h, source, target = h.flatten(2), p["source1"], p["target1"]
        # The rows of one output head are padded with zeros where that makes them faster to gather.
        width = ops.row_for(h, p["w1"]) if s.out_heads == 1 else None
        h = ops.elu_linear(h, p["b0"], p["w1"], draw("hidden1"), width)
        if width is not None:
            source, target = (pad(vector, (width - self.classes, 0)) for vector in (source, target))
        z = attention(self.pattern, h, source, target, draw("attention1"))[..., -self.classes :]
        return (z.mean(2) if s.out_heads > 1 else z.squeeze(2)) + p["b1"].unsqueeze(1)


def attention(pattern: Pattern, h: Tensor, source: Tensor, target: Tensor, masks: Masks | None) -> Tensor:
    """Aggregate with the softmax of leaky(source · h_j + target · h_i); [R, N, heads · D] → [R, N, heads, D]."""
    from propreg.engine import kernels

    if kernels.usable(h, source, target):
        from propreg.engine.kernels.attention import attention as kernel

        return kernel.attention(pattern, h, source, target, masks)
    replicas, nodes, _ = h.shape
    heads, width = source.shape[1:]
    by_head = h.view(replicas, nodes, heads, width).transpose(1, 2).reshape(replicas * heads, nodes, width)
    to_source = by_head.bmm(source.reshape(-1, width, 1)).squeeze(-1)
    to_target = by_head.bmm(target.reshape(-1, width, 1)).squeeze(-1)
    out = ops.attend(pattern, by_head, to_source, to_target, masks)
    return out.view(replicas, heads, nodes, width).transpose(1, 2)


def build(problem: Problem, model: Model) -> Gat:
    """On every edge as listed, and one loop at each node."""
    return Gat(model, problem.features, problem.num_classes, problem.looped_pattern())


def layered(model: Model) -> Layered:
    """Each layer's linear map, then its attention."""
    from torch.nn.functional import elu

    def first(problem: Problem, p: Parameters, h: Tensor | None) -> Tensor:  # noqa: ARG001
        return problem.features(p["w0"])

    def second(problem: Problem, p: Parameters, h: Tensor | None) -> Tensor:  # noqa: ARG001
        assert h is not None
        return ops.dropped_linear(h, p["w1"], None)

    def concatenated(problem: Problem, p: Parameters, h: Tensor) -> Tensor:
        out = attention(problem.looped_pattern(), h, p["source0"], p["target0"], None).flatten(2)
        return elu(out + p["b0"].unsqueeze(1))

    def averaged(problem: Problem, p: Parameters, h: Tensor) -> Tensor:
        z = attention(problem.looped_pattern(), h, p["source1"], p["target1"], None)
        return z.mean(2) + p["b1"].unsqueeze(1)

    return Layered(model.layers, [first, second], [concatenated, averaged])


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """PyG's ``GATConv`` layers."""
    from torch import nn
    from torch_geometric.nn import GATConv

    def state(i: int) -> dict[str, Callable[[Weights], Tensor]]:
        def vector(name: str) -> Callable[[Weights], Tensor]:
            return lambda weights: weights[name].unsqueeze(0)

        attention = {"att_src": vector(f"source{i}"), "att_dst": vector(f"target{i}")}
        return {"lin.weight": transposed(f"w{i}"), "bias": same(f"b{i}"), **attention}

    wide, rate = model.heads * model.hidden, model.attention_dropout
    first = GATConv(features, model.hidden, heads=model.heads, dropout=rate)
    second = GATConv(wide, classes, heads=model.out_heads, concat=False, dropout=rate)
    between = [Layer(nn.ELU()), Layer(nn.Dropout(dropout))]
    return [Layer(first, ON_EDGES, state(0)), *between, Layer(second, ON_EDGES, state(1))]


def all_heads(model: Model) -> int:
    """The columns of all heads."""
    return model.heads * model.hidden


def count_parameters(model: Model, sizes: Sizes) -> int:
    """Those of the two linear maps; the vectors are few."""
    return sizes.features * model.width + model.width * sizes.classes * model.out_heads


def count_activations(model: Model, sizes: Sizes, passes: int) -> int:
    """Slabs of nodes, and numbers of each edge and head."""
    slabs = (3 + 3 * passes) * model.width + (2 + passes) * sizes.classes * model.out_heads
    scores = 6 * passes * (sizes.edges + sizes.nodes) * (model.heads + model.out_heads)
    return sizes.nodes * slabs + scores + count_dropped(model, sizes, passes - 1)


def count_touched(model: Model, sizes: Sizes) -> int:
    """Each node's row four times, and each edge's."""
    return 4 * sizes.nodes * model.width + sizes.edges * (model.width + sizes.classes)


GAT = Architecture(
    "gat",
    "GAT",
    build=build,
    export=export,
    streams=("hidden", "layers", "heads", "out_heads"),
    settings=("heads", "out_heads", "attention_dropout"),
    defaults={"hidden": 16, "input_dropout": 0.6, "attention_dropout": 0.6},
    dropout=0.6,
    layered=layered,
    source=Source("Veličković and others", 2018, "ICLR", "layers that weigh their neighbors by attention"),
    uses_edge_weights=False,
    check=check_two_layers,
    width=all_heads,
    parameters=count_parameters,
    activations=count_activations,
    cost=count_touched,
)
