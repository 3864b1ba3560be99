"""The npz files of the cache: node datasets, their official splits, molecules.

Of a node dataset each undirected edge once with source < target, sorted; features as CSR (without ``x_values`` if all
are 1) or as packed bits; labels; the public split as node numbers. All arrays are plain numbers.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.molecules import PARTS, Molecules, check_molecules, small
from propreg.data.edges import check_nodes, once, undirected
from propreg.data.errors import DataError
from propreg.data.features import checked_csr, from_dense
from propreg.data.formats.npz import read_npz, write_npz
from propreg.data.graph import PARTS as SETS
from propreg.data.graph import Graph, SparseFeatures, Split

_SPLIT = {"train": "train_idx", "val": "val_idx", "test": "test_idx"}
_ARRAYS = {
    "edge_index", "y", "x_indptr", "x_indices", "x_values", "x_packed", "x_shape", "num_nodes", "num_features",
    "num_classes", "unlabelled_idx", *_SPLIT.values(),
}  # fmt: skip
_MAX_BYTES = 256 << 20


def read_nodes(path: Path, name: str) -> Graph:
    """Read a node dataset and check everything but the digests.

    Args:
        path: The npz file.
        name: The graph's name.

    Returns:
        The graph with sparse features, edges sorted by (source, target), and the public split if it has one;
        ``extra["unlabeled"]`` holds the nodes without features and label in the published files.
    """
    arrays = read_npz(path, only=_ARRAYS, max_bytes=_MAX_BYTES)
    where = str(path)
    nodes, features, classes = (_number(arrays, f"num_{what}", where) for what in ("nodes", "features", "classes"))
    y = _integers(arrays, "y", where, 1)
    if len(y) != nodes or (nodes and not 0 <= int(y.min()) <= int(y.max()) < classes):
        raise DataError(
            f"{where}: y does not hold one of {classes} classes for each of {nodes} nodes: the file is damaged."
        )
    edges = _integers(arrays, "edge_index", where, 2)
    if len(edges) != 2:
        raise DataError(f"{where}: edge_index must have two rows, but has {len(edges)}: it is damaged.")
    edge_index = undirected(edges[0], edges[1], nodes, f"{where}, edge_index")
    if edge_index.shape[1] != 2 * edges.shape[1]:
        raise DataError(f"{where}: edge_index holds self-loops or an edge twice: it is damaged.")
    unlabeled = _integers(arrays, "unlabelled_idx", where, 1) if "unlabelled_idx" in arrays else np.zeros(0, np.int64)
    check_nodes(unlabeled, nodes, f"{where}, unlabelled_idx")
    if bool(y[unlabeled].any()):
        raise DataError(f"{where}: unlabelled_idx names a node that has a label: it is damaged.")
    split = None
    if any(member in arrays for member in _SPLIT.values()):
        split = Split(**{which: node_mask(arrays, member, nodes, where) for which, member in _SPLIT.items()})
    return Graph(
        name,
        edge_index,
        _features(arrays, nodes, features, where),
        y.astype(np.int64),
        split=split,
        extra={"unlabeled": unlabeled.astype(np.int64), "classes": classes},
    )


def write_nodes(path: Path, graph: Graph) -> None:
    """Write a node dataset for :func:`read_nodes`, whole or not at all."""
    x = graph.x if isinstance(graph.x, SparseFeatures) else from_dense(graph.x)
    arrays: dict[str, NDArray[Any]] = {
        "edge_index": once(graph.edge_index).astype(np.int32),
        "y": graph.y.astype(np.int32),
        "num_nodes": np.asarray(graph.num_nodes, np.int32),
        "num_features": np.asarray(graph.num_features, np.int32),
        "num_classes": np.asarray(graph.extra.get("classes", graph.num_classes), np.int32),
        "x_indptr": x.indptr,
        "x_indices": x.indices,
        "x_shape": np.asarray(x.shape, np.int32),
    }
    if x.values is not None:
        arrays["x_values"] = x.values
    if graph.split is not None:
        for which, member in _SPLIT.items():
            arrays[member] = np.flatnonzero(getattr(graph.split, which)).astype(np.int32)
    if len(graph.extra.get("unlabeled", ())):
        arrays["unlabelled_idx"] = graph.extra["unlabeled"]
    write_npz(path, arrays)


def _features(arrays: dict[str, NDArray[Any]], nodes: int, features: int, where: str) -> SparseFeatures:
    shape = _integers(arrays, "x_shape", where, 1)
    if shape.tolist() != [nodes, features]:
        raise DataError(
            f"{where}: x_shape is {shape.tolist()} for {nodes} nodes and {features} features: it is damaged."
        )
    if "x_packed" not in arrays:
        indptr, indices = (_integers(arrays, f"x_{part}", where, 1) for part in ("indptr", "indices"))
        return checked_csr(indptr, indices, arrays.get("x_values"), (nodes, features), f"{where}, x")
    packed = arrays["x_packed"]
    if packed.dtype != np.uint8 or packed.shape != (nodes, (features + 7) // 8):
        raise DataError(f"{where}: x_packed has type {packed.dtype} and shape {packed.shape}: it is damaged.")
    return from_dense(_Bits(packed, features))  # type: ignore[arg-type]


class _Bits:
    """Packed bits that unpack block by block, so that the dense matrix is never in memory."""

    def __init__(self, packed: NDArray[np.uint8], columns: int) -> None:
        self._packed = packed
        self.shape = (len(packed), columns)

    def __getitem__(self, rows: slice) -> NDArray[np.uint8]:
        return np.unpackbits(self._packed[rows], axis=1, count=self.shape[1])


def node_mask(arrays: dict[str, NDArray[Any]], member: str, nodes: int, where: str) -> NDArray[np.bool_]:
    """The mask of the nodes that an array names, each once."""
    index = _integers(arrays, member, where, 1)
    check_nodes(index, nodes, f"{where}, {member}")
    mask = np.zeros(nodes, bool)
    mask[index] = True
    if int(mask.sum()) != len(index):
        raise DataError(f"{where}: {member} names a node twice: it is damaged.")
    return mask


def _number(arrays: dict[str, NDArray[Any]], member: str, where: str) -> int:
    value = int(_integers(arrays, member, where, 0))
    if not 0 <= value < 2**31:
        raise DataError(f"{where}: {member} is {value}: it is damaged.")
    return value


def _integers(arrays: dict[str, NDArray[Any]], member: str, where: str, dimensions: int) -> NDArray[Any]:
    if member not in arrays:
        raise DataError(f"{where}: has no array {member!r}: it is not a dataset file of propreg, or damaged.")
    array = arrays[member]
    if array.dtype.kind not in "iu" or array.ndim != dimensions:
        raise DataError(
            f"{where}: {member} must be integers in {dimensions} dimensions, but has type {array.dtype} "
            f"and shape {array.shape}: it is damaged."
        )
    return array


_INTEGERS = {
    "num_nodes": 1, "num_bonds": 1, "node_feat": 2, "bonds": 2, "bond_feat": 2, "smiles_ascii": 1,
    "task_names_ascii": 1, **{f"{part}_idx": 1 for part in PARTS},
}  # fmt: skip


def read_molecules(path: Path, name: str) -> Molecules:
    """Read a molecule dataset and check everything but the digests."""
    arrays = read_npz(path, only={*_INTEGERS, "y"}, max_bytes=_MAX_BYTES)
    where = str(path)
    for member, dimensions in _INTEGERS.items():
        _integers(arrays, member, where, dimensions)
    if "y" not in arrays or arrays["y"].dtype != np.float32:
        raise DataError(f"{where}: y must be float32 labels: it is damaged.")
    data = Molecules(
        name,
        _lines(arrays["smiles_ascii"], where),
        _lines(arrays["task_names_ascii"], where),
        arrays["y"],
        arrays["num_nodes"].astype(np.int64),
        arrays["num_bonds"].astype(np.int64),
        small(arrays["node_feat"].T),
        small(arrays["bonds"]),
        small(arrays["bond_feat"].T),
        {part: arrays[f"{part}_idx"].astype(np.int64) for part in PARTS},
    )
    return check_molecules(data, where)


def write_molecules(path: Path, data: Molecules) -> None:
    """Write a molecule dataset for :func:`read_molecules`, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {
        "smiles_ascii": _ascii(data.smiles),
        "task_names_ascii": _ascii(data.task_names),
        "y": data.y,
        "num_nodes": small(data.num_nodes),
        "num_bonds": small(data.num_bonds),
        "node_feat": small(data.atom_features.T),
        "bonds": small(data.bonds),
        "bond_feat": small(data.bond_features.T),
        **{f"{part}_idx": data.split[part].astype(np.int32) for part in PARTS},
    }
    write_npz(path, arrays)


