"""A graph of six nodes, on which a loss can be worked out with dense matrices."""

import numpy as np
import torch

from propreg.data.graph import Graph, Split
from propreg.engine import Problem
from reference import Array

Y = np.array([0, 1, 2, 0, 1, 2])
X = np.random.default_rng(5).standard_normal((6, 4)).round(1)
TRAIN = [0, 1, 2]
_PAIRS = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]  # a ring of four with a tail; node 5 has no neighbor


def six_nodes() -> Problem:
    """In float64 on the CPU; nodes 0 to 2 are for training, 3 and 4 for validation, 5 for testing."""
    edges = np.array([*_PAIRS, *((b, a) for a, b in _PAIRS)]).T
    masks = [np.isin(np.arange(6), nodes) for nodes in (TRAIN, [3, 4], [5])]
    graph = Graph("six", edges, X.astype(np.float32), Y, digests={"edges": "six"})
    return Problem(graph, {"own": Split(*masks)}, torch.device("cpu"), torch.float64)


def adjacency() -> Array:
    """Â with self-loops, symmetrically normalized, by the degrees of the picture."""
    a = np.eye(6)
    for i, j in _PAIRS:
        a[i, j] = a[j, i] = 1
    degree = np.array([3, 3, 3, 4, 2, 1])
    normalized: Array = a / np.sqrt(degree[:, None] * degree[None, :])
    return normalized


def softmax(z: Array) -> Array:
    """Over the last axis."""
    e = np.exp(z - z.max(-1, keepdims=True))
    p: Array = e / e.sum(-1, keepdims=True)
    return p


def cross_entropy(z: Array) -> float:
    """The mean over the training nodes."""
    return float(np.mean([-np.log(softmax(z)[i, Y[i]]) for i in TRAIN]))
