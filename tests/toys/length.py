"""A regularizer in one file: the mean length of the logits, to some power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from propreg.engine.regularizers.regularizer import Regularizer, Term
from propreg.engine.spec import Method

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem, Targets


@dataclass(frozen=True)
class Length(Method):
    """Its options: the power."""

    name: str = "length"
    power: float = 2.0


class LengthTerm(Term):
    """Pulls all logits toward 0."""

    def __init__(self, power: float) -> None:
        self.power = power

    def value(self, z: Tensor, source: Tensor, counted: Tensor | None, targets: Targets) -> Tensor:  # noqa: ARG002
        length: Tensor = z.norm(dim=-1) + 1e-6
        return length.pow(self.power).mean(-1)


def build(problem: Problem, method: Method) -> LengthTerm:  # noqa: ARG001
    if not isinstance(method, Length):
        raise TypeError(f"method must be a Length, got a {type(method).__name__}.")
    return LengthTerm(method.power)


LENGTH = Regularizer(
    "length",
    "logit length",
    build=build,
    kind=Length,
    presets={"paper": {}, "reference": {"power": 1.0}},
    grid=(0.01, 0.1),
)
