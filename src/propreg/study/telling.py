"""When a difference to the plain model is called better or worse, and when it cannot be told."""

from typing import Literal

from propreg.statistics import SURE, Difference

Told = Literal["better", "worse", "cannot be told"]


def told(apart: Difference) -> Told:
    """What may be said of a difference's sign.

    An interval from five splits is somewhat narrow, see :mod:`propreg.statistics`. So it is not enough that it leaves
    out 0: the sign-flip test must also give at most 1/16, which five splits do where all agree, and fewer never.

    Example:
        >>> told(Difference(1.0, 0.5, 1.5, 2 / 32, 0.9)), told(Difference(1.0, 0.1, 1.5, 4 / 32, 0.9))
        ('better', 'cannot be told')
    """
    if apart.low <= 0 <= apart.high or apart.p_value > SURE * (1 + 1e-9):
        return "cannot be told"
    return "better" if apart.mean > 0 else "worse"
