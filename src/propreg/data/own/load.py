"""A graph of your own: from CSV files, an npz file, data frames, a NetworkX graph, or a PyG ``Data``."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from propreg._choices import one_of
from propreg.data.digests import digest_edges, digest_features, digest_labels, digest_splits
from propreg.data.errors import DataError
from propreg.data.graph import Graph
from propreg.data.own.folder import read_folder, read_tables
from propreg.data.own.frames import COLUMNS, graph_of_frames, graph_of_networkx, is_frame, is_networkx
from propreg.data.own.npz import read_graph_npz
from propreg.data.own.stored import DESCRIPTION, read_stored

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_graph(
    path: Any,
    edges: Any = None,
    *,
    features: Literal["dense", "sparse"] = "dense",
    directed: bool = False,
    columns: Mapping[str, str] | None = None,
) -> "Data":
    """Load a graph of your own as a PyG ``Data``, as :func:`propreg.load_dataset` loads a benchmark.

    ``path`` is one of:

    * A **folder** with two files of UTF-8 text, each with a header line, separated by commas, semicolons or tabs.

      ``nodes.csv`` has one line per node and the columns ``id`` (any text, each once), ``label`` (any text; empty
      for none), optionally ``split`` (``train``, ``val``, ``test`` or empty), and one column of numbers for each
      feature. Instead of feature columns, a file ``features.npy`` may hold a matrix with a row for each line of
      nodes.csv, or ``features.npz`` such a matrix or a CSR matrix as ``scipy.sparse.save_npz`` writes it. Classes are
      numbered in the order of their labels: by value if all are integers, else alphabetically.

      ``edges.csv`` has one line per edge and the columns ``source`` and ``target`` (ids), optionally ``weight``.
      **Each line is an undirected edge**: both directions are added, and a line that repeats an edge in either
      direction adds nothing (a different weight is an error). With ``directed=True`` a line is one edge from source
      to target.

      Spaces around a value are dropped, blank lines skipped; values in double quotes may hold separators, line breaks
      and doubled quotes.
    * **Two such files** of any name, ``load_graph("people.csv", "friends.csv")``.
    * **Two pandas data frames** of nodes and edges with these columns. Without a column ``id``, the ids are the index.
    * A **NetworkX** graph, whose nodes have the attributes ``label``, perhaps ``split``, and numbers or vectors as
      features, and whose edges may all have a ``weight``. A directed one stays directed.
    * An **.npz** file in the format that :mod:`propreg.data.own.npz` describes and ``propreg data convert`` writes.
    * A **folder that** ``propreg data convert`` **wrote**: its features are memory-mapped, not read.
    * A PyG **Data**: it is checked, and a new one with the same content is returned.

    In an .npz file and a Data, each edge source → target is listed: both directions of an undirected one.

    Args:
        path: The graph, or its nodes.
        edges: The edges, if ``path`` is of the nodes alone.
        features: ``"dense"`` returns ``x`` as an ordinary tensor, ``"sparse"`` as a CSR tensor.
        directed: Read ``edges.csv`` as edges from source to target only.
        columns: The names of columns or attributes where they are others than those above, like
            ``{"label": "species", "source": "from", "target": "to"}``.

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

    return to_data(_read(path, edges, directed=directed, columns=columns), features=features)


def read_graph(
    path: Any,
    edges: Any = None,
    *,
    directed: bool = False,
    labeled: bool = True,
    columns: Mapping[str, str] | None = None,
) -> Graph:
    """Read a graph of your own into NumPy arrays; neither torch nor PyG is needed for files.

    Args:
        path, edges, directed, columns: The graph, as for :func:`load_graph`.
        labeled: Refuse a graph without labels, or without the column or array that holds them.

    Returns:
        The graph with its features dense or sparse, as stored, and the content digests of its parts.

    Raises:
        DataError: If the graph cannot be used.
    """
    graph = _read(path, edges, directed=directed, labeled=labeled, columns=columns)
    with ThreadPoolExecutor(1) as pool:  # SHA-256 and sorting run outside the GIL
        features = pool.submit(digest_features, graph.x)
        edges = digest_edges(graph.edge_index, graph.edge_weight)
        digests = {"edges": edges, "features": features.result(), "labels": digest_labels(graph.y)}
    if graph.split is not None:
        digests["splits"] = digest_splits([graph.split])
    return replace(graph, digests=digests)


def _read(
    source: Any, edges: Any, *, directed: bool, labeled: bool = True, columns: Mapping[str, str] | None = None
) -> Graph:
    for name in columns or {}:
        one_of("a key of columns", name, COLUMNS)
    in_memory = not isinstance(source, str | os.PathLike)
    if edges is not None:
        given = [isinstance(each, str | os.PathLike) for each in (source, edges)]
        if all(given):
            return read_tables(Path(source), Path(edges), directed=directed, labeled=labeled, columns=columns)
        if any(given) or not (is_frame(source) and is_frame(edges)):
            kinds = f"a {type(source).__name__} and a {type(edges).__name__}"
            raise TypeError(f"nodes and edges are two files or two pandas data frames, got {kinds}.")
        return graph_of_frames(source, edges, directed=directed, labeled=labeled, columns=columns)
    if in_memory:
        if is_networkx(source):
            return graph_of_networkx(source, labeled=labeled, columns=columns)
        if is_frame(source):
            raise TypeError("one data frame is not a graph: pass two, of nodes and of edges.")
        if not hasattr(source, "edge_index"):
            raise TypeError(
                "a graph is a folder, an .npz file, two data frames, a NetworkX graph or a PyG Data, got a "
                f"{type(source).__name__}."
            )
        if columns:
            raise ValueError("columns is for tables and NetworkX graphs: leave it out.")
        from propreg.data.own.pyg import graph_from_data

        return graph_from_data(source, labeled=labeled)
    path = Path(source)
    try:
        return _read_path(path, directed=directed, labeled=labeled, columns=columns)
    except OSError as error:  # a name too long, or a folder without permission to read it
        raise DataError(f"{str(path)[:200]}: cannot be read: {error.strerror or error}.") from error


def _read_path(path: Path, *, directed: bool, labeled: bool, columns: Mapping[str, str] | None) -> Graph:
    if (path / DESCRIPTION).exists():
        return read_stored(path)
    if path.is_dir():
        return read_folder(path, directed=directed, labeled=labeled, columns=columns)
    if not path.exists():
        raise DataError(f"{path}: there is no such file or folder: check the path.")
    if path.name in ("edges.csv", "nodes.csv"):
        raise DataError(f"{path}: is one file of a graph: give the folder that holds edges.csv and nodes.csv.")
    if columns and path.suffix.lower() == ".npz":
        raise ValueError("columns is for tables and NetworkX graphs: leave it out.")
    if path.suffix.lower() != ".npz":
        raise DataError(f"{path}: is neither a folder nor an .npz file: give one of them.")
    return read_graph_npz(path, labeled=labeled)
