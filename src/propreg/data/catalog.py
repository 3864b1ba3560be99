"""The thirteen datasets: their published counts, where they come from, and what their content must be."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from propreg.data._known import KNOWN
from propreg.data.errors import DataError

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz"
_OGB = "https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download"
_SPLITS = "https://github.com/yang-han/P-reg/raw/3cef86a89931f5193cb64fc5c67416a710f892dd/splits"

NUM_SPLITS = 10
"""Official random splits of each node dataset; the paper uses the first five."""


@dataclass(frozen=True)
class RawFile:
    """A file of the publisher: the most bytes it may have, and its SHA-256 where that is known."""

    name: str
    url: str
    max_bytes: int = 64 << 20
    sha256: str | None = None


@dataclass(frozen=True)
class Part:
    """What a part of a dataset may hold.

    ``enforced`` parts are proven equal to the publisher's: any other content is refused. Of the others we know good
    copies, but not the publisher's own: other content is taken with one warning.
    """

    accepted: tuple[str, ...]
    enforced: bool


@dataclass(frozen=True)
class NodeSet:
    """One graph whose nodes are classified. ``edges`` counts each undirected edge once."""

    name: str
    file: str
    source: str
    nodes: int
    edges: int
    features: int
    classes: int
    about: str
    licence: str
    raw: tuple[RawFile, ...] = ()
    raw_splits: tuple[RawFile, ...] = ()
    public_split: bool = False
    parts: Mapping[str, Part] = field(default_factory=dict)


@dataclass(frozen=True)
class MoleculeSet:
    """Many small graphs, each with one or more labels. ``bonds`` counts each bond once."""

    name: str
    file: str
    graphs: int
    tasks: int
    nodes: int
    bonds: int
    split: tuple[int, int, int]
    task_type: str
    metric: str
    about: str
    licence: str
    raw: tuple[RawFile, ...] = ()
    parts: Mapping[str, Part] = field(default_factory=dict)


def _parts(name: str, *unproven: str) -> dict[str, Part]:
    return {part: Part(accepted, part not in unproven) for part, accepted in KNOWN.get(name, {}).items()}


def _official(name: str) -> tuple[RawFile, ...]:
    names = [f"{name}_{i}.mask" for i in range(NUM_SPLITS)]
    return tuple(RawFile(file, f"{_SPLITS}/{file}", 1 << 20) for file in names)


def _planetoid(name: str, counts: tuple[int, int, int, int], about: str) -> NodeSet:
    parts = ("tx", "allx", "y", "ty", "ally", "graph", "test.index")  # x repeats the first rows of allx
    raw = tuple(RawFile(f"ind.{name}.{part}", f"{_PLANETOID}/ind.{name}.{part}") for part in parts)
    return NodeSet(
        name, name, "planetoid", *counts, about, "MIT",
        raw, _official(name), True, _parts(name),
    )  # fmt: skip


def _benchmark(name: str, file: str, raw: str, counts: tuple[int, int, int, int], about: str) -> NodeSet:
    return NodeSet(
        name, file, "gnn-benchmark", *counts, about, "MIT",
        (RawFile(raw, f"{_BENCHMARK}/{raw}"),), _official(name), False,
        # The publisher's own four files were not at hand when the digests were taken.
        _parts(name, "edges", "features", "labels"),
    )  # fmt: skip


def _molecules(
    name: str, counts: tuple[int, int, int, int], split: tuple[int, int, int], task: str, about: str, *unproven: str
) -> MoleculeSet:
    raw = f"{name}.zip"
    return MoleculeSet(
        f"ogbg-mol{name}", f"ogbg_mol{name}", *counts, split, task,
        "rmse" if task == "regression" else "rocauc", about, "MIT",
        (RawFile(raw, f"{_OGB}/{raw}"),), _parts(f"ogbg-mol{name}", *unproven),
    )  # fmt: skip


_BINARY = "binary classification"

# fmt: off
NODE_SETS: dict[str, NodeSet] = {
    entry.name: entry
    for entry in (
        NodeSet(
            "digits", "", "scikit-learn", 1797, 6309, 64, 10,
            "handwritten digits, each linked to its 5 nearest", "BSD-3-Clause", parts=_parts("digits"),
        ),
        _planetoid("cora", (2708, 5278, 1433, 7), "papers on machine learning and their citations"),
        _planetoid("citeseer", (3327, 4552, 3703, 6), "papers on computer science and their citations"),
        _planetoid("pubmed", (19717, 44324, 500, 3), "papers on diabetes and their citations"),
        _benchmark("cs", "coauthor_cs", "ms_academic_cs.npz", (18333, 81894, 6805, 15),
                   "authors in computer science, linked by joint papers"),
        _benchmark("physics", "coauthor_physics", "ms_academic_phy.npz", (34493, 247962, 8415, 5),
                   "authors in physics, linked by joint papers"),
        _benchmark("computers", "amazon_computers", "amazon_electronics_computers.npz", (13752, 245861, 767, 10),
                   "computer goods, linked when often bought together"),
        _benchmark("photo", "amazon_photo", "amazon_electronics_photo.npz", (7650, 119081, 745, 8),
                   "photo goods, linked when often bought together"),
    )
}

MOLECULE_SETS: dict[str, MoleculeSet] = {
    entry.name: entry
    for entry in (
        _molecules("tox21", (7831, 12, 145459, 151095), (6264, 783, 784), _BINARY,
                   "toxicity in twelve assays", "bonds", "atom_features", "bond_features"),
        _molecules("hiv", (41127, 1, 1049163, 1129688), (32901, 4113, 4113), _BINARY,
                   "inhibition of HIV replication", "atom_features", "bond_features"),
        _molecules("bbbp", (2039, 1, 49068, 52921), (1631, 204, 204), _BINARY, "blood-brain barrier penetration"),
        _molecules("esol", (1128, 1, 14991, 15428), (902, 113, 113), "regression", "solubility in water"),
        _molecules("freesolv", (642, 1, 5600, 5385), (513, 64, 65), "regression", "free energy of hydration"),
    )
}
# fmt: on


def names() -> list[str]:
    """All dataset names.

    Example:
        >>> len(names())
        13
    """
    return [*NODE_SETS, *MOLECULE_SETS]


def find(name: str) -> NodeSet | MoleculeSet:
    """The catalogue entry of a dataset; ``amazon-photo``, ``coauthor_cs``, ``molhiv`` and the like are understood.

    Raises:
        DataError: If there is no such dataset; the message lists the known ones and the nearest.

    Example:
        >>> find("Coauthor_CS").nodes
        18333
        >>> find("cors")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: There is no dataset 'cors'. Did you mean 'cora'? Known are: digits, cora, ...
    """
    if not isinstance(name, str):
        raise TypeError(f"A dataset is named by a string, but {name!r} came.")
    plain = name.strip().lower().replace("_", "-").removeprefix("coauthor-").removeprefix("amazon-")
    plain = f"ogbg-{plain}" if plain.startswith("mol") else plain
    entry = NODE_SETS.get(plain) or MOLECULE_SETS.get(plain)
    if entry is None:
        near = difflib.get_close_matches(plain, names(), n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise DataError(f"There is no dataset {name!r}.{hint} Known are: {', '.join(names())}.")
    return entry
