"""The confidence penalty: the negative entropy of the predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from propreg.engine.regularizers.regularizer import SHARES, Regularizer, Term
from propreg.engine.spec import Method

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem, Targets


class ConfidencePenalty(Term):
    """As :func:`propreg.confidence_penalty`, on the training nodes or on all."""

    def __init__(self, method: Method) -> None:
        self.method = method

    def value(self, z: Tensor, source: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:  # noqa: ARG002
        """−H in the paper form, +H in the official-code form. [R]."""
        on_train = self.method.nodes == "train"
        log_p = (targets.logits(z) if on_train else z).log_softmax(-1)
        negative = (log_p.exp() * log_p).sum(-1)
        mean = (negative * targets.weights).sum(-1) if on_train else negative.mean(-1)
        return mean if self.method.variant == "paper" else -mean


def build(problem: Problem, method: Method) -> ConfidencePenalty:  # noqa: ARG001
    """The same on every graph."""
    return ConfidencePenalty(method)


CONFIDENCE_PENALTY = Regularizer(
    "confidence_penalty",
    "confidence penalty",
    build=build,
    options=("variant", "nodes", "schedule"),
    presets={"paper": {}, "reference": {"variant": "official"}},
    grid=SHARES,
)
