"""Descriptions of datasets: from the catalog, and of the checked files on disk."""

import os
from dataclasses import asdict
from typing import Any

import numpy as np

from propreg.data.benchmarks.catalog import MoleculeSet, NodeSet, find
from propreg.data.benchmarks.load import load_molecules, read_entry
from propreg.data.benchmarks.locate import dataset_file, splits_file
from propreg.data.describe import components, homophily, isolated
from propreg.data.digests import digest_splits
from propreg.data.splits import official_splits

Root = str | os.PathLike[str] | None


def catalog_facts(name: str, root: Root = None) -> dict[str, Any]:
    """The catalog's entry of a dataset, and its place on disk (None if it is not there).

    Example:
        >>> facts = catalog_facts("digits")
        >>> facts["nodes"], facts["on_disk"]
        (1797, 'scikit-learn')
    """
    entry = find(name)
    facts = asdict(entry)
    facts["kind"] = "nodes" if isinstance(entry, NodeSet) else "molecules"
    facts["raw_sha256"] = {}
    for key in ("raw", "raw_splits"):
        files = facts.get(key, ())
        facts[key] = [file["url"] for file in files]
        facts["raw_sha256"] |= {file["url"]: file["sha256"] for file in files}
    path = dataset_file(entry, root)
    facts["on_disk"] = "scikit-learn" if not entry.file else None if path is None else str(path)
    return facts


def verified_facts(name: str, root: Root = None) -> dict[str, Any] | None:
    """Read, check and describe a dataset; None if it is not on disk.

    Example:
        >>> facts = verified_facts("digits")
        >>> facts["edges"], facts["isolated"], facts["components"]
        (6309, 0, 2)
    """
    entry = find(name)
    path = dataset_file(entry, root)
    if entry.file and path is None:
        return None
    facts = _molecule_facts(entry, root) if isinstance(entry, MoleculeSet) else _node_facts(entry, root)
    facts["status"] = dict.fromkeys(facts["digests"], "enforced")  # other content was refused when it was read
    return {"name": entry.name, "file": None if path is None else str(path), **facts}


def _node_facts(entry: NodeSet, root: Root) -> dict[str, Any]:
    graph = read_entry(entry, root)
    digests = dict(graph.digests)
    if not entry.file or splits_file(entry, root) is not None:
        digests["official_splits"] = digest_splits(official_splits(entry.name, root))
    return {
        "kind": "nodes",
        "nodes": graph.num_nodes,
        "edges": graph.edge_index.shape[1] // 2,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "homophily": round(homophily(graph.edge_index, graph.y), 4),
        "isolated": isolated(graph.edge_index, graph.num_nodes),
        "components": components(graph.edge_index, graph.num_nodes),
        "digests": digests,
    }


def _molecule_facts(entry: MoleculeSet, root: Root) -> dict[str, Any]:
    data = load_molecules(entry.name, root)
    edges = data.all_edges()
    return {
        "kind": "molecules",
        "graphs": len(data),
        "nodes": len(data.atom_features),
        "edges": edges.shape[1] // 2,
        "features": data.atom_features.shape[1],
        "tasks": data.y.shape[1],
        "missing_labels": int(np.isnan(data.y).sum()),
        "isolated": isolated(edges, len(data.atom_features)),
        "components": components(edges, len(data.atom_features)),
        "digests": data.digests,
    }
