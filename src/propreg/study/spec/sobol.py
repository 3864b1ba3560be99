"""The Sobol sequence, which covers a space more evenly than random points: the same on every machine and version.

The direction numbers are those of Joe and Kuo (2008), https://web.maths.unsw.edu.au/~fkuo/sobol/.
"""

import numpy as np
from numpy.typing import NDArray

BITS = 30
# Of each dimension after the first: the degree of its polynomial, the polynomial's inner coefficients, and the first
# direction numbers.
_JOE_KUO: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
)
DIMENSIONS = 1 + len(_JOE_KUO)


def sobol(count: int, dimensions: int) -> NDArray[np.float64]:
    """The first points of the sequence, [count, dimensions] in [0, 1): the first of all is 0.

    Example:
        >>> sobol(4, 2).tolist()
        [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """
    if not 1 <= dimensions <= DIMENSIONS:
        raise ValueError(f"dimensions must lie between 1 and {DIMENSIONS}, got {dimensions}.")
    points = np.zeros((count, dimensions))
    directions = [_directions(each) for each in range(dimensions)]
    state = [0] * dimensions
    for i in range(1, count):
        lowest_zero = (~(i - 1) & i).bit_length() - 1  # of i − 1: the order of Gray's code
        state = [now ^ numbers[lowest_zero] for now, numbers in zip(state, directions, strict=True)]
        points[i] = [now / 2**BITS for now in state]
    return points


def _directions(dimension: int) -> list[int]:
    """The direction numbers of a dimension, as integers of :data:`BITS` bits."""
    if dimension == 0:
        return [1 << (BITS - 1 - i) for i in range(BITS)]
    degree, inner, first = _JOE_KUO[dimension - 1]
    found = [value << (BITS - 1 - i) for i, value in enumerate(first)]
    for i in range(degree, BITS):
        value = found[i - degree] ^ (found[i - degree] >> degree)
        for k in range(1, degree):
            if (inner >> (degree - 1 - k)) & 1:
                value ^= found[i - k]
        found.append(value)
    return found
