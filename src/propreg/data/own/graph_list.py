"""A user's list of graphs: PyG ``Data`` objects with one target each, checked."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.molecules import MoleculeDataset
from propreg.data.errors import DataError
from propreg.data.graph_list import ATOM_DIMS, BOND_DIMS, KINDS, GraphList, of_molecules

_REAL = "biuf"


def read_graphs(graphs: Any, *, labeled: bool = True) -> GraphList:
    """Check a list of graphs and lay them end to end.

    Args:
        graphs: PyG ``Data`` objects with ``x`` [nodes, F], ``edge_index``, perhaps ``edge_attr`` [edges, K], and ``y``:
            one class, one number, or a row of tasks with NaN for a missing label. Or a dataset of molecules.
        labeled: Whether targets are needed.

    Raises:
        DataError: If a graph cannot be used; the message names it by its number.

    Example:
        >>> import torch
        >>> from propreg.data.own.pyg import data_class
        >>> pair = data_class()(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor(1))
        >>> read_graphs([pair, pair]).num_nodes.tolist()
        [2, 2]
    """
    if isinstance(graphs, GraphList):
        return graphs
    if isinstance(graphs, MoleculeDataset) and len(graphs) == len(graphs.arrays):
        return replace(of_molecules(graphs.arrays), kind=graphs.task_type)
    if hasattr(graphs, "edge_index") or isinstance(graphs, str) or not isinstance(graphs, Iterable):
        raise TypeError(f"graphs must be a list of PyG Data, one per graph, got a {type(graphs).__name__}.")
    items = list(graphs)
    read = [_graph(data, f"graph {i}", labeled) for i, data in enumerate(items)]
    if not read:
        raise DataError("graphs is empty: give a list with one PyG Data per graph.")
    # A graph without edges need not have features of them.
    columns = max(each[2].shape[1] for each in read)
    read = [each if len(each[2]) else (*each[:2], np.zeros((0, columns), each[2].dtype), each[3]) for each in read]
    for what, place in (("x", 0), ("edge_attr", 2), ("y", 3)):
        widths = [each[place].shape[1] for each in read]
        odd = next((i for i, width in enumerate(widths) if width != widths[0]), None)
        if odd is not None:
            raise DataError(
                f"graph {odd}: {what} has {widths[odd]} columns, but that of graph 0 has {widths[0]}: give all graphs "
                "the same."
            )
    parts = zip(*read, strict=True)
    x, edge_index, edge_attr, y = (np.concatenate(each, axis=int(i == 1)) for i, each in enumerate(parts))
    coded = _is_coded(x, ATOM_DIMS) and _is_coded(edge_attr, BOND_DIMS)
    numbers = np.int64 if coded else np.float32
    return GraphList(
        x.astype(numbers),
        edge_index,
        edge_attr.astype(numbers),
        np.array([len(each[0]) for each in read]),
        np.array([each[1].shape[1] for each in read]),
        y.astype(np.float32),
        coded=coded,
        kind=_kind(y, rows=any(len(getattr(getattr(data, "y", None), "shape", ())) > 1 for data in items)),
    )


def check_kind(graphs: GraphList, task: str) -> GraphList:
    """The graphs with the kind of their task, checked against the targets.

    Args:
        graphs: The graphs, all with a label or several.
        task: A kind, or ``"auto"`` for what the targets look like.
    """
    y = graphs.y
    known = y[~np.isnan(y)]
    if not known.size:
        raise DataError("no graph has a label: y is missing or NaN everywhere, so there is nothing to learn.")
    kind = graphs.kind if task == "auto" else KINDS[task]
    if kind == "binary classification" and not np.isin(known, (0, 1)).all():
        odd = known[~np.isin(known, (0, 1))][0]
        raise DataError(f"y must be 0 or 1 for task='binary', got {odd:g}: use 'classification' or 'regression'.")
    if kind == "classification":
        if y.shape[1] != 1:
            raise DataError(f"y must be one class per graph, got {y.shape[1]} columns: use task='binary'.")
        if (known < 0).any() or (known % 1).any():
            raise DataError("y must be whole numbers from 0 for task='classification': number the classes 0, 1, ….")
        if known.max() >= _MOST_CLASSES:
            raise DataError(f"y has class {known.max():,.0f}: number the classes 0, 1, …, or use task='regression'.")
    if np.unique(known).size == 1:
        raise DataError(f"every label is {known[0]:g}, so there is nothing to learn: give graphs of other labels, too.")
    return replace(graphs, kind=kind)


_MOST_CLASSES = 10_000


def _graph(data: Any, where: str, labeled: bool) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Features, edges, their features [edges, K] and targets [1, tasks] of one graph."""
    if getattr(data, "x", None) is None or getattr(data, "edge_index", None) is None:
        lacks = "x" if getattr(data, "x", None) is None else "edge_index"
        raise DataError(f"{where}: has no {lacks}: each graph needs features x [nodes, F] and edge_index [2, edges].")
    x, edges = _numbers(data.x, "x", where), _numbers(data.edge_index, "edge_index", where)
    if x.ndim != 2 or not x.size:
        raise DataError(f"{where}: x must be numbers [nodes, features], at least one of each, got {list(x.shape)}.")
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or len(edges) != 2:
        if edges.size:
            raise DataError(f"{where}: edge_index must be integers [2, edges], got {edges.dtype} {list(edges.shape)}.")
        edges = np.zeros((2, 0), np.int64)
    if edges.size and not 0 <= int(edges.min()) <= int(edges.max()) < len(x):
        odd = edges.max() if edges.max() >= len(x) else edges.min()
        raise DataError(f"{where}: edge_index refers to node {odd}, but x has {len(x)} rows: relabel its nodes from 0.")
    attributes = getattr(data, "edge_attr", None)
    kinds = np.zeros((edges.shape[1], 0)) if attributes is None else _numbers(attributes, "edge_attr", where)
    kinds = kinds[:, None] if kinds.ndim == 1 else kinds
    if kinds.ndim != 2 or len(kinds) != edges.shape[1]:
        raise DataError(f"{where}: edge_attr is {list(kinds.shape)} for {edges.shape[1]} edges: give a row per edge.")
    for what, values in (("x", x), ("edge_attr", kinds)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise DataError(f"{where}: {what} holds a NaN or infinite number: every feature must be finite.")
    y = _target(getattr(data, "y", None), where) if labeled else np.zeros((1, 0))
    return x, edges.astype(np.int64), kinds, y


def _target(y: Any, where: str) -> NDArray[Any]:
    """A row of targets, NaN for none."""
    if y is None:
        return np.full((1, 1), np.nan)
    found = _numbers(y, "y", where, "number classes 0, 1, …")
    if found.dtype.kind == "f" and np.isinf(found).any():
        raise DataError(f"{where}: y is infinite: give a number, or NaN for a missing label.")
    if found.ndim > 2 or (found.ndim == 2 and len(found) != 1):
        raise DataError(f"{where}: y must be a number or a row of tasks [1, tasks], got {list(found.shape)}.")
    return found.reshape(1, -1)


def _numbers(value: Any, what: str, where: str, fix: str = "give numbers") -> NDArray[Any]:
    array = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    if array.dtype.kind not in _REAL:
        shown = f"text ({str(array.flat[0])[:40]!r})" if array.dtype.kind in "US" and array.size else str(array.dtype)
        raise DataError(f"{where}: {what} is {shown}: {fix}.")
    return array


def _is_coded(features: NDArray[Any], dims: tuple[int, ...]) -> bool:
    """Whether features are OGB's integers."""
    if features.dtype.kind not in "iu" or features.shape[1] != len(dims):
        return features.shape == (0, len(dims))
    return bool((features >= 0).all() and (features < np.array(dims)).all())


def _kind(y: NDArray[Any], *, rows: bool) -> str:
    """The task that targets look like: a row of 0 and 1 is a row of yes/no questions, an integer a class."""
    known = y[~np.isnan(y)] if y.dtype.kind == "f" else y
    if np.isin(known, (0, 1)).all() and (rows or y.shape[1] > 1 or y.dtype.kind == "f"):
        return "binary classification"
    return "classification" if y.dtype.kind in "biu" and y.shape[1] == 1 else "regression"
