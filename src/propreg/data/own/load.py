"""A graph of your own: from a folder of CSV files, an npz file, or a PyG ``Data``."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from propreg._choices import one_of
from propreg.data.digests import digest_edges, digest_features, digest_labels, digest_splits
from propreg.data.errors import DataError
from propreg.data.graph import Graph
from propreg.data.own.folder import read_folder
from propreg.data.own.npz import read_graph_npz
from propreg.data.own.stored import DESCRIPTION, read_stored

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_graph(
    path: "str | os.PathLike[str] | Data", *, features: Literal["dense", "sparse"] = "dense", directed: bool = False
) -> "Data":
    """Load a graph of your own as a PyG ``Data``, as :func:`propreg.load_dataset` loads a benchmark.

    ``path`` is one of:

    * A **folder** with two files of comma-separated UTF-8 text, each with a header line.

      ``nodes.csv`` has one line per node and the columns ``id`` (any text, each once), ``label`` (any text; empty
      for none), optionally ``split`` (``train``, ``val``, ``test`` or empty), and one column of numbers for each
      feature. Instead of feature columns, a file ``features.npy`` may hold a matrix with a row for each line of
      nodes.csv, or ``features.npz`` such a matrix or a CSR matrix as ``scipy.sparse.save_npz`` writes it. Classes are
      numbered in the order of their labels: by value if all are integers, else alphabetically.

      ``edges.csv`` has one line per edge and the columns ``source`` and ``target`` (ids), optionally ``weight``.
      **Each line is an undirected edge**: both directions are added, and a line that repeats an edge in either
      direction adds nothing (a different weight is an error). With ``directed=True`` a line is one edge from source
      to target.

      Spaces around a value are dropped, blank lines skipped; values in double quotes may hold commas, line breaks
      and doubled quotes.
    * An **.npz** file in the format that :mod:`propreg.data.own.npz` describes and ``propreg data convert`` writes.
    * A **folder that** ``propreg data convert`` **wrote**: its features are memory-mapped, not read.
    * A PyG **Data**: it is checked, and a new one with the same content is returned.

    In an .npz file and a Data, each edge source → target is listed: both directions of an undirected one.

    Args:
        path: The graph.
        features: ``"dense"`` returns ``x`` as an ordinary tensor, ``"sparse"`` as a CSR tensor.
        directed: Read ``edges.csv`` as edges from source to target only.

    Returns:
        ``Data`` with ``x``, ``edge_index``, ``y`` (−1 for no label); ``edge_weight``, ``train_mask``, ``val_mask``,
        ``test_mask``, ``class_names``, ``node_ids`` and ``feature_names`` if the graph has them.

    Raises:
        DataError: If the graph cannot be used. The message names the file, the line and the fix.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "nodes.csv").write_text('''id,label,split,height,width
        ... ann,cat,train,1.5,0
        ... bob,dog,train,0.5,2
        ... cas,dog,test,0,1
        ... dee,,,1,1
        ... ''')
        ...     _ = Path(folder, "edges.csv").write_text('''source,target
        ... ann,bob
        ... bob,cas
        ... ''')
        ...     data = load_graph(folder)
        >>> data.x.shape, data.y.tolist(), data.class_names
        (torch.Size([4, 2]), [0, 1, 1, -1], ['cat', 'dog'])
        >>> data.edge_index.tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1]]
    """
    one_of("features", features, ("dense", "sparse"))
    from propreg.data.own.pyg import to_data

    return to_data(_read(path, directed=directed), features=features)


def read_graph(path: "str | os.PathLike[str] | Data", *, directed: bool = False, labeled: bool = True) -> Graph:
    """Read a graph of your own into NumPy arrays; neither torch nor PyG is needed for files.

    Args:
        path: The graph, as for :func:`load_graph`.
        directed: Read ``edges.csv`` as edges from source to target only.
        labeled: Refuse a graph without labels, or without the column or array that holds them.

    Returns:
        The graph with its features dense or sparse, as stored, and the content digests of its parts.

    Raises:
        DataError: If the graph cannot be used.
    """
    graph = _read(path, directed=directed, labeled=labeled)
    with ThreadPoolExecutor(1) as pool:  # SHA-256 and sorting run outside the GIL
        features = pool.submit(digest_features, graph.x)
        edges = digest_edges(graph.edge_index, graph.edge_weight)
        digests = {"edges": edges, "features": features.result(), "labels": digest_labels(graph.y)}
    if graph.split is not None:
        digests["splits"] = digest_splits([graph.split])
    return replace(graph, digests=digests)


def _read(source: Any, *, directed: bool, labeled: bool = True) -> Graph:
    if not isinstance(source, str | os.PathLike):
        if not hasattr(source, "edge_index"):
            raise TypeError(f"a graph is a folder, an .npz file or a PyG Data, got a {type(source).__name__}.")
        from propreg.data.own.pyg import graph_from_data

        return graph_from_data(source, labeled=labeled)
    path = Path(source)
    try:
        return _read_path(path, directed=directed, labeled=labeled)
    except OSError as error:  # a name too long, or a folder without permission to read it
        raise DataError(f"{str(path)[:200]}: cannot be read: {error.strerror or error}.") from error


def _read_path(path: Path, *, directed: bool, labeled: bool) -> Graph:
    if (path / DESCRIPTION).exists():
        return read_stored(path)
    if path.is_dir():
        return read_folder(path, directed=directed, labeled=labeled)
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder: check the path.")
    if path.name in ("edges.csv", "nodes.csv"):
        raise DataError(f"{path}: is one file of a graph: give the folder that holds edges.csv and nodes.csv.")
    if path.suffix.lower() != ".npz":
        raise DataError(f"{path}: is neither a folder nor an .npz file: give one of them.")
    return read_graph_npz(path, labeled=labeled)
