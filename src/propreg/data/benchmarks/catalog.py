"""The datasets: published counts, sources, and the digests of their content.

The digits, the paper's seven graphs and five molecule datasets, and eight graphs *beyond the paper*.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources

from propreg._choices import no_such
from propreg.data.errors import DataError

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz"
_OGB = "https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download"
_SPLITS = "https://github.com/yang-han/P-reg/raw/3cef86a89931f5193cb64fc5c67416a710f892dd/splits"

NUM_SPLITS = 10
"""Official splits of each node dataset; the paper uses the first five of its own."""

HETEROPHILOUS, AM_GCN = "heterophilous-graphs", "am-gcn"
KNOWN: dict[str, dict[str, str]] = tomllib.loads(
    resources.files("propreg.data.benchmarks").joinpath("digests.toml").read_text(encoding="utf-8")
)
"""By dataset and part, the digest of its content."""


@dataclass(frozen=True)
class RawFile:
    """A file of the publisher: its address, the most bytes it may have, and its SHA-256, compared before it is read.

    None where only copies in other formats were at hand: such a file is read within limits, and then its content is
    compared with the digests of the parts.
    """

    name: str
    url: str
    max_bytes: int = 64 << 20
    sha256: str | None = None


@dataclass(frozen=True)
class Part:
    """The accepted digests of a part of a dataset; other content is an error.

    ``published``: they are of the publisher's own files. The others are of copies whose counts, order and source were
    checked; the recorded results were computed on them.
    """

    accepted: tuple[str, ...]
    published: bool


@dataclass(frozen=True)
class NodeSet:
    """One graph whose nodes are classified. ``edges`` counts each undirected edge once.

    ``metric`` is what its publishers report, under the name that :func:`propreg.fit` takes.
    """

    name: str
    file: str
    source: str
    nodes: int
    edges: int
    features: int
    classes: int
    about: str
    license: str
    raw: tuple[RawFile, ...] = ()
    raw_splits: tuple[RawFile, ...] = ()
    public_split: bool = False
    parts: Mapping[str, Part] = field(default_factory=dict)
    metric: str = "accuracy"

    @property
    def beyond(self) -> bool:
        """Whether the paper does not have it. Its splits are in its file, and no address of that file is known."""
        return self.source in (HETEROPHILOUS, AM_GCN)


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
    license: str
    raw: tuple[RawFile, ...] = ()
    parts: Mapping[str, Part] = field(default_factory=dict)


def _parts(name: str, *copied: str) -> dict[str, Part]:
    return {part: Part((digest,), part not in copied) for part, digest in KNOWN.get(name, {}).items()}


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
        # Digests of other copies: the publisher's four files were not available.
        _parts(name, "edges", "features", "labels"),
    )  # fmt: skip


def _beyond(name: str, source: str, counts: tuple[int, int, int, int], about: str, metric: str = "accuracy") -> NodeSet:
    terms = "MIT" if source == HETEROPHILOUS else "none stated"
    # Digests of copies with one direction of each edge: the publishers' own files are not compared.
    parts = _parts(name, "edges", "features", "labels", "official_splits")
    return NodeSet(name, name.replace("-", "_"), source, *counts, about, terms, parts=parts, metric=metric)


def _molecules(
    name: str, counts: tuple[int, int, int, int], split: tuple[int, int, int], task: str, about: str, *copied: str
) -> MoleculeSet:
    raw = f"{name}.zip"
    return MoleculeSet(
        f"ogbg-mol{name}", f"ogbg_mol{name}", *counts, split, task,
        "rmse" if task == "regression" else "rocauc", about, "MIT",
        (RawFile(raw, f"{_OGB}/{raw}"),), _parts(f"ogbg-mol{name}", *copied),
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
        _beyond("actor", HETEROPHILOUS, (7600, 26659, 932, 5), "actors, linked when named on one page of Wikipedia"),
        _beyond("chameleon-filtered", HETEROPHILOUS, (890, 8854, 2325, 5),
                "Wikipedia's pages on chameleons by traffic, duplicates removed"),
        _beyond("squirrel-filtered", HETEROPHILOUS, (2223, 46998, 2089, 5),
                "Wikipedia's pages on squirrels by traffic, duplicates removed"),
        _beyond("minesweeper", HETEROPHILOUS, (10000, 39402, 7, 2),
                "a grid of cells, a fifth of them mines", "roc_auc"),
        _beyond("tolokers", HETEROPHILOUS, (11758, 519000, 10, 2),
                "crowd workers who shared a task, banned or not", "roc_auc"),
        _beyond("blogcatalog", AM_GCN, (5196, 171743, 8189, 6), "bloggers and who follows whom, by interest"),
        _beyond("flickr", AM_GCN, (7575, 239738, 12047, 9), "users of a photo site and their contacts, by interest"),
        _beyond("acm", AM_GCN, (3025, 13128, 1870, 3), "papers, linked when they share an author"),
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
        21
    """
    return [*NODE_SETS, *MOLECULE_SETS]


def fetchable() -> list[str]:
    """The datasets that can be downloaded, and the digits, which need not be.

    Example:
        >>> len(fetchable()), "cora" in fetchable(), "actor" in fetchable()
        (13, True, False)
    """
    return [name for name in names() if not getattr(find(name), "beyond", False)]


def find(name: str) -> NodeSet | MoleculeSet:
    """The catalog entry of a dataset; ``amazon-photo``, ``coauthor_cs``, ``molhiv`` and the like are recognized.

    Raises:
        DataError: If the name is unknown; the message lists the known names and the nearest match.

    Example:
        >>> find("Coauthor_CS").nodes
        18333
        >>> find("cors")
        Traceback (most recent call last):
        ...
        propreg.data.errors.DataError: There is no dataset 'cors'. Did you mean 'cora'? Known are: digits, cora, ...
    """
    if not isinstance(name, str):
        raise TypeError(f"A dataset is named by a string, got {name!r}.")
    plain = name.strip().lower().replace("_", "-").removeprefix("coauthor-").removeprefix("amazon-")
    plain = f"ogbg-{plain}" if plain.startswith("mol") else plain
    entry = NODE_SETS.get(plain) or MOLECULE_SETS.get(plain)
    if entry is None:
        raise DataError(no_such("dataset", name, names()))
    return entry
