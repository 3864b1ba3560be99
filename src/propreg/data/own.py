"""Your own graph: from a folder of CSV files, an npz file, or a PyG ``Data``."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from propreg.data._digest_frugal import digest_dense, digest_sorted_edges
from propreg.data.digest import digest_features, digest_labels, digest_splits
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own_folder import read_folder
from propreg.data.own_npz import read_graph_npz

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_graph(
    path: "str | os.PathLike[str] | Data", *, features: Literal["dense", "sparse"] = "dense", directed: bool = False
) -> "Data":
    """Load a graph of your own as a PyG ``Data``, like :func:`propreg.load_dataset` does with a benchmark.

    ``path`` is one of:

    * A **folder** with two files of comma-separated UTF-8 text, each with a header line.

      ``nodes.csv`` has one line per node and the columns ``id`` (any text, each once), ``label`` (any text; empty
      for a node without one), if you have a split ``split`` (``train``, ``val``, ``test`` or empty), and one column
      of numbers for each feature. Instead of feature columns there may be a file ``features.npy`` (a matrix with a
      row for each line of nodes.csv) or ``features.npz`` (one such matrix, or a CSR matrix as
      ``scipy.sparse.save_npz`` writes it). Classes are numbered in the order of their labels: by value where all
      are integers, else alphabetically.

      ``edges.csv`` has one line per edge and the columns ``source`` and ``target`` (ids) and, if edges have
      weights, ``weight``. **Each line is an undirected edge**: both directions are added, and a line that repeats
      an edge in either direction adds nothing (unless its weight differs, which is an error). With
      ``directed=True`` a line is one edge from source to target.

      Spaces around a value are dropped, blank lines skipped; values in double quotes may hold commas, line breaks
      and doubled quotes.
    * An **.npz** file in the format that :mod:`propreg.data.own_npz` describes and ``propreg data convert`` writes.
    * A PyG **Data** from Python: checked, and returned anew with the same content.

    In the last two, edges are taken as listed: source → target, both directions of an undirected one.

    Args:
        path: Where the graph is.
        features: ``"dense"`` gives ``x`` as an ordinary tensor, ``"sparse"`` as a CSR one, whatever the source had.
        directed: Read ``edges.csv`` as edges from source to target only.

    Returns:
        ``Data`` with ``x``, ``edge_index``, ``y`` (−1 for no label); ``edge_weight``, ``train_mask``, ``val_mask``,
        ``test_mask``, ``class_names`` and ``node_ids`` where the source has them.

    Raises:
        DataError: If the graph cannot be used as it is. The message names the file, the line and the fix.

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
    if features not in ("dense", "sparse"):
        raise ValueError(f"features must be 'dense' or 'sparse', but {features!r} came.")
    from propreg.data.pyg import to_data

    return to_data(_read(path, directed=directed), features=features)


def read_graph(path: "str | os.PathLike[str] | Data", *, directed: bool = False) -> Graph:
    """Read a graph of your own into NumPy arrays; neither torch nor PyG is needed for files.

    Args:
        path: Where the graph is, as for :func:`load_graph`.
        directed: Read ``edges.csv`` as edges from source to target only.

    Returns:
        The graph with its features as the source has them (dense or sparse), and its parts' content digests.

    Raises:
        DataError: If the graph cannot be used as it is.
    """
    graph = _read(path, directed=directed)
    digests = {
        "edges": digest_sorted_edges(graph.edge_index, graph.edge_weight),
        "features": digest_features(graph.x) if isinstance(graph.x, SparseFeatures) else digest_dense(graph.x),
        "labels": digest_labels(graph.y),
    }
    if graph.split is not None:
        digests["splits"] = digest_splits([graph.split])
    return replace(graph, digests=digests)


def _read(source: Any, *, directed: bool) -> Graph:
    if not isinstance(source, str | os.PathLike):
        if not hasattr(source, "edge_index"):
            raise TypeError(f"a graph is a folder, an .npz file or a PyG Data, but a {type(source).__name__} came.")
        from propreg.data.own_data import graph_from_data

        return graph_from_data(source)
    path = Path(source)
    try:
        return _read_path(path, directed=directed)
    except OSError as error:  # a name too long, or a folder that may not be looked into
        raise DataError(f"{str(path)[:200]}: cannot be read: {error.strerror or error}.") from error


def _read_path(path: Path, *, directed: bool) -> Graph:
    if path.is_dir():
        return read_folder(path, directed=directed)
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder: check the path.")
    if path.name in ("edges.csv", "nodes.csv"):
        raise DataError(f"{path}: is one file of a graph: give the folder that holds edges.csv and nodes.csv.")
    if path.suffix.lower() != ".npz":
        raise DataError(f"{path}: is neither a folder nor an .npz file: give one of them.")
    return read_graph_npz(path)
