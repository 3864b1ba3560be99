"""Label smoothing: cross entropy against (1 − α) y + α/C instead of y, with the strength for α."""

from __future__ import annotations

from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.regularizers.regularizer import SHARES, Regularizer, Term, TrainingPasses
from propreg.engine.spec import Method

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem, Targets


class LabelSmoothing(Term):
    """Other targets in place of a term."""

    def loss(self, passes: TrainingPasses, strength: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:  # noqa: ARG002
        """Cross entropy against the smoothed labels."""
        return ops.cross_entropy(passes.each()[0], targets, strength)


def build(problem: Problem, method: Method) -> LabelSmoothing:  # noqa: ARG001
    """The same on every graph."""
    return LabelSmoothing()


LABEL_SMOOTHING = Regularizer(
    "label_smoothing", "label smoothing", build=build, options=("schedule",), grid=SHARES, bounded=True
)
