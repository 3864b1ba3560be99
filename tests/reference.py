"""P-reg from the paper's formulas, in dense float64 NumPy: slow, plain, and independent of the package.

Everything works row by row on dense matrices, so that each line can be held against its equation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
RowPhi = Callable[[Array, Array], float]


def dense(values: Any) -> Array:
    """A float64 array from a list, an array or a tensor, with half precision exactly as it was rounded."""
    if hasattr(values, "detach"):
        values = values.detach().double().numpy()
    return np.asarray(values, dtype=np.float64)


def adjacency(edge_index: Any, num_nodes: int, edge_weight: Any = None, *, add_self_loops: bool = False) -> Array:
    """A[target, source]: duplicate edges add up; with loops, a node has one: its own last one, or else of weight 1."""
    sources, targets = np.asarray(edge_index)
    weights = np.ones(len(sources)) if edge_weight is None else dense(edge_weight)
    matrix = np.zeros((num_nodes, num_nodes))
    last_loop = np.ones(num_nodes)
    for source, target, weight in zip(sources, targets, weights, strict=True):
        matrix[target, source] += weight
        if source == target:
            last_loop[source] = weight
    if add_self_loops:
        for node in range(num_nodes):
            matrix[node, node] = last_loop[node]
    return matrix


def normalized(matrix: Array, norm: str = "rw") -> Array:
    """D⁻¹A or D^(-1/2) A D^(-1/2) with D the row sums of A; 0 wherever a D is 0."""
    degree = matrix.sum(axis=1)
    result = np.zeros_like(matrix)
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            if degree[i] > 0 and norm == "rw":
                result[i, j] = matrix[i, j] / degree[i]
            elif degree[i] > 0 and degree[j] > 0:
                result[i, j] = matrix[i, j] / np.sqrt(degree[i]) / np.sqrt(degree[j])
    return result


def log_softmax(z: Array) -> Array:
    """log softmax over the last axis."""
    shifted: Array = z - z.max(axis=-1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def softmax(z: Array) -> Array:
    """Softmax over the last axis."""
    result: Array = np.exp(log_softmax(z))
    return result


def entropy(z: Array) -> float:
    """H(P) of one row of logits."""
    return float(-(softmax(z) * log_softmax(z)).sum())


def log_sigmoid(z: Array) -> Array:
    """log(1 / (1 + e^-z)), as −log(e^0 + e^-z)."""
    result: Array = -np.logaddexp(0.0, -z)
    return result


def cross_entropy(z: Array, propagated: Array) -> float:
    return float(-(softmax(z) * log_softmax(propagated)).sum())


def kl(z: Array, propagated: Array) -> float:
    return float((softmax(z) * (log_softmax(z) - log_softmax(propagated))).sum())


def reverse_kl(z: Array, propagated: Array) -> float:
    return float((softmax(propagated) * (log_softmax(propagated) - log_softmax(z))).sum())


def squared_error(z: Array, propagated: Array) -> float:
    return float(0.5 * ((propagated - z) ** 2).sum())


def l2_probability(z: Array, propagated: Array) -> float:
    return float(np.sqrt(((softmax(z) - softmax(propagated)) ** 2).sum()))


def bernoulli(z: Array, propagated: Array) -> float:
    yes, no = np.exp(log_sigmoid(z)), np.exp(log_sigmoid(-z))
    return float(-(yes * log_sigmoid(propagated) + no * log_sigmoid(-propagated)).sum())


def cosine(z: Array, propagated: Array) -> float:
    lengths = np.sqrt((z**2).sum()) * np.sqrt((propagated**2).sum())
    return float(1 - (z * propagated).sum() / lengths) if lengths > 0 else 1.0


def jensen_shannon(z: Array, propagated: Array) -> float:
    p, q = softmax(z), softmax(propagated)
    log_m = np.logaddexp(log_softmax(z), log_softmax(propagated)) - np.log(2)
    return float(0.5 * (p * (log_softmax(z) - log_m)).sum() + 0.5 * (q * (log_softmax(propagated) - log_m)).sum())


PHIS: dict[str, RowPhi] = {
    "cross_entropy": cross_entropy,
    "kl": kl,
    "reverse_kl": reverse_kl,
    "squared_error": squared_error,
    "l2_probability": l2_probability,
    "bernoulli": bernoulli,
    "cosine": cosine,
    "jensen_shannon": jensen_shannon,
}


def counted(mask: Any, num_nodes: int) -> list[int]:
    """The nodes that count, from None, bool [N] or node numbers."""
    if mask is None:
        return list(range(num_nodes))
    chosen = np.asarray(mask)
    return [int(i) for i in (np.flatnonzero(chosen) if chosen.dtype == bool else chosen)]


def preg(
    z: Any,
    edge_index: Any,
    edge_weight: Any = None,
    *,
    phi: str | RowPhi = "cross_entropy",
    norm: str = "rw",
    add_self_loops: bool = False,
    source: Any = None,
    mask: Any = None,
    threshold: float | None = None,
    reduction: str = "mean",
) -> Array:
    """The term: a 0-d array, or [N] with ``reduction="none"``."""
    logits = dense(z)
    num_nodes = len(logits)
    matrix = adjacency(edge_index, num_nodes, edge_weight, add_self_loops=add_self_loops)
    propagated = normalized(matrix, norm) @ (logits if source is None else dense(source))
    function = PHIS[phi] if isinstance(phi, str) else phi
    value = np.zeros(num_nodes)
    nodes = counted(mask, num_nodes)
    for i in nodes:
        if matrix[i].sum() > 0:  # a node with an empty row has nothing to agree with
            value[i] = function(logits[i], propagated[i])
    if reduction == "none":
        return value
    total = value.sum() if reduction == "sum" else value.sum() / len(nodes)
    return np.asarray(total if threshold is None else max(0.0, total - threshold))
