"""The graph as a run sees it: how many edges join equal predictions, and a map of the judged nodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.graph import Graph
from propreg.fitting.result import FitResult
from propreg.fitting.splits import judgeable

MOST_NODES = 2000  # more dots cannot be distinguished
STATES = ("right", "fixed", "broken", "wrong")
"""What became of a node: right in both models, only with the regularizer, only without it, in neither."""


def agreement(graph: Graph, result: FitResult) -> dict[str, float | None]:
    """The share of edges that join nodes of one class: as labeled, and as predicted on average over runs.

    An edge without labels at both ends does not count for ``labels``; loops never count.
    """
    source, target = graph.edge_index[:, graph.edge_index[0] != graph.edge_index[1]]
    known = (graph.y[source] >= 0) & (graph.y[target] >= 0)
    return {
        "labels": _share(graph.y[source][known] == graph.y[target][known]),
        "plain": _predicted(result.predicted[0.0], source, target),
        "chosen": _predicted(result.predicted[result.mu], source, target),
    }


def map_of(graph: Graph, result: FitResult) -> dict[str, Any] | None:
    """A place for each judged node of the split that ``result.model`` was trained on, and what became of it.

    Places are the first two principal components of the model's log-probabilities: similar predictions are close.
    None if the plain model or the chosen one has no run there.
    """
    if not any(run.replica.strength == result.mu and not run.failed for run in result.runs):
        return None
    place = result.best_run.replica
    at = list(result.splits).index(place.split), place.seed
    plain, chosen = (result.predicted[mu][at] for mu in (0.0, result.mu))
    nodes = np.flatnonzero(judgeable(result.splits[place.split]).test)
    if not nodes.size or plain[0] < 0 or chosen[0] < 0:
        return None
    if nodes.size > MOST_NODES:
        nodes = np.sort(np.random.default_rng(0).choice(nodes, MOST_NODES, replace=False))
    x, y = layout(result.predict_proba()[nodes]).T
    before, after = plain[nodes] == graph.y[nodes], chosen[nodes] == graph.y[nodes]
    state = np.where(after, np.where(before, 0, 1), np.where(before, 2, 3))
    return {
        "split": place.split,
        "node": [graph.node_ids[i] for i in nodes] if graph.node_ids else [str(i) for i in nodes],
        "x": np.round(x, 3).tolist(),
        "y": np.round(y, 3).tolist(),
        "state": state.tolist(),
        "label": graph.y[nodes].tolist(),
        "plain": plain[nodes].tolist(),
        "chosen": chosen[nodes].tolist(),
    }


def layout(probabilities: NDArray[np.floating]) -> NDArray[np.float64]:
    """Two coordinates per row: the first principal components of the log-probabilities, each with a fixed sign.

    Example:
        >>> layout(np.array([[0.9, 0.1], [0.1, 0.9]])).shape
        (2, 2)
    """
    logs = np.log(np.maximum(probabilities.astype(np.float64), 1e-9))
    logs -= logs.mean(axis=0)
    _, axes = np.linalg.eigh(logs.T @ logs)
    two = axes[:, ::-1][:, :2]
    if two.shape[1] < 2:
        two = np.pad(two, ((0, 0), (0, 2 - two.shape[1])))
    signs = np.sign(two[np.abs(two).argmax(axis=0), [0, 1]])
    found: NDArray[np.float64] = logs @ (two * np.where(signs == 0, 1.0, signs))
    return found


def _share(equal: NDArray[np.bool_]) -> float | None:
    return float(equal.mean()) if equal.size else None


def _predicted(found: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64]) -> float | None:
    runs = found[found[..., 0] >= 0] if found.size else found
    shares = [_share(run[source] == run[target]) for run in runs]
    known = [share for share in shares if share is not None]
    return float(np.mean(known)) if known else None
