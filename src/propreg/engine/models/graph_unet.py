"""Graph U-Nets: convolutions on ever smaller graphs of the highest-scoring nodes, then back, with skip connections.

    h₀ = relu(conv(X))
    going down:   s = h w/‖w‖,  keep the k nodes with the largest s,  h ← tanh(s) h of these,  A ← (A + I)² between them
                  without its diagonal,  h ← relu(conv(h))
    going up:     put the rows of h at their nodes, 0 elsewhere, add the h of that level, conv, and relu but at the end

A convolution is D^(−1/2) (A + 2I) D^(−1/2) h W + b. A training pass drops undirected edges, before anything else.

(A + I)² of the whole graph is never computed: only that of the kept nodes, from the rows and columns that belong to
them. It is dense, as are the levels below, which have half of the nodes of the one above.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.architecture import (
    ON_WEIGHTED_EDGES,
    Architecture,
    Layer,
    Recipe,
    Source,
    Weights,
    check_two_layers,
    count_dropped,
    same,
    settings_of,
    transposed,
)
from propreg.engine.models.deep_appnp import normalized
from propreg.engine.models.network import Draw, Parameters, SharedMap, Start, Weight
from propreg.engine.ranges import check_share, check_whole
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Matrix, Pattern, ReplicaMatrix
    from propreg.engine.tasks.node import Problem


@dataclass(frozen=True)
class GraphUNetModel(Model):
    """The settings of Graph U-Nets.

    Args:
        name: ``"graph-unet"``.
        hidden: The width of every level.
        input_dropout: Dropout on the features.
        depth: How often the graph is pooled.
        pooled: How many nodes the first pooling keeps, or all; each further one keeps half of them.
        drop_edge: The share of undirected edges that a training pass drops; what is left is normalized again.
    """

    name: str = "graph-unet"
    hidden: int = 32
    input_dropout: float = 0.92
    depth: int = 3
    pooled: int = 2000
    drop_edge: float = 0.2


class GraphUNet(SharedMap):
    """Convolutions w0 … w_depth down and the others up; ``score1`` … are the directions that nodes are scored by."""

    spec: GraphUNetModel
    recordable = False  # the number of entries between kept nodes is known only once they are chosen

    def __init__(self, problem: Problem, model: GraphUNetModel) -> None:
        import torch

        self.spec, self.features, self.classes = model, problem.features, problem.num_classes
        edges, nodes = problem.edge_index.cpu(), torch.arange(problem.num_nodes)
        given = problem.edge_weight
        weight = torch.ones(edges.shape[1]) if given is None else given
        loop, own = edges[0] == edges[1], torch.full((problem.num_nodes,), 2.0).to(weight.dtype)
        own[edges[0, loop]] = weight[loop]
        (source, target), weight = edges[:, ~loop], weight[~loop]
        row, col = torch.cat([target, nodes]), torch.cat([source, nodes])
        self.edges = problem.matrix(row, col, torch.cat([weight, own]).to(problem.dtype))
        self.pattern = pattern = self.edges.pattern
        self.loops = pattern.row == pattern.col
        ends = torch.minimum(pattern.row, pattern.col) * problem.num_nodes + torch.maximum(pattern.row, pattern.col)
        pairs, self.pair = torch.unique(ends, return_inverse=True)
        self.pairs = len(pairs)
        values = normalized(pattern, self.edges.values.unsqueeze(0)).values[0]
        self.adjacency = problem.matrix(pattern.row, pattern.col, values)

    def weights(self) -> dict[str, Weight]:
        """Glorot's for convolutions, torch's for scores."""
        width, depth = self.spec.hidden, self.spec.depth
        sizes = [(self.features.shape[1], width), *[(width, width)] * (2 * depth - 1), (width, self.classes)]
        found: dict[str, Weight] = {}
        for i, size in enumerate(sizes):
            found |= {f"w{i}": Weight(size, size), f"b{i}": Weight(size[1:])}
        score = Weight((width,), start=Start(spread=width**-0.5))
        return found | {f"score{i}": score for i in range(1, depth + 1)}

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        masks, depth = draw("edges") if draw.training else None, self.spec.depth
        values = self.edges.values.unsqueeze(0)
        matrix: Matrix | ReplicaMatrix = self.adjacency
        if masks is not None:
            kept = masks.kept(self.pairs, values.dtype)[:, self.pair].masked_fill_(self.loops, 1.0)
            values = kept.mul_(values)
            matrix = normalized(self.pattern, values)
        h = ops.bias_relu(matrix(self.first(p, draw("input")) if begun is None else begun), p["b0"])
        levels, skips, kept_nodes = list[Pooled](), [h], list["Tensor"]()
        for i, nodes in enumerate(self.sizes(h.shape[1]), 1):
            score = (h * p[f"score{i}"].unsqueeze(1)).sum(2) / p[f"score{i}"].norm(dim=1, keepdim=True)
            # Of nodes that are alike the first ones, whatever the rounding of float64: in any batch the same.
            order = score.detach().float().sort(dim=1, descending=True, stable=True).indices
            chosen = order[:, :nodes].sort().values
            h = ops.rows(h, chosen) * score.gather(1, chosen).tanh().unsqueeze(2)
            if levels:
                levels.append(levels[-1].pooled(chosen))
            else:
                hops = values.masked_fill(self.loops, 1.0).expand(len(h), -1)
                levels.append(Pooled(two_hops(self.pattern, hops, chosen)))
            h = (levels[-1](h @ p[f"w{i}"]) + p[f"b{i}"].unsqueeze(1)).relu()
            kept_nodes.append(chosen)
            skips.append(h)
        skips.pop()
        for i, (skip, chosen) in enumerate(zip(skips[::-1], kept_nodes[::-1], strict=True), depth + 1):
            levels.pop()
            h = skip + h.new_zeros(skip.shape).scatter(1, chosen.unsqueeze(2).expand_as(h), h)
            spread = (levels[-1] if levels else matrix)(h @ p[f"w{i}"])
            h = spread + p[f"b{i}"].unsqueeze(1)
            h = h.relu() if levels else h
        return h

    def sizes(self, nodes: int) -> list[int]:
        """How many nodes each pooling keeps."""
        kept = [min(self.spec.pooled, nodes)]
        while len(kept) < self.spec.depth:
            kept.append(math.ceil(kept[-1] / 2))
        return kept


class Pooled:
    """A level: A between its nodes, [R, K, K] without a diagonal; called, D^(−1/2) (A + 2I) D^(−1/2) x of [R, K, W]."""

    def __init__(self, a: Tensor) -> None:
        a.diagonal(dim1=1, dim2=2).zero_()
        self.a = a
        self.root = (a.sum(2, keepdim=True) + 2).rsqrt()

    def __call__(self, x: Tensor) -> Tensor:
        x = self.root * x
        result: Tensor = self.root * (self.a @ x + 2 * x)
        return result

    def pooled(self, chosen: Tensor) -> Pooled:
        """The level of the chosen nodes [R, k]."""
        a = self.a.clone()
        a.diagonal(dim1=1, dim2=2).fill_(1.0)
        return Pooled(ops.rows(a, chosen) @ a.gather(2, chosen.unsqueeze(1).expand(-1, a.shape[1], -1)))


def two_hops(pattern: Pattern, values: Tensor, chosen: Tensor) -> Tensor:
    """The entries of A² between the chosen nodes [R, k], from values [R, nnz] of A in the order of rows. [R, k, k]."""
    import torch

    def sparse(row: Tensor, col: Tensor, values: Tensor, *shape: int) -> Tensor:
        return torch.sparse_coo_tensor(torch.stack([row, col]), values, shape, check_invariants=False)

    nodes, size, found = pattern.shape[0], chosen.shape[1], []
    for v, kept in zip(values, chosen, strict=True):
        place = torch.full((nodes,), -1, device=v.device)
        place[kept] = torch.arange(size, device=v.device)
        row, col = place[pattern.row], place[pattern.col]
        i, j = ((row >= 0) & (v != 0)).nonzero().squeeze(1), ((col >= 0) & (v != 0)).nonzero().squeeze(1)
        left = sparse(row[i], pattern.col[i], v[i], size, nodes)
        right = sparse(pattern.row[j], col[j], v[j], nodes, size)
        found.append(torch.sparse.mm(left, right).to_dense())
    return torch.stack(found)


def build(problem: Problem, model: Model) -> GraphUNet:
    """On the graph with self-loops of weight 2 where a node has none, symmetrically normalized."""
    return GraphUNet(problem, settings_of(model, GraphUNetModel))


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:  # noqa: ARG001
    """PyG's ``GraphUNet``."""
    from propreg.engine.models.modules import WeightedUNet

    mine = settings_of(model, GraphUNetModel)
    module = WeightedUNet(features, mine.hidden, classes, mine.depth, [mine.pooled, *[0.5] * (mine.depth - 1)])
    state: dict[str, Callable[[Weights], Tensor]] = {}
    for i in range(2 * mine.depth + 1):
        name = f"net.down_convs.{i}" if i <= mine.depth else f"net.up_convs.{i - mine.depth - 1}"
        state |= {f"{name}.lin.weight": transposed(f"w{i}"), f"{name}.bias": same(f"b{i}")}
    state |= {f"net.pools.{i - 1}.select.weight": _as_row(f"score{i}") for i in range(1, mine.depth + 1)}
    return [Layer(module, ON_WEIGHTED_EDGES, state)]


