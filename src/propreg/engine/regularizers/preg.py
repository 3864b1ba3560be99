"""P-reg: the divergence of each node's prediction from its propagated one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.regularizers.regularizer import Regularizer, Term, TrainingPasses
from propreg.engine.spec import Method, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops import Matrix
    from propreg.engine.tasks.node import Problem, Targets


class Preg(Term):
    """φ(Z, ÂZ), as :func:`propreg.preg`; ``connected`` [N] is 0 for a node without neighbors, else 1."""

    def __init__(self, method: Method, adjacency: Matrix, connected: Tensor) -> None:
        self.method, self.adjacency, self.connected = method, adjacency, connected

    def loss(self, passes: TrainingPasses, strength: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:
        """With cross entropy for φ, both cross entropies as one function."""
        together = passes.together() if is_usual(self.method) else None
        if together is not None:
            both = ops.preg_and_cross_entropy(self.adjacency, together, self._weights(counted), targets)
            if both is not None:
                return both[0] + strength * self._hinged(both[1])
        return super().loss(passes, strength, counted, targets)

    def value(self, z: Tensor, source: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:  # noqa: ARG002
        """The mean of φ over the nodes that count, hinged where there is a threshold. [R]."""
        weights = self._weights(counted)
        if is_usual(self.method):
            return self._hinged(ops.preg(self.adjacency, z, source, weights))
        propagated = self.adjacency(source)
        if self.method.detach == "self":
            z = z.detach()
        elif self.method.detach == "neighbors":
            propagated = propagated.detach()
        if self.method.phi == "cross_entropy":
            return self._hinged(ops.soft_cross_entropy(z, propagated, weights))
        from propreg._phi import PHIS

        return self._hinged((PHIS[self.method.phi](z, propagated) * weights).sum(-1))

    def _weights(self, counted: Tensor | None) -> Tensor:
        """The weight of each node: equal in a sum, and in a mean over the nodes that count."""
        if self.method.reduction == "sum":
            return self.connected if counted is None else (counted > 0) * self.connected
        return self.connected / self.connected.shape[0] if counted is None else counted * self.connected

    def _hinged(self, mean: Tensor) -> Tensor:
        mean = self.method.phi_scale * mean
        return mean if self.method.threshold is None else (mean - self.method.threshold).relu()


def is_usual(method: Method) -> bool:
    """Whether φ is cross entropy and nothing is detached: almost every run, with functions of its own."""
    return (method.phi, method.detach) == ("cross_entropy", None)


def build(problem: Problem, method: Method) -> Preg:
    """With the graph's propagation."""
    connected = problem.propagation(method.norm, method.add_self_loops).connected()
    adjacency = problem.adjacency(method.norm, method.add_self_loops)
    return Preg(method, adjacency, connected.to(problem.device, problem.dtype))


def check(method: Method) -> None:
    """Raise for a hinge of a sum."""
    if method.threshold is not None and method.reduction != "mean":
        raise ValueError(
            "threshold applies to the mean, max(0, mean − τ), and cannot be combined with reduction='sum'."
        )


def count_passes(method: Method) -> int:
    """A second one where the propagated logits are of another pass."""
    return 2 if method.second_pass else 1


def count_slopes(method: Method, sizes: Sizes) -> int:
    """The propagated logits and the gradients to both; without functions of its own φ keeps the softmax, too."""
    return (3 if is_usual(method) else 6) * sizes.nodes * sizes.classes


PREG = Regularizer(
    "preg",
    "P-reg",
    build=build,
    options=(
        "phi",
        "norm",
        "add_self_loops",
        "detach",
        "threshold",
        "phi_scale",
        "second_pass",
        "reduction",
        "schedule",
    ),
    presets={"paper": {}, "reference": {"norm": "sym", "add_self_loops": True, "second_pass": True}},
    # The paper's [0, 1].
    grid=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    first_look=(0.1, 0.3, 0.6, 1.0),
    masked=True,
    uses_edges=True,
    check=check,
    passes=count_passes,
    in_groups=is_usual,
    memory=count_slopes,
)
