"""What was read, with its digests, once it is known to be the dataset it should be."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from propreg.data.catalog import NUM_SPLITS, MoleculeSet, NodeSet
from propreg.data.check import check_counts, check_parts
from propreg.data.digest import digest_edges, digest_features, digest_labels, digest_splits
from propreg.data.errors import DataError
from propreg.data.graph import Graph, Split
from propreg.data.molecules import PARTS, Molecules, digest_molecules


def verify_nodes(graph: Graph, entry: NodeSet, where: str) -> Graph:
    """The graph with its digests.

    Raises:
        DataError: If its counts or an enforced part are not the dataset's.
    """
    counts = {
        "nodes": graph.num_nodes,
        "edges": graph.edge_index.shape[1] // 2,
        "features": graph.num_features,
        "classes": graph.extra.get("classes", graph.num_classes),
    }
    expected = {what: getattr(entry, what) for what in counts}
    check_counts(entry.name, counts, expected, where)
    digests = {
        "edges": digest_edges(graph.edge_index),
        "features": digest_features(graph.x),
        "labels": digest_labels(graph.y),
    }
    if "authors_labels" in entry.parts:
        digests["authors_labels"] = digest_labels(authors_labels(graph, entry))
    elif len(graph.extra.get("unlabelled", ())):
        raise DataError(f"{where}: {entry.name} has no nodes without a label, but some were read: get the file again.")
    if graph.split is not None:
        digests["public_split"] = digest_splits([graph.split])
    check_parts(entry.name, digests, entry.parts, where)
    return replace(graph, digests=digests)


def authors_labels(graph: Graph, entry: NodeSet) -> NDArray[np.int64]:
    """The labels as PyG gave them in 2020: nodes without one, of which only CiteSeer has any, in the last class."""
    y = graph.y.copy()
    y[graph.extra.get("unlabelled", [])] = entry.classes - 1
    return y


def verify_splits(splits: list[Split], entry: NodeSet, where: str) -> list[Split]:
    """The official splits, known to be those.

    Raises:
        DataError: If they are others.
    """
    check_counts(entry.name, {"official splits": len(splits)}, {"official splits": NUM_SPLITS}, where)
    for split in splits:
        check_counts(entry.name, {"nodes": len(split.train)}, {"nodes": entry.nodes}, where)
    check_parts(entry.name, {"official_splits": digest_splits(splits)}, entry.parts, where)
    return splits


def verify_molecules(data: Molecules, entry: MoleculeSet, where: str) -> Molecules:
    """The molecules with their digests.

    Raises:
        DataError: If their counts or an enforced part are not the dataset's.
    """
    counts = {
        "graphs": len(data),
        "tasks": data.y.shape[1],
        "nodes": len(data.atom_features),
        "bonds": len(data.bond_features),
        **{f"{part} graphs": len(data.split[part]) for part in PARTS},
    }
    expected = {what: getattr(entry, what) for what in ("graphs", "tasks", "nodes", "bonds")}
    expected |= {f"{part} graphs": size for part, size in zip(PARTS, entry.split, strict=True)}
    check_counts(entry.name, counts, expected, where)
    digests = digest_molecules(data)
    check_parts(entry.name, digests, entry.parts, where)
    return replace(data, digests=digests)
