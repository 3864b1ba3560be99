"""Laplacian regularization: squared distances of logits along the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from propreg.engine.regularizers.regularizer import Regularizer, Term
from propreg.engine.spec import Method, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Matrix
    from propreg.engine.tasks.node import Problem, Targets


class Laplacian(Term):
    """tr(Zᵀ L Z) with the Laplacian matrix L, per undirected edge or as a sum."""

    def __init__(self, method: Method, matrix: Matrix, mass: float) -> None:
        self.method, self.matrix, self.mass = method, matrix, mass

    def value(self, z: Tensor, source: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:  # noqa: ARG002
        """The paper form. [R]."""
        total = (z * self.matrix(z)).sum((1, 2))
        return total / self.mass if self.method.reduction == "mean" else total


class OfficialLaplacian(Term):
    """2 · (mean distance over the stored edges)²."""

    def __init__(self, edges: Tensor) -> None:
        self.edges = edges

    def value(self, z: Tensor, source: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:  # noqa: ARG002
        """The official-code form. [R]."""
        import torch

        apart = z.index_select(1, self.edges[0]) - z.index_select(1, self.edges[1])
        lengths: Tensor = torch.linalg.vector_norm(apart, dim=-1)
        return 2 * (lengths.sum(-1) / max(lengths.shape[-1], 1)).square()  # 0 on a graph without edges


def build(problem: Problem, method: Method) -> Term:
    """With the matrix or the edges of the graph."""
    if method.variant == "paper":
        return Laplacian(method, *_matrix(problem))
    if problem.edge_weight is not None:
        raise ValueError("the official Laplacian knows no edge weights, but the graph has some: leave them out.")
    return OfficialLaplacian(problem.edge_index.to(problem.device))


def _matrix(problem: Problem) -> tuple[Matrix, float]:
    """The Laplacian matrix, and the weight of all undirected edges: their number, where they have no weights."""
    import torch

    from propreg._baselines import undirected_weights

    graph = problem.propagation("rw", False).to("cpu")  # on a GPU a sum of fractions depends on its order
    weight = undirected_weights(graph, torch.float64)
    source, target = graph.edge_index
    degree = weight.new_zeros(problem.num_nodes)
    degree.index_add_(0, source, weight).index_add_(0, target, weight)
    nodes = torch.arange(problem.num_nodes, device=source.device)
    row, col = torch.cat([source, target, nodes]), torch.cat([target, source, nodes])
    matrix = problem.matrix(row, col, torch.cat([-weight, -weight, degree]).to(problem.dtype))
    return matrix, float(weight.sum()) or 1.0


def check(method: Method) -> None:
    """Raise for a sum in the official-code form."""
    if method.variant == "official" and method.reduction != "mean":
        raise ValueError("the official Laplacian has no other reduction than 'mean'.")


def count_products(method: Method, sizes: Sizes) -> int:
    """L Z, the product with Z and their gradients; in the official-code form values of each edge and class."""
    return (4 * sizes.nodes + 3 * sizes.edges * (method.variant == "official")) * sizes.classes


LAPLACIAN = Regularizer(
    "laplacian",
    "Laplacian",
    build=build,
    options=("variant", "reduction", "schedule"),
    presets={"paper": {}, "reference": {"variant": "official"}},
    # Per edge, so that one grid serves all graphs.
    grid=(1e-5, 3e-5, 1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    uses_edges=True,
    check=check,
    memory=count_products,
)
