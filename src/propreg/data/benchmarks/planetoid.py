"""Cora, CiteSeer and PubMed from the files of the Planetoid paper: Python 2 pickles, read as plain data."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.edges import check_nodes, split_keys, unique_sorted
from propreg.data.errors import DataError
from propreg.data.features import checked_csr
from propreg.data.formats.files import read_bytes
from propreg.data.formats.pickles import CSR, DTYPE, NDARRAY, RECONSTRUCT, Global, Made, load_pickle, to_array, to_csr
from propreg.data.graph import Graph, SparseFeatures, Split

_DEFAULTDICT = Global("collections", "defaultdict")
_LIST = Global("__builtin__", "list")
_SIX = {(g.module, g.name) for g in (CSR, RECONSTRUCT, NDARRAY, DTYPE, _DEFAULTDICT, _LIST)}
_MAX_BYTES = 64 << 20
_VALIDATION = 500


def read_planetoid(folder: Path, name: str) -> Graph:
    """Read the files ``ind.NAME.*`` of a Planetoid dataset (without ``x``, which repeats rows of ``allx``).

    The result equals that of PyG's ``read_planetoid_data``, with sparse features: test rows put in their place, the
    CiteSeer nodes without features or label kept as empty rows of class 0, self-loops and duplicates removed.

    Args:
        folder: The folder of the files.
        name: The NAME in their names.
    """
    prefix = f"ind.{name}."
    x_all, x_test = (to_csr(*_unpickle(folder / f"{prefix}{part}")) for part in ("allx", "tx"))
    y_all, y_test, y_train = (_one_hot(folder / f"{prefix}{part}") for part in ("ally", "ty", "y"))
    index_file = folder / f"{prefix}test.index"
    test = _test_index(index_file)
    first, nodes = x_all.shape[0], int(test.max()) + 1
    same_width = y_all.shape[1] == y_test.shape[1] == y_train.shape[1] and x_all.shape[1] == x_test.shape[1]
    if not (len(y_all) == first == int(test.min()) and len(y_test) == x_test.shape[0] == len(test) and same_width):
        raise DataError(f"{folder}: the files {prefix}* do not fit together: get them again.")
    if len(y_train) + _VALIDATION > nodes:
        raise DataError(f"{folder}: {nodes} nodes are too few for the public split: get the files {prefix}* again.")
    if nodes - first > 10 * len(test):  # only a few numbers of the range are missing, on CiteSeer
        raise DataError(f"{index_file}: node numbers up to {nodes - 1} for {len(test)} nodes: get it again.")
    one_hot = np.zeros((nodes, y_all.shape[1]), bool)
    one_hot[:first], one_hot[test] = y_all > 0, y_test > 0
    if int(one_hot.sum(axis=1).max()) > 1:
        raise DataError(f"{folder}: a node of the files {prefix}* has two classes: get them again.")
    masks = [np.zeros(nodes, bool) for _ in range(3)]
    masks[0][: len(y_train)] = masks[1][len(y_train) : len(y_train) + _VALIDATION] = masks[2][test] = True
    return Graph(
        name,
        _edges(folder / f"{prefix}graph", nodes),
        _stack(x_all, x_test, test, nodes, f"{folder / prefix}*x"),
        one_hot.argmax(axis=1).astype(np.int64),
        split=Split(*masks),
        extra={"unlabeled": np.flatnonzero(~one_hot.any(axis=1)), "classes": one_hot.shape[1]},
    )


def _unpickle(path: Path) -> tuple[Any, str]:
    data = read_bytes(path, _MAX_BYTES)
    value, end = load_pickle(data, str(path), lambda module, name: (module, name) in _SIX)
    if end != len(data):
        raise DataError(f"{path}: has {len(data) - end} bytes after its end: get the file again.")
    return value, str(path)


def _one_hot(path: Path) -> NDArray[Any]:
    array = to_array(*_unpickle(path))
    if array.ndim != 2 or array.shape[1] > 1000 or not bool(((array == 0) | (array == 1)).all()):
        raise DataError(f"{path}: does not hold one row of zeros and ones per node: get the file again.")
    return array


def _test_index(path: Path) -> NDArray[np.int64]:
    try:
        index = np.array([int(line) for line in read_bytes(path, _MAX_BYTES).decode("ascii").split()], np.int64)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path}: does not hold one node number per line: get the file again.") from error
    check_nodes(index, 2**31, str(path))
    if len(index) == 0 or len(np.unique(index)) != len(index):
        raise DataError(f"{path}: holds no node, or a node twice: get the file again.")
    return index


def _edges(path: Path, nodes: int) -> NDArray[np.int64]:
    made, where = _unpickle(path)
    table = made.items if isinstance(made, Made) and made.of == _DEFAULTDICT else made
    if not isinstance(table, dict) or not all(type(neighbors) is list for neighbors in table.values()):
        raise DataError(f"{where}: is not a table of neighbors: get the file again.")
    ends = [end for neighbors in table.values() for end in neighbors]
    if not all(type(node) is int and 0 <= node < nodes for node in [*table, *ends]):
        raise DataError(f"{where}: a node is out of range for {nodes} nodes: get the file again.")
    source = np.repeat(np.array([*table], np.int64), [len(neighbors) for neighbors in table.values()])
    target = np.array(ends, np.int64)
    kept = source != target
    key = unique_sorted(source[kept] * nodes + target[kept])
    back = unique_sorted(target[kept] * nodes + source[kept])
    if not np.array_equal(key, back):
        raise DataError(f"{where}: an edge leads in one direction only: get the file again.")
    return split_keys(key, nodes)


def _stack(
    top: SparseFeatures, test: SparseFeatures, index: NDArray[np.int64], nodes: int, where: str
) -> SparseFeatures:
    """The rows of ``top``, then row ``index[k]`` = row k of ``test``; rows of neither are empty."""
    counts = np.zeros(nodes, np.int64)
    counts[: top.shape[0]] = np.diff(top.indptr)
    counts[index] = np.diff(test.indptr)
    order = np.argsort(index)
    take = np.concatenate([np.arange(test.indptr[k], test.indptr[k + 1]) for k in order])
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    indices = np.concatenate([top.indices, test.indices[take]])
    values = np.concatenate([top.filled(), test.filled()[take]])
    return checked_csr(indptr, indices, values, (nodes, top.shape[1]), where)
