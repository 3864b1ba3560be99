"""Benchmark datasets: as PyG has them, and as NumPy arrays."""

import os
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from propreg._choices import one_of
from propreg.data.benchmarks.cache import read_molecules, read_nodes
from propreg.data.benchmarks.catalog import NUM_SPLITS, MoleculeSet, NodeSet, find
from propreg.data.benchmarks.download import ensure_molecules, ensure_nodes
from propreg.data.benchmarks.molecules import MoleculeDataset, Molecules
from propreg.data.benchmarks.verify import authors_labels, verify_molecules, verify_nodes, verify_splits
from propreg.data.digests import digest_labels, digest_splits
from propreg.data.errors import DataError
from propreg.data.graph import MASKS, PARTS, Graph, SparseFeatures, Split
from propreg.data.scaling import SCALES, Scale, scaling_of
from propreg.data.splits import official_splits

Labels = Literal["pyg", "authors"]


def load_dataset(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    features: Literal["dense", "sparse"] = "dense",
    labels: Labels | None = None,
    normalize_features: bool = False,
    scale: Scale = "none",
    split: int | Literal["public", "official"] | None = None,
) -> Any:  # a Data or a MoleculeDataset, by the name; a union would have every caller ask which
    """Load a benchmark dataset, from disk or else from its publisher.

    ``root``, the folder in the environment variable ``PROPREG_DATA`` and the user's cache are searched; a dataset that
    is in none of them is downloaded to ``root`` or the cache. In any case its content is compared with known digests.

    Args:
        name: ``"cora"``, ``"citeseer"``, ``"pubmed"``, ``"cs"``, ``"physics"``, ``"computers"``, ``"photo"``;
            ``"digits"``, which needs no download; beyond the paper ``"actor"``, ``"chameleon-filtered"``,
            ``"squirrel-filtered"``, ``"minesweeper"``, ``"tolokers"``, ``"blogcatalog"``, ``"flickr"``, ``"acm"``,
            whose files cannot be downloaded; or ``"ogbg-moltox21"``, ``"ogbg-molhiv"``, ``"ogbg-molbbbp"``,
            ``"ogbg-molesol"``, ``"ogbg-molfreesolv"``.
        root: The folder to search first, and to download to.
        features: ``"dense"``, as PyG has them, or ``"sparse"``: a CSR tensor that was never dense (physics takes
            1.2 GB dense, 14 MB sparse).
        labels: CiteSeer has 15 nodes without features or label: of class 0 in today's PyG (``"pyg"``), of class 5 in
            the PyG of the paper's authors (``"authors"``). By default the official splits, which have 20 and 30 nodes
            per class only with the latter, imply the authors' labels, everything else PyG's. On the other datasets both
            are the same.
        normalize_features: Divide each row of ``x`` by max(its sum, 1), as the official code does.
        scale: What is done to ``x``, as for :func:`propreg.fit`: with ``"auto"`` a loop of your own trains on what
            ``fit`` and ``propreg run`` train on by default. They scale by themselves, inside the model that they
            return, and want ``x`` as published (``"none"``).
        split: The masks: ``"public"``; a number 0 … 9 for one of the official splits (the paper uses the first five of
            its own), ``"official"`` for all ten as masks [N, 10]; None for the public split if it exists (on digits:
            the first of its ten seeded splits).

    Returns:
        For a node dataset, a PyG ``Data`` with ``x``, ``edge_index``, ``y``, and ``train_mask``, ``val_mask`` and
        ``test_mask`` if it has a split. For molecules, a list-like of PyG ``Data`` with ``x``, ``edge_index``,
        ``edge_attr`` and ``y`` (float32, NaN for a missing label), OGB's scaffold split as ``.split``.

    Raises:
        DataError: If the dataset or split is unknown, or cannot be downloaded or used.
        ImportError: If PyG is not installed (:func:`propreg.data.benchmarks.load_node_graph` does without).

    Example:
        >>> import propreg
        >>> data = propreg.load_dataset("digits")
        >>> data.num_nodes, data.num_features, int(data.train_mask.sum())
        (1797, 64, 50)
    """
    from propreg.data.own.pyg import data_class, to_data

    entry = find(name)
    data_class()  # raises without PyG, before a download
    if isinstance(entry, MoleculeSet):
        if features != "dense" or labels is not None or normalize_features or split is not None or scale != "none":
            raise ValueError(
                f"{entry.name} has small dense integer features, its own labels and one split: "
                "features, labels, normalize_features, scale and split do not apply to it."
            )
        return MoleculeDataset(load_molecules(name, root), entry.task_type, entry.metric)
    one_of("features", features, ("dense", "sparse"))
    one_of("scale", scale, SCALES)
    if normalize_features and scale != "none":
        raise ValueError("normalize_features and scale both change x: pass one of them.")
    one = 0 if split == "official" else split
    graph = load_node_graph(name, root, labels=labels, normalize_features=normalize_features, split=one)
    data = to_data(replace(graph, x=scaling_of(graph.x, scale)(graph.x)), features=features)
    if split == "official":
        import torch

        splits = official_splits(entry.name, root)
        for part, mask in zip(PARTS, MASKS, strict=True):
            data[mask] = torch.from_numpy(np.stack([getattr(split, part) for split in splits], axis=1))
    return data


def load_molecules(name: str, root: str | os.PathLike[str] | None = None) -> Molecules:
    """Load a molecule dataset as NumPy arrays, without torch or PyG.

    Args:
        name: For example ``"ogbg-molhiv"``.
        root: The folder to search first, and to download to.

    Raises:
        DataError: If the dataset is unknown, or cannot be downloaded or used.
    """
    entry = find(name)
    if not isinstance(entry, MoleculeSet):
        raise DataError(f"{entry.name} is one graph, not molecules: load it with propreg.load_dataset({entry.name!r}).")
    path = ensure_molecules(entry, root)
    return verify_molecules(read_molecules(path, entry.name), entry, str(path))


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
        root: The folder to search first, and to download to.
        features: ``"sparse"`` (and never dense on the way) or ``"dense"``.
        labels: CiteSeer's nodes without a label are of class 0 with ``"pyg"`` and of class 5 with ``"authors"``. By
            default the official splits imply the authors' labels, everything else PyG's.
        normalize_features: Divide each row by max(its sum, 1), as the official code does.
        split: The masks: ``"public"``, the number 0 … 9 of an official random split, or None for the public
            split if it exists (on digits: the first of its seeded splits).

    Returns:
        The graph, edges in PyG's order. Its digests are of the published content, before any normalization.

    Raises:
        DataError: If the dataset or split is unknown, or cannot be downloaded or used.

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
        from propreg.data.benchmarks.digits import digits

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
        from propreg.data.benchmarks.digits import digits_splits

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
    one_of("features", features, ("dense", "sparse"))
    if labels is not None:
        one_of("labels", labels, ("pyg", "authors"), " or None")
    is_number = isinstance(split, int | np.integer) and not isinstance(split, bool)
    if not (split is None or split == "public" or (is_number and 0 <= split < NUM_SPLITS)):  # type: ignore[operator]
        raise ValueError(f"split must be 'public', a number from 0 to {NUM_SPLITS - 1}, or None, got {split!r}.")
