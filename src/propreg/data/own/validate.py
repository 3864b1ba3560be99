"""The checks that every graph of a user passes, whatever it was read from."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.edges import check_edges
from propreg.data.errors import DataError
from propreg.data.formats.csv import MAX_NAME
from propreg.data.graph import MASKS, Graph, SparseFeatures, Split
from propreg.data.splits import check_split


def checked_graph(
    name: str,
    x: NDArray[np.float32] | SparseFeatures,
    arrays: Mapping[str, NDArray[Any]],
    where: str,
    *,
    class_names: Sequence[str] = (),
    node_ids: Sequence[str] = (),
    feature_names: Sequence[str] = (),
    labeled: bool = True,
) -> Graph:
    """A graph from untrusted arrays.

    Args:
        name: The graph's name.
        x: The features, already checked.
        arrays: ``edge_index`` and ``y``, perhaps ``edge_weight`` and masks.
        where: The file or object, for error messages.
        class_names: The classes' names, if they have any.
        node_ids: The nodes' ids, if they have any.
        feature_names: The columns' names, if they have any.
        labeled: Whether ``y`` must be there; else no node has a label without it.

    Returns:
        The graph.

    Example:
        >>> x, edges = np.ones((2, 1), np.float32), np.array([[0, 1], [1, 0]])
        >>> checked_graph("pair", x, {"edge_index": edges, "y": np.array([0, -1])}, "pair.npz").num_nodes
        2
        >>> checked_graph("pair", x, {"edge_index": edges + 1, "y": np.array([0, 0])}, "pair.npz")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: pair.npz, edge_index: node 2 is out of range for 2 nodes (edge 0, from 1
        to 2): number the nodes from 0 to 1, like the rows of x; yours start at 1.
    """
    if not labeled and "y" not in arrays:
        arrays = {**arrays, "y": np.full(x.shape[0], -1, np.int64)}
    for needed in ("edge_index", "y"):
        if needed not in arrays:
            raise DataError(f"{where}: has no {needed}: a graph needs edge_index, y and features.")
    classes = _names(class_names, "class_names", where)
    y = _labels(arrays["y"], len(classes), where)
    if x.shape[0] != len(y):
        raise DataError(f"{where}: x has {x.shape[0]} rows but y has {len(y)}: both need one per node.")
    ids = _names(node_ids, "node_ids", where)
    if ids and len(ids) != len(y):
        raise DataError(f"{where}: has {len(ids)} node_ids for {len(y)} nodes: give one per node, or none.")
    columns = _names(feature_names, "feature_names", where)
    if columns and len(columns) != x.shape[1]:
        raise DataError(f"{where}: has {len(columns)} feature_names for {x.shape[1]} features: give one per column.")
    edges = arrays["edge_index"]
    if edges.ndim != 2 or len(edges) != 2:
        raise DataError(f"{where}: edge_index has shape {edges.shape}: it must be [2, edges], source over target.")
    check_edges(edges, len(y), f"{where}, edge_index")
    weight = check_weights(arrays["edge_weight"], edges.shape[1], where) if "edge_weight" in arrays else None
    split = None
    if any(mask in arrays for mask in MASKS):
        none = np.zeros(len(y), bool)
        given = Split(*(arrays.get(mask, none) for mask in MASKS))
        split = check_split(given, y, where, names=MASKS, may_be_empty=True)
    return Graph(
        name,
        np.ascontiguousarray(edges, np.int64),
        x,
        y,
        weight,
        split,
        classes,
        ids,
        feature_names=columns,
    )


def _names(names: Sequence[str], what: str, where: str) -> tuple[str, ...]:
    seen = set()
    for name in names:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or "\0" in name or not _encodes(name):
            raise DataError(f"{where}: {what} holds {name!r:.80}: give texts of 1 to {MAX_NAME} characters.")
        if name in seen:
            raise DataError(f"{where}: {what} holds {name!r:.80} twice: names must differ.")
        seen.add(name)
    return tuple(names)


def _encodes(name: str) -> bool:
    """Whether the text can be stored: a file name that is not UTF-8, for example, cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def readable(file_name: str) -> str:
    """A file's name as text that can be stored, with ``?`` for bytes that are not UTF-8.

    Example:
        >>> readable("graph\\udcff")
        'graph?'
    """
    return file_name.encode("utf-8", "replace").decode()


def _labels(y: NDArray[Any], classes: int, where: str) -> NDArray[np.int64]:
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise DataError(
            f"{where}: y must hold one class number per node (−1 for none), got {y.dtype} of shape {y.shape}."
        )
    # Without class names the number of classes is unknown, and one damaged label would make millions.
    limit = classes or max(len(y), 1000)
    if len(y) and not (int(y.min()) >= -1 and int(y.max()) < limit):
        node = int(np.flatnonzero((y < -1) | (y >= limit))[0])
        raise DataError(
            f"{where}: y of node {node} is {int(y[node])}: number the classes from 0 to {limit - 1}, −1 for none."
        )
    return np.ascontiguousarray(y, np.int64)


def check_weights(weight: NDArray[Any], count: int, where: str) -> NDArray[np.float32]:
    if weight.shape != (count,) or weight.dtype.kind not in "biuf":
        raise DataError(
            f"{where}: edge_weight must hold one number for each of the {count} edges, got {weight.dtype} of shape "
            f"{weight.shape}."
        )
    with np.errstate(over="ignore"):  # infinities are refused below
        weight32 = np.ascontiguousarray(weight, np.float32)
    bad = np.flatnonzero(~(np.isfinite(weight32) & (weight32 >= 0)))
    if len(bad):
        raise DataError(
            f"{where}: edge_weight of edge {int(bad[0])} is {weight[bad[0]]!s}: "
            "weights must be finite and not negative."
        )
    return weight32
