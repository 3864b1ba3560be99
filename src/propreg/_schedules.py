"""How μ changes over training: each schedule is a pure function of the epoch, which counts from 1.

Example:
    >>> from propreg import annealed, linear_warmup
    >>> [round(annealed(0.25, epoch), 3) for epoch in (1, 2, 4, 100)]
    [0.25, 0.5, 0.707, 0.986]
    >>> [linear_warmup(0.5, epoch, epochs=4) for epoch in (1, 2, 4, 9)]
    [0.125, 0.25, 0.5, 0.5]
"""

import math


def constant(mu: float, epoch: int) -> float:
    """The same strength in every epoch.

    Example:
        >>> constant(0.5, epoch=7)
        0.5
    """
    _check(mu, epoch)
    return mu


def annealed(mu: float, epoch: int) -> float:
    r"""The paper's annealing (Appendix C), :math:`\mu^{1/\text{epoch}}`.

    It starts at μ and rises to 1 **whatever μ is** (only μ = 0 stays 0): μ sets how fast the regularizer
    arrives, not how strong it ends.

    Args:
        mu: The strength in the first epoch, 0 ≤ μ ≤ 1.
        epoch: The epoch, counting from 1.

    Example:
        >>> annealed(0.5, epoch=1), annealed(0.5, epoch=2)
        (0.5, 0.7071067811865476)
    """
    _check(mu, epoch)
    if mu > 1:
        raise ValueError(f"mu must lie between 0 and 1 for annealed, got {mu}: mu ** (1/epoch) would fall to 1.")
    return float(mu ** (1.0 / epoch))


def linear_warmup(mu: float, epoch: int, *, epochs: int) -> float:
    """From μ/epochs in the first epoch up to μ in epoch number ``epochs``, then μ.

    Example:
        >>> linear_warmup(1.0, epoch=5, epochs=10)
        0.5
    """
    return mu * _progress(mu, epoch, epochs)


def cosine_warmup(mu: float, epoch: int, *, epochs: int) -> float:
    r"""As :func:`linear_warmup`, along half a cosine: :math:`\mu\,(1-\cos(\pi t))/2` at progress t.

    Example:
        >>> round(cosine_warmup(1.0, epoch=5, epochs=10), 6)
        0.5
    """
    return mu * 0.5 * (1.0 - math.cos(math.pi * _progress(mu, epoch, epochs)))


def _progress(mu: float, epoch: int, epochs: int) -> float:
    _check(mu, epoch)
    if not epochs >= 1:
        raise ValueError(f"epochs must be at least 1, the length of the warm-up, got {epochs}.")
    return min(epoch / epochs, 1.0)


def _check(mu: float, epoch: int) -> None:
    if not (math.isfinite(mu) and mu >= 0):
        raise ValueError(f"mu must be a finite number of at least 0, got {mu}.")
    if not epoch >= 1:
        raise ValueError(f"epoch must be at least 1, got {epoch}: the paper's epochs count from 1.")
