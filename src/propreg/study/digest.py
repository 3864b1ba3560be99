"""The content digest in a run's identity, known without reading the data."""

import hashlib
from typing import Literal

from propreg.data._known import KNOWN
from propreg.study.errors import StudyError

Labels = Literal["pyg", "authors"]
PARTS = ("edges", "features", "labels")


def labels_for(dataset: str, split_kind: str) -> Labels:
    """The labels that go with a kind of split: the official ones were drawn with the authors'.

    Example:
        >>> labels_for("citeseer", "official"), labels_for("citeseer", "public"), labels_for("cora", "official")
        ('authors', 'pyg', 'pyg')
    """
    known = KNOWN.get(dataset, {})
    differ = known.get("authors_labels", known.get("labels")) != known.get("labels")
    return "authors" if differ and split_kind == "official" else "pyg"


def dataset_digest(dataset: str, labels: Labels) -> str:
    """The digest of a benchmark dataset's edges, features and labels as published."""
    if dataset not in KNOWN:
        raise StudyError(f"Of {dataset} no content digest is known: it cannot be part of an experiment.")
    known = KNOWN[dataset]
    chosen = {part: known[part][0] for part in PARTS}
    if labels == "authors":
        chosen["labels"] = known["authors_labels"][0]
    return join_digests(chosen)


def join_digests(parts: dict[str, str]) -> str:
    """One digest of several; the engine joins a graph's in the same way."""
    text = ",".join(f"{part}={digest}" for part, digest in sorted(parts.items()))
    return hashlib.sha256(text.encode()).hexdigest()
