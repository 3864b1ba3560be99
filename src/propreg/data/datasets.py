"""The benchmark datasets as PyG has them."""

import os
import warnings
from typing import Any, Literal

from propreg.data.catalog import MoleculeSet, NodeSet, find
from propreg.data.errors import DataError
from propreg.data.molecules import Molecules
from propreg.data.nodes import Labels, load_node_graph

__all__ = ["load_dataset", "load_molecules", "load_node_graph"]


def load_dataset(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    features: Literal["dense", "sparse"] = "dense",
    labels: Labels | None = None,
    normalize_features: bool = False,
    split: int | Literal["public", "official"] | None = None,
) -> Any:  # a Data or a MoleculeDataset, by the name; a union would have every caller ask which
    """Load a benchmark dataset, from disk where it is there and else from its publisher.

    It is looked for in ``root``, in the folder that the environment variable ``PROPREG_DATA`` names and in the user's
    cache, then downloaded to ``root`` or the cache. Its content is compared with known digests in any case.

    Args:
        name: ``"cora"``, ``"citeseer"``, ``"pubmed"``, ``"cs"``, ``"physics"``, ``"computers"``, ``"photo"``;
            ``"digits"``, which needs no download; or ``"ogbg-moltox21"``, ``"ogbg-molhiv"``, ``"ogbg-molbbbp"``,
            ``"ogbg-molesol"``, ``"ogbg-molfreesolv"``.
        root: A folder to look at first, and to download to.
        features: ``"dense"``, as PyG has them, or ``"sparse"``: a CSR tensor that was never dense (physics takes
            1.2 GB dense and 14 MB sparse).
        labels: CiteSeer has 15 nodes without features or label. Today's PyG calls them class 0 (``"pyg"``), that of
            the paper's authors class 5 (``"authors"``). By default the official splits, which have 20 and 30 nodes
            per class only with the latter, imply the authors' labels, and everything else PyG's. On the other
            datasets both are the same.
        normalize_features: Divide each row of ``x`` by max(its sum, 1), as the official code does.
        split: The masks: ``"public"``; a number 0 … 9 for one of the official random splits (the paper uses the first
            five), ``"official"`` for all ten as masks [N, 10]; None for the public split where there is one (on
            digits: the first of its ten seeded splits).

    Returns:
        For a node dataset, a PyG ``Data`` with ``x``, ``edge_index``, ``y``, and ``train_mask``, ``val_mask`` and
        ``test_mask`` where there is a split. For molecules, a list-like of PyG ``Data`` with ``x``, ``edge_index``,
        ``edge_attr`` and ``y`` (float32, NaN where a label is missing), OGB's scaffold split as ``.split``.

    Raises:
        DataError: If there is no such dataset or split, or the data cannot be had or used.
        ImportError: If PyG is not installed (:func:`propreg.data.nodes.load_node_graph` does without).

    Example:
        >>> import propreg
        >>> data = propreg.load_dataset("digits")
        >>> data.num_nodes, data.num_features, int(data.train_mask.sum())
        (1797, 64, 50)
    """
    entry = find(name)
    _need_pyg()
    if isinstance(entry, MoleculeSet):
        if features != "dense" or labels is not None or normalize_features or split is not None:
            raise ValueError(
                f"{entry.name} has small dense integer features, its own labels and one split: "
                "features, labels, normalize_features and split do not apply to it."
            )
        from propreg.data.molecule_graphs import MoleculeDataset

        return MoleculeDataset(load_molecules(name, root), entry.task_type, entry.metric)
    from propreg.data.pyg import to_data

    if split != "official":
        graph = load_node_graph(
            name, root, features="sparse", labels=labels, normalize_features=normalize_features, split=split
        )
        return to_data(graph, features=_checked(features))
    graph = load_node_graph(
        name, root, features="sparse", labels=labels, normalize_features=normalize_features, split=0
    )
    data = to_data(graph, features=_checked(features))
    _all_masks(data, entry, root)
    return data


def load_molecules(name: str, root: str | os.PathLike[str] | None = None) -> Molecules:
    """Load a molecule dataset as NumPy arrays, without torch or PyG.

    Args:
        name: For example ``"ogbg-molhiv"``.
        root: A folder to look at first, and to download to.

    Raises:
        DataError: If there is no such dataset, or the data cannot be had or used.
    """
    entry = find(name)
    if not isinstance(entry, MoleculeSet):
        raise DataError(f"{entry.name} is one graph, not molecules: load it with propreg.load_dataset({entry.name!r}).")
    from propreg.data.fetch import ensure_molecules
    from propreg.data.stored_molecules import read_molecules
    from propreg.data.verified import verify_molecules

    path = ensure_molecules(entry, root)
    return verify_molecules(read_molecules(path, entry.name), entry, str(path))


def _all_masks(data: Any, entry: NodeSet, root: str | os.PathLike[str] | None) -> None:
    import numpy as np
    import torch

    from propreg.data.splits import official_splits

    splits = official_splits(entry.name, root)
    for which in ("train", "val", "test"):
        data[f"{which}_mask"] = torch.from_numpy(np.stack([getattr(split, which) for split in splits], axis=1))


def _checked(features: Literal["dense", "sparse"]) -> Literal["dense", "sparse"]:
    if features not in ("dense", "sparse"):
        raise ValueError(f"features must be 'dense' or 'sparse', but {features!r} came.")
    return features


def _need_pyg() -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # PyG still uses torch.jit when it is imported
            import torch_geometric.data  # noqa: F401
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "torch_geometric":
            raise
        raise ModuleNotFoundError(
            "load_dataset returns PyG's Data and needs torch_geometric: run pip install torch_geometric, "
            "or use propreg.data.nodes.load_node_graph, which does without.",
            name=missing.name,
        ) from missing
