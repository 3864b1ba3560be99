"""A graph with features and labels as NumPy arrays, which every reader returns and the engine takes."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SparseFeatures:
    """A feature matrix in CSR form; ``values`` is None if every stored value is 1."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32] | None
    shape: tuple[int, int]

    def filled(self) -> NDArray[np.float32]:
        """The stored values, also if all are 1."""
        return np.ones(len(self.indices), np.float32) if self.values is None else self.values

    def to_dense(self) -> NDArray[np.float32]:
        """The whole matrix."""
        dense = np.zeros(self.shape, np.float32)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        dense[rows, self.indices] = self.filled()
        return dense

    def row_normalized(self) -> "SparseFeatures":
        """Rows divided by max(row sum, 1), as the official code does."""
        values = self.filled()
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        sums = np.bincount(rows, weights=values, minlength=self.shape[0])
        scaled = values / np.maximum(sums, 1.0)[rows].astype(np.float32)
        return SparseFeatures(self.indptr, self.indices, scaled.astype(np.float32), self.shape)


Task: TypeAlias = Literal["classes", "multilabel", "regression"]
PARTS = ("train", "val", "test")
MASKS = ("train_mask", "val_mask", "test_mask")
"""PyG's names of the parts."""


@dataclass(frozen=True)
class Split:
    """Boolean masks over the nodes; a node may be in none."""

    train: NDArray[np.bool_]
    val: NDArray[np.bool_]
    test: NDArray[np.bool_]


@dataclass(frozen=True)
class Graph:
    """One graph. ``edge_index`` holds every edge source → target, both directions of an undirected one.

    ``x`` is dense float32 [N, F] or :class:`SparseFeatures`; ``y`` int64 [N], −1 for no label. Where the task is no
    class for each node, ``targets`` holds float32 [N, L], NaN for unknown, and ``y`` is 0 for a node with a target.
    """

    name: str
    edge_index: NDArray[np.int64]
    x: NDArray[np.float32] | SparseFeatures
    y: NDArray[np.int64]
    edge_weight: NDArray[np.float32] | None = None
    split: Split | None = None
    class_names: tuple[str, ...] = ()
    node_ids: tuple[str, ...] = ()
    digests: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    feature_names: tuple[str, ...] = ()
    targets: NDArray[np.float32] | None = None
    task: Task = "classes"

    @property
    def num_nodes(self) -> int:
        return int(self.y.shape[0])

    @property
    def num_features(self) -> int:
        return int(self.x.shape[1])

    @property
    def num_classes(self) -> int:
        if self.targets is not None:
            return int(self.targets.shape[1])
        return max(int(self.y.max(initial=-1)) + 1, len(self.class_names))
