"""The graph that is run on, and the splits it is trained on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from propreg.data.catalog import NUM_SPLITS, MoleculeSet, find
from propreg.data.doubts import one_way, unused_classes
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.nodes import load_node_graph
from propreg.data.own import read_graph
from propreg.data.splits import official_splits, random_split
from propreg.fitting.settings import need_classes

PER_CLASS = 20, 30  # training and validation nodes of a random split, as in the paper
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
    train_per_class: int | None = None,
    val_per_class: int | None = None,
) -> Source:
    """A graph of the user's own, with its own split or random ones, of 20 and 30 nodes per class if not told."""
    if directed and not os.path.isdir(path):
        raise DataError(f"{path}: --directed is about a folder's edges.csv; here edges are as they are: leave it out.")
    graph = read_graph(path, directed=directed)
    need_classes(graph, str(path))
    name = graph.name or "graph"
    doubts = ("" if directed else one_way(graph, "list both directions of each edge"), unused_classes(graph))
    notes = [doubt for doubt in doubts if doubt]
    if normalize_features:
        graph = replace(graph, x=_row_normalised(graph.x))
        notes.append("Each node's features were divided by their sum, as in the paper.")
    elif (largest := _largest(graph.x)) > WIDE:
        notes.append(
            f"Features reach {largest:,.4g}, and training goes better with values of about 1: scale them, or run again "
            "with --normalize-features."
        )
    if graph.split is not None:
        asked = {"--splits": splits, "--train-per-class": train_per_class, "--val-per-class": val_per_class}
        if said := [name for name, value in asked.items() if value is not None]:
            out = " and ".join(said)
            raise DataError(f"{path}: has a split of its own, so that no random ones are drawn: leave {out} out.")
        return Source(name, graph, {"own": graph.split}, tuple(notes))
    train, val = train_per_class or PER_CLASS[0], val_per_class or PER_CLASS[1]
    needed = train + val + 1
    counts = np.unique(graph.y[graph.y >= 0], return_counts=True)[1]
    if few := int((counts < needed).sum()):
        notes.append(
            f"{few} of {len(counts)} classes have fewer than {needed} labelled nodes: of those, half of the nodes were "
            "for testing, and the rest for training and validation."
        )
    drawn = {
        f"random-{seed}": random_split(graph.y, train, val, seed, small_classes="shrink")
        for seed in range(5 if splits is None else splits)
    }
    if not all(part.any() for split in drawn.values() for part in (split.train, split.val, split.test)):
        raise DataError(
            f"{path}: {counts.sum()} labelled nodes are too few to train, choose and test on: label at least "
            f"{needed} of each class, or 3 with --train-per-class 1 --val-per-class 1."
        )
    return Source(name, graph, drawn, tuple(notes))


def _row_normalised(x: "np.ndarray | SparseFeatures") -> "np.ndarray | SparseFeatures":
    if isinstance(x, SparseFeatures):
        return x.row_normalized()
    scaled: np.ndarray = (x / np.maximum(x.sum(axis=1, keepdims=True), 1.0)).astype(np.float32)
    return scaled


def _largest(x: "np.ndarray | SparseFeatures") -> float:
    values = x.filled() if isinstance(x, SparseFeatures) else x
    return float(np.abs(values).max(initial=0.0))
