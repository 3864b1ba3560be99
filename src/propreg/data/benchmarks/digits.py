"""The embedded dataset: scikit-learn's 1,797 handwritten digits, each linked to its nearest neighbors."""

import gzip
import importlib.util
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg._lazy import MissingPackageError
from propreg.data.benchmarks.catalog import NUM_SPLITS
from propreg.data.errors import DataError
from propreg.data.features import from_dense
from propreg.data.graph import Graph, Split
from propreg.data.splits import random_split

NEIGHBORS = 5
TRAIN_PER_CLASS = 5
VAL_PER_CLASS = 30


def digits() -> Graph:
    """The digits as a graph: pixels 0 … 16 as features, digit as class, the five nearest as neighbors.

    Raises:
        ImportError: If scikit-learn is not installed.
        DataError: If its copy of the digits is damaged.
    """
    pixels, labels = read_digits()
    return Graph("digits", nearest(pixels, NEIGHBORS), from_dense(pixels), labels)


def digits_splits(y: NDArray[np.int64]) -> list[Split]:
    """The ten seeded splits: 5 training and 30 validation nodes per class, all others for testing."""
    return [random_split(y, TRAIN_PER_CLASS, VAL_PER_CLASS, seed) for seed in range(NUM_SPLITS)]


def nearest(points: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Link every point to its ``count`` nearest others, in both directions.

    Distances are squared and integer, so that they are exact; of equally near points the lower number wins.

    Args:
        points: Integers [N, F].
        count: Neighbors of each point.

    Returns:
        Edges sorted by (source, target), int64 [2, E].

    Example:
        >>> nearest(np.array([[0], [1], [3], [2]]), 1).tolist()
        [[0, 1, 1, 2, 3, 3], [1, 0, 3, 3, 1, 2]]
    """
    # Integers below 2⁵³ are exact in float64, and products of floats are far faster than of integers.
    x = points.astype(np.float64)
    nodes, square = np.arange(len(x)), (x * x).sum(axis=1)
    linked = np.zeros((len(x), len(x)), bool)
    for block in np.array_split(nodes, max(1, len(x) // 256)):  # by blocks: all distances at once take far more memory
        distance = (square[block, None] + square - 2 * (x[block] @ x.T)).astype(np.int64)
        key = distance * len(x) + nodes  # all different: among equally near points the lower number wins
        key[np.arange(len(block)), block] = np.iinfo(np.int64).max  # no point is its own neighbor
        linked[block[:, None], np.argpartition(key, count - 1, axis=1)[:, :count]] = True
    return np.stack(np.nonzero(linked | linked.T)).astype(np.int64)


def read_digits() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pixels [1797, 64] and digits [1797] of scikit-learn."""
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise MissingPackageError(
            "digits are read from scikit-learn, which is not installed: pip install scikit-learn."
        )
    path = Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if not path.exists():
        from sklearn.datasets import load_digits

        bunch = load_digits()
        return bunch.data.astype(np.int64), bunch.target.astype(np.int64)
    try:  # the file itself: importing scikit-learn takes a second
        with gzip.open(path, "rt", encoding="ascii") as text:
            table = np.loadtxt(text, delimiter=",").astype(np.int64)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error}): install scikit-learn again.") from error
    if table.ndim != 2 or table.shape[1] != 65:
        raise DataError(f"{path}: has shape {table.shape}, not 65 columns: install scikit-learn again.")
    return table[:, :-1], table[:, -1]
