"""The options of ``preg`` and ``PReg``, validated once."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from propreg import _errors
from propreg._phi import PHIS, Phi
from propreg._propagation import NORMS, Norm

PhiName = Literal[
    "cross_entropy",
    "kl",
    "reverse_kl",
    "squared_error",
    "l2_probability",
    "bernoulli",
    "cosine",
    "jensen_shannon",
]
PhiLike = PhiName | Callable[[Tensor, Tensor], Tensor]
Detach = Literal["self", "neighbors", "neighbours"] | None  # the British spelling of earlier versions stays valid
Reduction = Literal["mean", "sum", "none"]
REDUCTIONS = ("mean", "sum", "none")


@dataclass(frozen=True)
class Options:
    """The settings of the term, apart from the tensors it is applied to."""

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
            if self.detach == "neighbours":
                object.__setattr__(self, "detach", "neighbors")
            _errors.one_of("detach", self.detach, ("self", "neighbors"), " or None")
        if not isinstance(self.add_self_loops, bool):
            raise TypeError(f"add_self_loops must be True or False, got {self.add_self_loops!r}.")
        if self.validate is not None and not isinstance(self.validate, bool):
            raise TypeError(f"validate must be None, True or False, got {self.validate!r}.")
        if self.threshold is not None:
            self._check_threshold(self.threshold)

    def _check_threshold(self, threshold: float) -> None:
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
            raise TypeError(f"threshold must be a number or None, got {threshold!r}.")
        if not (math.isfinite(threshold) and threshold >= 0):
            raise ValueError(f"threshold must be a finite number of at least 0, got {threshold}.")
        if self.reduction != "mean":
            raise ValueError(
                "threshold applies to the mean, max(0, mean − τ), and cannot be combined with "
                f"reduction={self.reduction!r}: use reduction='mean' or leave threshold out."
            )

    @property
    def function(self) -> Phi:
        """φ as a function."""
        return self.phi if callable(self.phi) else PHIS[self.phi]

    @property
    def takes_softmax(self) -> bool:
        """Whether φ compares the softmax of logits."""
        return self.phi in ("cross_entropy", "kl", "reverse_kl", "l2_probability", "jensen_shannon")

    @property
    def smooth(self) -> bool:
        """Whether φ has derivatives everywhere: a norm has none at 0, and nothing is known of a callable."""
        return not callable(self.phi) and self.phi != "l2_probability"