def _lines(text: NDArray[Any], where: str) -> tuple[str, ...]:
    if text.dtype != np.uint8 or int(text.max(initial=0)) > 126:
        raise DataError(f"{where}: a text is not plain ASCII: the file is damaged.")
    return tuple(text.tobytes().decode("ascii").split("\n"))


def _ascii(lines: tuple[str, ...]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(lines).encode("ascii"), np.uint8)


def read_splits(path: Path, file: str, num_nodes: int) -> list[Split]:
    """Read the splits of the dataset named ``file`` from a file of one dataset or several."""
    members = [f"{file}__{which}" for which in SETS]
    arrays = read_npz(path, only={*members, f"{file}__num_nodes"}, max_bytes=64 << 20)
    count = arrays.get(f"{file}__num_nodes")
    if count is None or count.shape != () or count.dtype.kind not in "iu" or int(count) != num_nodes:
        raise DataError(f"{path}: has no splits of {file} for {num_nodes} nodes: it is damaged or another file.")
    return unpack_splits(arrays, members, num_nodes, path, file)


def unpack_splits(
    arrays: dict[str, NDArray[Any]], members: list[str], num_nodes: int, path: Path, file: str
) -> list[Split]:
    """The splits in three arrays of packed masks: those of the training, the validation and the test nodes."""
    masks: list[NDArray[np.bool_]] = []
    for member in members:
        packed = arrays.get(member)
        if packed is None or packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != (num_nodes + 7) // 8:
            raise DataError(f"{path}: {member} does not hold packed masks of {num_nodes} nodes: it is damaged.")
        masks.append(np.unpackbits(packed, axis=1, count=num_nodes).astype(bool))
    if not len(masks[0]) == len(masks[1]) == len(masks[2]):
        raise DataError(
            f"{path}: the numbers of training, validation and test masks of {file} differ: the file is damaged."
        )
    return [Split(*three) for three in zip(*masks, strict=True)]


def write_splits(path: Path, file: str, splits: list[Split]) -> None:
    """Write splits for :func:`read_splits`, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {
        f"{file}__{which}": np.packbits([getattr(split, which) for split in splits], axis=1) for which in SETS
    }
    arrays[f"{file}__num_nodes"] = np.asarray(len(splits[0].train), np.int32)
    write_npz(path, arrays)
