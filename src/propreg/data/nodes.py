"""Node datasets as NumPy arrays: what the engine and the command line load."""

import os
from dataclasses import replace
from typing import Literal

import numpy as np

from propreg.data.catalog import NUM_SPLITS, MoleculeSet, NodeSet, find
from propreg.data.digest import digest_labels, digest_splits
from propreg.data.errors import DataError
from propreg.data.fetch import ensure_nodes
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.splits import official_splits
from propreg.data.stored import read_nodes
from propreg.data.verified import authors_labels, verify_nodes, verify_splits

Labels = Literal["pyg", "authors"]


def load_node_graph(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    features: Literal["sparse", "dense"] = "sparse",
    labels: Labels | None = None,
    normalize_features: bool = False,
    split: int | Literal["public"] | None = None,
) -> Graph:
    """Load a node dataset without torch or PyG; the options are those of :func:`propreg.load_dataset`.

    Args:
        name: For example ``"cora"``.
        root: A folder to look at first, and to download to.
        features: ``"sparse"`` (never made dense on the way) or ``"dense"``.
        labels: CiteSeer's nodes without a label are of class 0 with ``"pyg"`` and of class 5 with ``"authors"``. By
            default the official splits imply the authors' labels, everything else PyG's.
        normalize_features: Divide each row by max(its sum, 1), as the official code does.
        split: The masks to take: ``"public"``, the number 0 … 9 of an official random split, or None for the public
            split where there is one (on digits: the first of its seeded splits).

    Returns:
        The graph, edges in PyG's order. Its digests are those of the published content, before any normalisation.

    Raises:
        DataError: If there is no such dataset or split, or the data cannot be had or used.

    Example:
        >>> graph = load_node_graph("digits", split=3)
        >>> graph.num_nodes, graph.num_classes, int(graph.split.train.sum())
        (1797, 10, 50)
    """
    entry = find(name)
    if isinstance(entry, MoleculeSet):
        raise DataError(f"{entry.name} holds many graphs, not one: load it with propreg.load_dataset({entry.name!r}).")
    _check_options(features, labels, split)
    split = int(split) if isinstance(split, np.integer) else split
    graph = read_entry(entry, root)
    if labels == "authors" or (labels is None and isinstance(split, int)):
        y = authors_labels(graph, entry)
        graph = replace(graph, y=y, digests=graph.digests | {"labels": digest_labels(y)})
    chosen, part = _choose(graph, entry, split, root)
    digests = {key: graph.digests[key] for key in ("edges", "features", "labels")}
    digests |= {} if chosen is None else {part: digest_splits([chosen])}
    x = graph.x.row_normalized() if normalize_features and isinstance(graph.x, SparseFeatures) else graph.x
    if features == "dense" and isinstance(x, SparseFeatures):
        x = x.to_dense()
    # PyG sorts the Planetoid edges by target: on a symmetric list that is the other row first.
    edges = graph.edge_index[::-1].copy() if entry.source == "planetoid" else graph.edge_index
    return replace(graph, edge_index=edges, x=x, split=chosen, digests=digests)


def read_entry(entry: NodeSet, root: str | os.PathLike[str] | None = None) -> Graph:
    """The dataset as published, with its digests, edges sorted by (source, target)."""
    if not entry.file:
        from propreg.data.digits import digits

        return verify_nodes(digits(), entry, "scikit-learn's digits")
    path = ensure_nodes(entry, root)
    graph = verify_nodes(read_nodes(path, entry.name), entry, str(path))
    if entry.public_split and graph.split is None:
        raise DataError(f"{path}: has no public split: remove it and run: propreg data fetch {entry.name}.")
    return graph


def _choose(
    graph: Graph, entry: NodeSet, split: object, root: str | os.PathLike[str] | None
) -> tuple[Split | None, str]:
    if not entry.file and split != "public":
        from propreg.data.digits import digits_splits

        number = split if isinstance(split, int) else 0
        return verify_splits(digits_splits(graph.y), entry, "scikit-learn's digits")[number], f"split_{number}"
    if isinstance(split, int):
        return official_splits(entry.name, root)[split], f"split_{split}"
    if split == "public" and graph.split is None:
        raise DataError(
            f"{entry.name} has no public split: pass split=0 … {NUM_SPLITS - 1} for an official random one, "
            "or draw one with propreg.random_split."
        )
    return graph.split, "public_split"


def _check_options(features: object, labels: object, split: object) -> None:
    if features not in ("sparse", "dense"):
        raise ValueError(f"features must be 'dense' or 'sparse', but {features!r} came.")
    if labels not in (None, "pyg", "authors"):
        raise ValueError(f"labels must be 'pyg', 'authors' or None, but {labels!r} came.")
    is_number = isinstance(split, int | np.integer) and not isinstance(split, bool)
    if not (split is None or split == "public" or (is_number and 0 <= split < NUM_SPLITS)):  # type: ignore[operator]
        raise ValueError(f"split must be 'public', a number from 0 to {NUM_SPLITS - 1}, or None, but {split!r} came.")
