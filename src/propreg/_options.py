"""The options that ``preg`` and ``PReg`` share, checked once."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from propreg import _errors
from propreg._phi import PHIS, Phi
from propreg._propagation import NORMS, Norm

PhiName = Literal["cross_entropy", "kl", "reverse_kl", "squared_error", "l2_probability", "bernoulli"]
PhiLike = PhiName | Callable[[Tensor, Tensor], Tensor]
Detach = Literal["self", "neighbours"] | None
Reduction = Literal["mean", "sum", "none"]
REDUCTIONS = ("mean", "sum", "none")


@dataclass(frozen=True)
class Options:
    """What the term is, apart from the tensors it is applied to."""

    phi: PhiLike
    norm: Norm
    add_self_loops: bool
    detach: Detach
    threshold: float | None
    reduction: Reduction
    validate: bool | None

    def __post_init__(self) -> None:
        if not callable(self.phi):
            _errors.one_of("phi", self.phi, PHIS, " or a callable (z, propagated) → [N]")
        _errors.one_of("norm", self.norm, NORMS)
        _errors.one_of("reduction", self.reduction, REDUCTIONS)
        if self.detach is not None:
            _errors.one_of("detach", self.detach, ("self", "neighbours"), " or None")
        if not isinstance(self.add_self_loops, bool):
            raise TypeError(f"add_self_loops must be True or False, but {self.add_self_loops!r} came.")
        if self.validate is not None and not isinstance(self.validate, bool):
            raise TypeError(f"validate must be None, True or False, but {self.validate!r} came.")
        if self.threshold is not None:
            self._check_threshold(self.threshold)

    def _check_threshold(self, threshold: float) -> None:
        if isinstance(threshold, bool) or not isinstance(threshold, int | float):
            raise TypeError(f"threshold must be a number or None, but {threshold!r} came.")
        if not (math.isfinite(threshold) and threshold >= 0):
            raise ValueError(f"threshold must be a finite number of at least 0, but {threshold} came.")
        if self.reduction != "mean":
            raise ValueError(
                f"threshold hinges the mean, max(0, mean − τ), and does not go with reduction={self.reduction!r}: "
                "use reduction='mean' or leave threshold out."
            )

    @property
    def function(self) -> Phi:
        """φ itself."""
        return self.phi if callable(self.phi) else PHIS[self.phi]

    @property
    def smooth(self) -> bool:
        """Whether φ has derivatives everywhere: of the caller's own nothing is known, and a norm has none at 0."""
        return not callable(self.phi) and self.phi != "l2_probability"