def _as_row(name: str) -> Callable[[Weights], Tensor]:
    return lambda weights: weights[name].unsqueeze(0)


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_two_layers(model)
    check_whole(model, "depth", "pooled")
    check_share(model, "drop_edge")


def count_parameters(model: Model, sizes: Sizes) -> int:
    """Those of the convolutions, and the scores."""
    mine = settings_of(model, GraphUNetModel)
    inner = (2 * mine.depth - 1) * mine.hidden + mine.depth
    return mine.hidden * (sizes.features + sizes.classes + inner)


def count_activations(model: Model, sizes: Sizes, passes: int) -> int:
    """The pooled levels of each pass, and one pooling; the slabs of each level; the values of the edges."""
    mine = settings_of(model, GraphUNetModel)
    kept = min(mine.pooled, sizes.nodes)
    slabs = (8 * passes + 4) * (sizes.nodes + 2 * kept) * mine.hidden
    logits = (2 + 2 * passes) * sizes.nodes * sizes.classes
    entries = (6 * passes + 12) * (sizes.edges + sizes.nodes)
    return int((1.4 * passes + 4) * kept**2) + slabs + logits + entries + count_dropped(model, sizes, passes)


def count_propagating(model: Model, sizes: Sizes) -> int:
    """The numbers that a level touches."""
    mine = settings_of(model, GraphUNetModel)
    kept = min(mine.pooled, sizes.nodes)
    return 4 * kept**2 + sizes.nodes * mine.hidden + sizes.edges * mine.hidden


_TRAINING = {"lr": 0.01, "weight_decay": 0.001, "max_epochs": 200, "rule": "first_best"}
_CORA = Recipe({}, {**_TRAINING, "dropout": 0.0}, normalize=False)
# The code that reaches these numbers, an example of PyG's, has settings for Cora alone.
_OURS = Recipe(_CORA.settings, _CORA.training, normalize=False, ours=True)

GRAPH_UNET = Architecture(
    "graph-unet",
    "Graph U-Net",
    build=build,
    export=export,
    streams=("hidden", "depth"),
    kind=GraphUNetModel,
    dropout=0.0,
    rates={"edges": "drop_edge"},
    training=_TRAINING,
    source=Source("Gao and Ji", 2019, "ICML", "pooling to the highest-scoring nodes, level by level, and back"),
    recipes={"cora": _CORA, "citeseer": _OURS, "pubmed": _OURS},
    check=check,
    parameters=count_parameters,
    activations=count_activations,
    cost=count_propagating,
)
