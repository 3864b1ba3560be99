"""No regularizer: cross entropy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.regularizers.regularizer import Regularizer, Term, TrainingPasses
from propreg.engine.spec import Method

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem, Targets


class PlainTerm(Term):
    """Nothing beside cross entropy."""

    def loss(
        self,
        passes: TrainingPasses,
        strength: Tensor,  # noqa: ARG002
        counted: Tensor | None,  # noqa: ARG002
        targets: Targets,
    ) -> Tensor:
        """Cross entropy."""
        return ops.cross_entropy(passes.each()[0], targets)


def build(problem: Problem, method: Method) -> PlainTerm:  # noqa: ARG001
    """The same on every graph."""
    return PlainTerm()


PLAIN = Regularizer("plain", "plain", build=build)
