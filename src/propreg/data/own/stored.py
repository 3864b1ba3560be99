"""A graph as a folder of plain ``.npy`` files that are memory-mapped: for graphs that fill the memory, or more.

====================  ==================  =====================================================================
file                  type and shape      meaning
====================  ==================  =====================================================================
``graph.json``                            format, name, class and feature names, each file's SHA-256, as text
``start.npy``         int64 [N + 1]       where the edges into each node start in ``source``, and the end
``source.npy``        int32 or int64 [E]  the source of each edge, ordered by target
``weight.npy``        float32 [E]         left out if edges have no weights
``x.npy``             float32 [N, F]      the features
``y.npy``             int64 [N]           class of each node; −1 for no label
``train_mask.npy`` …  bool [N]            with ``val_mask``, ``test_mask``; left out if the graph has no split
``node_ids.npy``      text [N]            left out if nodes have no ids
====================  ==================  =====================================================================
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.csr import InEdges
from propreg.data.errors import DataError
from propreg.data.features import dense_features
from propreg.data.formats.files import read_bytes
from propreg.data.formats.npz import map_npy, npy_header
from propreg.data.graph import MASKS, Graph, SparseFeatures
from propreg.data.own.validate import checked_graph
from propreg.jsonio import canonical, parse

FORMAT = "propreg-stored-graph-1"
DESCRIPTION = "graph.json"
_TYPES = {"start": ("i8", 1), "source": ("i4i8", 1), "weight": ("f4", 1), "x": ("f4", 2), "y": ("i8", 1)}
_TYPES |= dict.fromkeys(MASKS, ("b1", 1))
_NEEDED = ("start", "source", "x", "y")
_NAMES = ("class_names", "feature_names")
_ROWS = 1 << 14
_CHUNK = 1 << 22


@dataclass(frozen=True)
class StoredGraph:
    """An open folder: its edges and arrays are mapped into memory."""

    path: Path
    name: str
    edges: InEdges
    arrays: dict[str, NDArray[Any]]
    names: dict[str, tuple[str, ...]]
    digests: dict[str, str]
    seen: dict[str, tuple[int, ...]]
    """What told the files apart when they were opened."""

    def check(self) -> None:
        """Raise if a file was changed, replaced or removed since it was opened; it is not read."""
        for file, before in self.seen.items():
            if _identity(self.path / file) != before:
                raise DataError(
                    f"{self.path / file}: changed while it was in use, so the training since then may mix two graphs: "
                    "train again, and convert to a new folder instead of changing this one."
                )

    def verify(self) -> None:
        """Read all files, and raise unless each has the SHA-256 that was written with it."""
        for file, expected in self.digests.items():
            with open(self.path / file, "rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != expected:
                    raise DataError(
                        f"{self.path / file}: does not have the SHA-256 in {DESCRIPTION}: copy or convert it again."
                    )


def write_stored(path: str | os.PathLike[str], graph: Graph) -> None:
    """Write ``graph`` to a new folder in the format above; it is written completely or not at all.

    Args:
        path: The folder to create.
        graph: The graph. Sparse features are written dense.

    Raises:
        DataError: If the path exists, the graph does not fit the format, or the disk does not hold it.

    Example:
        >>> import tempfile
        >>> graph = Graph("pair", np.array([[0, 1], [1, 0]]), np.eye(2, dtype=np.float32), np.array([0, 1]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_stored(f"{folder}/pair", graph)
        ...     open_stored(f"{folder}/pair").edges.source.tolist()
        [1, 0]
    """
    target = Path(path)
    if target.exists():
        raise DataError(f"{target}: already exists: choose another name, or remove it first.")
    if graph.extra or graph.targets is not None:
        raise DataError(f"{target}: only classes of nodes fit the format: take the graph's other targets out.")
    edges = InEdges.of(graph.edge_index, graph.num_nodes, graph.edge_weight)
    arrays: dict[str, NDArray[Any]] = {"start": edges.start, "source": edges.source, "y": graph.y}
    if edges.weight is not None:
        arrays["weight"] = edges.weight
    if graph.split is not None:
        arrays |= dict(zip(MASKS, (graph.split.train, graph.split.val, graph.split.test), strict=True))
    if graph.node_ids:
        arrays["node_ids"] = np.array(graph.node_ids)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        temporary.mkdir()
        digests = {f"{name}.npy": _write(temporary / f"{name}.npy", array) for name, array in arrays.items()}
        digests["x.npy"] = _write(temporary / "x.npy", graph.x)
        about = {"format": FORMAT, "name": graph.name, "sha256": digests}
        about |= {name: list(getattr(graph, name)) for name in _NAMES}
        (temporary / DESCRIPTION).write_text(canonical(about), encoding="utf-8")
        temporary.rename(target)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # already moved if all went well


def open_stored(path: str | os.PathLike[str]) -> StoredGraph:
    """Open a folder that :func:`write_stored` wrote: sizes and types are checked, contents stay on disk.

    Raises:
        DataError: If a file is missing, of another type or size, or does not fit the others.
    """
    folder = Path(path)
    about = _description(folder)
    digests: dict[str, str] = about["sha256"]
    seen = {file: _identity(folder / file) for file in [DESCRIPTION, *digests]}
    arrays = {file.removesuffix(".npy"): map_npy(folder / file) for file in digests}
    for name, (types, dimensions) in _TYPES.items():
        if name in arrays and (arrays[name].dtype.str[1:] not in types or arrays[name].ndim != dimensions):
            raise DataError(
                f"{folder / name}.npy: holds {arrays[name].dtype} of shape {arrays[name].shape}, which is not in the "
                "format: convert the graph again."
            )
    start, source, weight = arrays.pop("start"), arrays.pop("source"), arrays.pop("weight", None)
    nodes = len(start) - 1
    sizes = {name: len(array) for name, array in arrays.items()}
    rising = nodes >= 0 and start[0] == 0 and start[-1] == len(source) and bool((start[1:] >= start[:-1]).all())
    if not rising or set(sizes.values()) != {nodes} or (weight is not None and len(weight) != len(source)):
        raise DataError(f"{folder}: its files do not fit together: convert the graph again.")
    names = {name: tuple(about[name]) for name in _NAMES}
    return StoredGraph(folder, about["name"], InEdges(start, source, weight), arrays, names, digests, seen)


def read_stored(path: Path) -> Graph:
    """The whole graph with all checks; its features stay on disk.

    Raises:
        DataError: If the folder is damaged.
    """
    stored = open_stored(path)
    stored.verify()
    arrays = {name: array for name, array in stored.arrays.items() if name not in ("x", "node_ids")}
    arrays["edge_index"] = stored.edges.edge_index()
    if stored.edges.weight is not None:
        arrays["edge_weight"] = stored.edges.weight
    ids = stored.arrays.get("node_ids", np.empty(0, "U1")).tolist()
    x = dense_features(stored.arrays["x"], f"{path / 'x.npy'}")
    classes, columns = (stored.names[name] for name in _NAMES)
    return checked_graph(stored.name, x, arrays, str(path), class_names=classes, node_ids=ids, feature_names=columns)


def _description(folder: Path) -> dict[str, Any]:
    where = folder / DESCRIPTION
    try:
        about = parse(read_bytes(where, 64 << 20))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: is not JSON: convert the graph again.") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise DataError(f"{where}: is not of format {FORMAT!r}: update propreg or convert the graph again.")
    files = about.get("sha256")
    known = {f"{name}.npy" for name in (*_TYPES, "node_ids")}
    texts = [about.get("name"), *(about.get(name) for name in _NAMES)]
    fits = isinstance(files, dict) and {f"{name}.npy" for name in _NEEDED} <= files.keys() <= known
    lists = all(isinstance(each, list) and all(isinstance(text, str) for text in each) for each in texts[1:])
    if not fits or not lists or not isinstance(texts[0], str):
        raise DataError(f"{where}: does not describe a graph: convert the graph again.")
    return about


def _identity(file: Path) -> tuple[int, ...]:
    try:
        found = os.stat(file)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _write(path: Path, array: NDArray[Any] | SparseFeatures) -> str:
    """Write an npy file block by block and return its SHA-256."""
    dtype = np.dtype(np.float32) if isinstance(array, SparseFeatures) else array.dtype.newbyteorder("<")
    header = npy_header(np.broadcast_to(np.zeros((), dtype), array.shape))
    state = hashlib.sha256(header)
    with open(path, "xb") as file:
        file.write(header)
        for block in _blocks(array):
            part = np.ascontiguousarray(block, dtype).reshape(-1).view(np.uint8).data
            state.update(part)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return state.hexdigest()


def _blocks(array: NDArray[Any] | SparseFeatures) -> Iterator[NDArray[Any]]:
    if not isinstance(array, SparseFeatures):
        rows = max(1, _CHUNK * len(array) // max(array.nbytes, 1))
        yield from (array[first : first + rows] for first in range(0, len(array), rows))
        return
    for first in range(0, array.shape[0], _ROWS):
        start = array.indptr[first : first + _ROWS + 1]
        part = slice(start[0], start[-1])
        values = None if array.values is None else array.values[part]
        shape = (len(start) - 1, array.shape[1])
        yield SparseFeatures(start - start[0], array.indices[part], values, shape).to_dense()
