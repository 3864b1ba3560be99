"""A regularizer of the user's own: a function ``(z, edge_index) -> scalar``, called for one replica after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from propreg.engine.regularizers.preg import PREG
from propreg.engine.regularizers.regularizer import Regularizer, Term
from propreg.engine.spec import Method

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem, Targets

Function = Callable[["Tensor", "Tensor"], "Tensor"]


class OwnTerm(Term):
    """The function's value for the logits of the first training pass."""

    def __init__(self, function: Function, edge_index: Tensor) -> None:
        self.function, self.edge_index = function, edge_index

    def value(self, z: Tensor, source: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:  # noqa: ARG002
        """Of each replica. [R]."""
        import torch

        return torch.stack([self.function(logits, self.edge_index) for logits in z.unbind(0)])


def own_regularizer(function: Function) -> Regularizer:
    """The entry of a function; its strengths are those that P-reg is tried at."""
    name = getattr(function, "__name__", type(function).__name__).strip("<>")

    def build(problem: Problem, method: Method) -> OwnTerm:  # noqa: ARG001
        edge_index = problem.edge_index.to(problem.device)
        _check(function, name, edge_index, problem)
        return OwnTerm(function, edge_index)

    return Regularizer(f"own {name}", name, build=build, grid=PREG.grid, uses_edges=True, own=True)


def _check(function: Function, name: str, edge_index: Tensor, problem: Problem) -> None:
    """Raise for a function without a gradient, before anything is trained."""
    import torch

    generator = torch.Generator().manual_seed(0)
    z = torch.randn(problem.num_nodes, problem.num_classes, generator=generator, dtype=problem.dtype)
    z = z.to(problem.device).requires_grad_(True)
    with torch.enable_grad():
        value = function(z, edge_index)
    if not isinstance(value, torch.Tensor) or value.dim() or not value.requires_grad:
        got = f"shape {list(value.shape)}" if isinstance(value, torch.Tensor) and value.dim() else repr(value)[:60]
        raise TypeError(f"regularizer {name} must return a scalar tensor with a gradient to z, got {got}.")
