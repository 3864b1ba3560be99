"""Datasets that were read, compared with the catalog's counts and digests."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.catalog import NUM_SPLITS, MoleculeSet, NodeSet, Part
from propreg.data.benchmarks.molecules import PARTS, Molecules, digest_molecules
from propreg.data.digests import digest_edges, digest_features, digest_labels, digest_splits
from propreg.data.errors import DataError
from propreg.data.graph import Graph, Split


def verify_nodes(graph: Graph, entry: NodeSet, where: str) -> Graph:
    """The graph with its digests."""
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
    elif len(graph.extra.get("unlabeled", ())):
        raise DataError(f"{where}: {entry.name} has no nodes without a label, got some: get the file again.")
    if graph.split is not None:
        digests["public_split"] = digest_splits([graph.split])
    check_parts(entry.name, digests, entry.parts, where)
    return replace(graph, digests=digests)


def authors_labels(graph: Graph, entry: NodeSet) -> NDArray[np.int64]:
    """The labels as PyG had them in 2020: CiteSeer's nodes without a label in the last class."""
    y = graph.y.copy()
    y[graph.extra.get("unlabeled", [])] = entry.classes - 1
    return y


def verify_splits(splits: list[Split], entry: NodeSet, where: str) -> list[Split]:
    """The official splits, unchanged."""
    check_counts(entry.name, {"official splits": len(splits)}, {"official splits": NUM_SPLITS}, where)
    for split in splits:
        check_counts(entry.name, {"nodes": len(split.train)}, {"nodes": entry.nodes}, where)
    check_parts(entry.name, {"official_splits": digest_splits(splits)}, entry.parts, where)
    return splits


def verify_molecules(data: Molecules, entry: MoleculeSet, where: str) -> Molecules:
    """The molecules with their digests."""
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


def check_parts(name: str, digests: Mapping[str, str], parts: Mapping[str, Part], where: str) -> None:
    """Raise for other content in any part, and for a part that the dataset does not have.

    Args:
        name: The dataset.
        digests: Part → digest of its content.
        parts: Part → accepted digests.
        where: The file, for the message.

    Example:
        >>> check_parts("cora", {"labels": "ab"}, {"labels": Part(("cd",), True)}, "cora.npz")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: cora.npz: the labels are not those of cora (SHA-256 ab, expected cd):
        the file is damaged or another version; remove it and run: propreg data fetch cora.
    """
    for part, digest in digests.items():
        title = part.replace("_", " ")
        if part not in parts:
            raise DataError(
                f"{where}: has a {title}, which {name} does not: remove it, run: propreg data fetch {name}."
            )
        if digest not in parts[part].accepted:
            known = " or ".join(accepted[:16] for accepted in parts[part].accepted)
            of = "" if parts[part].published else " of the copy that the recorded results were computed on"
            raise DataError(
                f"{where}: the {title} are not those of {name} (SHA-256 {digest[:16]}, expected {known}{of}): the file "
                f"is damaged or another version; remove it and run: propreg data fetch {name}."
            )


def check_counts(name: str, found: Mapping[str, int], expected: Mapping[str, int], where: str) -> None:
    """Raise unless the data have the published counts.

    Example:
        >>> check_counts("cora", {"nodes": 2707}, {"nodes": 2708}, "cora.npz")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: cora.npz: cora has 2708 nodes, got 2707: the file is damaged or ...
    """
    for what, number in found.items():
        if number != expected[what]:
            raise DataError(
                f"{where}: {name} has {expected[what]} {what}, got {number}: the file is damaged or another "
                f"version; remove it and run: propreg data fetch {name}."
            )
