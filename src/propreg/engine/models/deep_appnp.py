"""DeepAPPNP: APPNP with 64 steps on a graph that loses a fifth of its edges in every epoch (DropEdge)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.appnp import APPNP, Appnp
from propreg.engine.models.architecture import Source, check_two_layers, settings_of
from propreg.engine.ranges import check_share
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.models.network import Draw
    from propreg.engine.ops import Matrix, Pattern, ReplicaMatrix
    from propreg.engine.tasks.node import Problem


@dataclass(frozen=True)
class DeepAppnpModel(Model):
    """DeepAPPNP's settings.

    Args:
        name: ``"deep-appnp"``.
        steps, teleport: K and α.
        drop_edge: The share of edges that a training pass drops. Each direction of an edge is dropped by itself, a
            self-loop never, and what is left is normalized again.
    """

    name: str = "deep-appnp"
    steps: int = 64
    drop_edge: float = 0.2


class DeepAppnp(Appnp):
    """APPNP with dropped edges; ``edges`` is A with its loops, not normalized."""

    def __init__(self, problem: Problem, model: DeepAppnpModel) -> None:
        super().__init__(model, problem.features, problem.num_classes, problem.adjacency("sym", True))
        graph = problem.propagation("sym", True)
        row, col, values = graph.entries(problem.dtype)
        degree = graph.degree().to(problem.dtype)
        self.edges = problem.matrix(row, col, values * (degree[row] * degree[col]).sqrt())
        self.loops = self.edges.pattern.row == self.edges.pattern.col

    def propagation(self, draw: Draw) -> Matrix | ReplicaMatrix:
        """Â of what is left of the graph in a training pass."""
        masks = draw("edges") if draw.training else None
        if masks is None:
            return self.adjacency
        pattern = self.edges.pattern
        kept = masks.kept(pattern.nnz, self.edges.values.dtype).masked_fill_(self.loops, 1.0).mul_(self.edges.values)
        return normalized(pattern, kept)


def normalized(pattern: Pattern, values: Tensor) -> ReplicaMatrix:
    """D^(−1/2) A D^(−1/2) of each replica, from the values of A [R, nnz] in the order of rows."""
    ones = values.new_ones(len(values), pattern.shape[0], 1)
    degree = pattern.multiply(values, ones, False).squeeze(2)
    root = degree.rsqrt().masked_fill_(degree == 0, 0.0)
    return ops.ReplicaMatrix(pattern, values * root[:, pattern.row] * root[:, pattern.col])


def build(problem: Problem, model: Model) -> DeepAppnp:
    """On the graph with self-loops, symmetrically normalized."""
    return DeepAppnp(problem, settings_of(model, DeepAppnpModel))


def check(model: Model) -> None:
    """Raise for a setting out of its range."""
    check_two_layers(model)
    check_share(model, "drop_edge")


def count_kept(model: Model, sizes: Sizes, passes: int) -> int:
    """Those of APPNP, and the values of the edges."""
    return APPNP.activations(model, sizes, passes) + 5 * passes * (sizes.edges + sizes.nodes)


# Only K, α and the rate of DropEdge were published; the rest is APPNP's.
DEEP_APPNP = replace(
    APPNP,
    name="deep-appnp",
    title="DeepAPPNP",
    build=build,
    kind=DeepAppnpModel,
    rates={"edges": "drop_edge"},
    source=Source("Yang and others", 2021, "AAAI", "APPNP with 64 steps and DropEdge, named in the P-reg paper"),
    recipes={name: replace(recipe, ours=True) for name, recipe in APPNP.recipes.items()},
    check=check,
    activations=count_kept,
)
