"""A graph from pandas data frames or from NetworkX; neither package is imported, or needed for anything else.

Both go through the text that files have, so that a value means the same wherever it comes from.
"""

import csv
import io
import sys
from collections.abc import Iterable, Mapping
from numbers import Number
from typing import Any

import numpy as np

from propreg.data.errors import DataError
from propreg.data.graph import Graph
from propreg.data.own.edges_csv import edges_of
from propreg.data.own.folder import graph_of
from propreg.data.own.nodes_csv import nodes_of

COLUMNS = ("id", "label", "split", "source", "target", "weight")
"""What columns of tables are called, unless the caller names others."""
_NODES, _EDGES = "the table of nodes", "the table of edges"


def is_frame(value: Any) -> bool:
    """Whether it is a pandas data frame."""
    return _is_of(value, "pandas", "DataFrame")


def is_networkx(value: Any) -> bool:
    """Whether it is a NetworkX graph."""
    return _is_of(value, "networkx", "Graph")


def _is_of(value: Any, package: str, name: str) -> bool:
    module = sys.modules.get(package)  # an object of a package exists only if the package was imported
    return module is not None and isinstance(value, getattr(module, name))


def graph_of_frames(
    nodes: Any, edges: Any, *, directed: bool, labeled: bool = True, columns: Mapping[str, str] | None = None
) -> Graph:
    """The graph of a data frame of nodes and one of edges; without a column of ids, the nodes' index has them."""
    key = (columns or {}).get("id", "id")
    if key not in nodes.columns and key not in (nodes.index.name, None):
        nodes = nodes.rename_axis(key)
    nodes = nodes if key in nodes.columns else nodes.reset_index()
    return _graph("", _text_of(nodes), _text_of(edges), directed=directed, labeled=labeled, columns=columns)


def graph_of_networkx(graph: Any, *, labeled: bool = True, columns: Mapping[str, str] | None = None) -> Graph:
    """The graph of a NetworkX one: attributes of nodes are label, split and features, a vector one for each number."""
    rows = [_flat(attributes) | {"id": node} for node, attributes in graph.nodes(data=True)]
    weight = (columns or {}).get("weight", "weight")
    ends = [(source, target, found.get(weight)) for source, target, found in graph.edges(data=True)]
    known = sum(value is not None for *_, value in ends)
    if 0 < known < len(ends):
        raise DataError(f"{_EDGES}: {known:,} of {len(ends):,} have a weight: give all of them one, or none.")
    names = ("source", "target", "weight")[: 3 if known else 2]
    table = _written(names, (row[: len(names)] for row in ends))
    keys = list(dict.fromkeys(key for row in rows for key in row))
    text = _written(keys, ([row.get(key) for key in keys] for row in rows))
    renamed = {ours: theirs for ours, theirs in (columns or {}).items() if ours in ("label", "split")}
    return _graph(str(graph.name), text, table, directed=graph.is_directed(), labeled=labeled, columns=renamed)


def _graph(
    name: str, nodes: bytes, edges: bytes, *, directed: bool, labeled: bool, columns: Mapping[str, str] | None
) -> Graph:
    found = nodes_of(io.BytesIO(nodes), _NODES, labeled=labeled, columns=columns)
    if found.x is None:
        raise DataError(f"{_NODES}: has no features: add a number, or several, to each node.")
    lines = edges_of(io.BytesIO(edges), _EDGES, found.ids, columns=columns)
    return graph_of(name, found, found.x, lines, _EDGES, directed=directed)


def _text_of(frame: Any) -> bytes:
    """The columns as text; numbers that are whole but for missing ones are written as such, 1 and not 1.0."""
    columns = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        missing = column.isna().to_numpy()
        values = column.to_numpy(dtype=object, na_value=None) if missing.any() else column.to_numpy()
        whole = column.dtype.kind == "f" and bool((column[~missing] % 1 == 0).all())
        columns.append([None if no else int(each) if whole else each for each, no in zip(values, missing, strict=True)])
    return _written([str(name) for name in frame.columns], zip(*columns, strict=True))


def _flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Vectors as an attribute for each number."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, str | bytes | Number | np.generic) or value is None or np.ndim(value) == 0:
            found[str(name)] = value
        else:
            found |= {f"{name}{i}": each for i, each in enumerate(np.asarray(value).ravel().tolist())}
    return found


def _written(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(map(_cell, row) for row in rows)
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return str(int(value)) if isinstance(value, bool | np.bool_) else str(value)
