"""Features on a scale that training works with: columns standardized, rows divided by their sum, or as they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from propreg._choices import one_of
from propreg.data.graph import SparseFeatures

Scale: TypeAlias = Literal["auto", "standard", "rows", "none"]
SCALES = ("auto", "standard", "rows", "none")
Features: TypeAlias = "NDArray[np.float32] | SparseFeatures"

SPARSE = 0.5  # the share of non-zeros below which features may be a bag of words
ALIKE = 20.0  # times the usual word's value: a column beyond it (an income among flags) is no word
_BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Scaling:
    """What is done to the features before a model sees them, with the numbers that it takes.

    Args:
        kind: ``"standard"``, ``"rows"`` or ``"none"``.
        mean, deviation: Of each column, float32; only of ``"standard"``.
        reason: What people read about it, if it is not the usual sentence.
        targets: The scaling of the numbers that a regression learns, which its predictions take back.
    """

    kind: str = "none"
    mean: NDArray[np.float32] | None = None
    deviation: NDArray[np.float32] | None = None
    reason: str = ""
    targets: "Scaling | None" = None

    def __call__(self, x: Features) -> Features:
        """The scaled features; sparse ones stay sparse unless columns are standardized.

        Example:
            >>> x = np.array([[1, 3], [0, 2], [0, 0]], np.float32)
            >>> Scaling("rows")(x).tolist()
            [[0.25, 0.75], [0.0, 1.0], [0.0, 0.0]]
        """
        if self.mean is not None and self.deviation is not None:
            dense = x.to_dense() if isinstance(x, SparseFeatures) else x.astype(np.float32)
            dense -= self.mean
            dense /= self.deviation
            return dense
        if self.kind != "rows":
            return x
        if isinstance(x, SparseFeatures):
            rows, values = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)), x.filled()
            sums = np.bincount(rows, weights=np.abs(values), minlength=x.shape[0])
            return SparseFeatures(x.indptr, x.indices, (values / sums[rows]).astype(np.float32), x.shape)
        totals = np.abs(x).sum(axis=1, keepdims=True, dtype=np.float32)
        return (x / np.where(totals > 0, totals, np.float32(1))).astype(np.float32)

    @property
    def sentence(self) -> str:
        """What was done, for people; empty if nothing was."""
        usual = {
            "standard": "Each feature was standardized over all nodes: minus its mean, divided by its standard "
            "deviation.",
            "rows": "Each node's features were divided by their sum.",
        }
        return self.reason or usual.get(self.kind, "")


def scaling_of(x: Features, scale: "Scale | Scaling" = "auto") -> Scaling:
    """The scaling that a graph's features get.

    Args:
        x: The features of all nodes.
        scale: ``"standard"`` takes from each column its mean over the nodes and divides it by its standard deviation;
            ``"rows"`` divides each row by its sum (of absolute values); ``"none"`` leaves them; ``"auto"`` divides the
            rows of a bag of words, see :func:`is_bag_of_words`, and standardizes the columns of all else. A scaling
            is taken as it is.

    Example:
        >>> scaling_of(np.array([[0.0, 40000.0], [1.0, 40000.0]], np.float32)).mean.tolist()
        [0.5, 40000.0]
        >>> scaling_of(np.eye(4, dtype=np.float32)).kind
        'rows'
    """
    if isinstance(scale, Scaling):
        return scale
    one_of("scale", scale, SCALES)
    if scale == "none" or not x.shape[0]:
        return Scaling()
    if scale == "rows" or (scale == "auto" and is_bag_of_words(x)):
        return Scaling("rows")
    mean, square = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for block in _blocks(x):
        mean += block.sum(axis=0) / x.shape[0]
    for block in _blocks(x):
        square += np.square(block - mean).sum(axis=0) / x.shape[0]
    deviation = np.sqrt(square)
    constant = deviation <= np.finfo(np.float32).eps * np.abs(mean)
    deviation[constant] = 1.0
    return Scaling("standard", mean.astype(np.float32), deviation.astype(np.float32))


def mean_and_deviation(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Of each column of numbers [nodes, L], NaN for unknown; the deviation of a constant is 1.

    Example:
        >>> mean_and_deviation(np.array([[100.0, 7.0], [np.nan, 7.0], [300.0, np.nan]], np.float32))
        (array([200.,   7.], dtype=float32), array([100.,   1.], dtype=float32))
    """
    known, numbers = ~np.isnan(values), values.astype(np.float64)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, numbers, 0).sum(axis=0) / count
    deviation = np.sqrt(np.where(known, np.square(numbers - mean), 0).sum(axis=0) / count)
    deviation[deviation <= np.finfo(np.float32).eps * np.abs(mean)] = 1.0
    return mean.astype(np.float32), deviation.astype(np.float32)


def is_bag_of_words(x: Features) -> bool:
    """Whether the features are counts, flags or weights of words: mostly zero, never negative, and of one kind.

    Example:
        >>> flags = np.eye(5, dtype=np.float32)
        >>> is_bag_of_words(flags), is_bag_of_words(flags - 0.1)
        (True, False)
        >>> is_bag_of_words(np.hstack([flags, np.full((5, 1), 40000, np.float32)]))
        False
    """
    total, count = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for block in _blocks(x):
        if block.min(initial=0) < 0:
            return False
        total += block.sum(axis=0)
        count += np.count_nonzero(block, axis=0)
    used = count > 0
    if not used.any() or count.sum() > SPARSE * x.shape[0] * x.shape[1]:
        return False
    values = total[used] / count[used]
    return bool(values.max() <= ALIKE * np.median(values))


def _blocks(x: Features) -> Iterator[NDArray[np.float64]]:
    """Some rows at a time, dense."""
    step = max(1, min(_BLOCK_ROWS, 2**22 // max(x.shape[1], 1)))
    for start in range(0, x.shape[0], step):
        stop = min(start + step, x.shape[0])
        if isinstance(x, SparseFeatures):
            part = slice(int(x.indptr[start]), int(x.indptr[stop]))
            values = None if x.values is None else x.values[part]
            indptr = x.indptr[start : stop + 1] - x.indptr[start]
            yield SparseFeatures(indptr, x.indices[part], values, (stop - start, x.shape[1])).to_dense().astype(float)
        else:
            yield np.asarray(x[start:stop], np.float64)


def from_parts(kind: Any, mean: Any, deviation: Any) -> Scaling:
    """A stored scaling; raises ``ValueError`` for one that cannot be."""
    if kind not in SCALES[1:] or (kind == "standard") != (mean is not None) or (mean is None) != (deviation is None):
        raise ValueError(f"scale is {kind!r:.40}")
    if mean is not None:
        for part in (mean, deviation):
            if part.dtype != np.float32 or part.ndim != 1 or not np.isfinite(part).all():
                raise ValueError("the means or deviations of the features are not finite float32 numbers")
        if len(mean) != len(deviation) or not (deviation > 0).all():
            raise ValueError("the deviations of the features are not positive, or of another number than the means")
    return Scaling(kind, mean, deviation)
