"""The graph that is run on, and the splits it is trained on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from propreg.data.catalog import NUM_SPLITS, MoleculeSet, find
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.nodes import load_node_graph
from propreg.data.own import read_graph
from propreg.data.splits import official_splits, random_split

WIDE = 20.0  # features beyond this make training with the usual learning rates slow or unstable


@dataclass(frozen=True)
class Source:
    """A graph, its splits by name, and what the reader should know of how they came about."""

    name: str
    graph: Graph
    splits: Mapping[str, Split]
    notes: tuple[str, ...] = ()
    quick: bool = False


def load_source(dataset: str, root: str | os.PathLike[str] | None = None, *, splits: int | None = None) -> Source:
    """A benchmark dataset as the paper's experiments have it: rows of features normalised, the official splits.

    Example:
        >>> source = load_source("digits", splits=3)
        >>> source.graph.num_nodes, list(source.splits)
        (1797, ['0', '1', '2'])
    """
    entry = find(dataset)
    if isinstance(entry, MoleculeSet):
        raise DataError(f"{entry.name} holds many graphs, and propreg run takes one: choose a node dataset like cora.")
    quick = not entry.file
    count = (NUM_SPLITS if quick else 5) if splits is None else splits
    if not 1 <= count <= NUM_SPLITS:
        raise DataError(f"{entry.name} has {NUM_SPLITS} official splits, but {count} were asked for.")
    # Split 0, so that CiteSeer has the labels that the official splits were drawn with.
    graph = load_node_graph(dataset, root, normalize_features=not quick, split=0)
    # The digests without the split's: random streams name the split themselves, as in the study.
    parts = {part: graph.digests[part] for part in ("edges", "features", "labels")}
    graph = replace(graph, split=None, digests=parts)
    note = "Each node's features were divided by their sum, as in the paper."
    if quick:
        x = graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x
        graph = replace(graph, x=x / np.float32(16), class_names=tuple(str(c) for c in range(graph.num_classes)))
        note = "Pixels were divided by 16, so that they lie between 0 and 1."
    named = {str(i): split for i, split in enumerate(official_splits(dataset, root)[:count])}
    return Source(entry.name, graph, named, (note,), quick)


def load_own(
    path: str | os.PathLike[str],
    *,
    directed: bool = False,
    normalize_features: bool = False,
    splits: int | None = None,
    train_per_class: int = 20,
    val_per_class: int = 30,
) -> Source:
    """A graph of the user's own, with its own split or random ones."""
    graph = read_graph(path, directed=directed)
    name = graph.name or "graph"
    notes = []
    if normalize_features:
        graph = replace(graph, x=_row_normalised(graph.x))
        notes.append("Each node's features were divided by their sum, as in the paper.")
    elif (largest := _largest(graph.x)) > WIDE:
        notes.append(
            f"Features reach {largest:,.4g}, and training goes better with values of about 1: scale them, or run again "
            "with --normalize-features."
        )
    if graph.split is not None:
        if splits is not None:
            raise DataError(f"{path}: has a split of its own, so that no random ones are drawn: leave --splits out.")
        return Source(name, graph, {"own": graph.split}, tuple(notes))
    needed = train_per_class + val_per_class + 1
    labelled = graph.y[graph.y >= 0]
    if not len(labelled):
        raise DataError(f"{path}: no node has a label, and there is nothing to train on: give the nodes you know one.")
    counts = np.unique(labelled, return_counts=True)[1]
    if few := int((counts < needed).sum()):
        notes.append(
            f"{few} of {len(counts)} classes have fewer than {needed} labelled nodes: of those, half of the nodes were "
            "for testing, and the rest for training and validation."
        )
    drawn = {
        f"random-{seed}": random_split(graph.y, train_per_class, val_per_class, seed, small_classes="shrink")
        for seed in range(5 if splits is None else splits)
    }
    return Source(name, graph, drawn, tuple(notes))


def _row_normalised(x: "np.ndarray | SparseFeatures") -> "np.ndarray | SparseFeatures":
    if isinstance(x, SparseFeatures):
        return x.row_normalized()
    scaled: np.ndarray = (x / np.maximum(x.sum(axis=1, keepdims=True), 1.0)).astype(np.float32)
    return scaled


def _largest(x: "np.ndarray | SparseFeatures") -> float:
    values = x.filled() if isinstance(x, SparseFeatures) else x
    return float(np.abs(values).max(initial=0.0))
