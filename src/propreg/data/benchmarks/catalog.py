"""The datasets: published counts, sources, and the digests of their content.

The digits, the paper's seven graphs and five molecule datasets, and eight graphs *beyond the paper*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from propreg._choices import no_such
from propreg.data.errors import DataError

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz"
_OGB = "https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download"
_SPLITS = "https://github.com/yang-han/P-reg/raw/3cef86a89931f5193cb64fc5c67416a710f892dd/splits"

NUM_SPLITS = 10
"""Official splits of each node dataset; the paper uses the first five of its own."""

HETEROPHILOUS, AM_GCN = "heterophilous-graphs", "am-gcn"


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
    return {part: Part(accepted, part not in copied) for part, accepted in KNOWN.get(name, {}).items()}


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


# Content digests of the published data (propreg.data.digests computes them), taken from copies whose counts, order
# and source were checked. A part may list further good versions.
KNOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "digits": {
        "edges": ("5eac940eb0593847e95a8cfa3c72dbfca7a9dc1076f4ce2c660e57aa9566c76a",),
        "features": ("9a8762cbed745f6d2e6a4e04051367309097588ca1fbcb8b1759d433412617eb",),
        "labels": ("d46fef9e08207dfff91fbc98a3785470c3b96497ce8c1ef03410157826672ca9",),
        "official_splits": ("492c31dfc57fa5cad8f4cc4667ad9d5621db046e61a342b7ffe266d76979c7ac",),
    },
    "cora": {
        "edges": ("b6f518e79881dfec7b7af3d4435c9b42e98c1ba149705e091fac1d49433b3470",),
        "features": ("d97d5f8be7c4586627ef8f7b01963d2df8c65826a949213a58053569bc5e0ed8",),
        "labels": ("522db2da9f6522f6788edc1061d1fd0029614e899e75c76f3e668718aa4050a2",),
        "authors_labels": ("522db2da9f6522f6788edc1061d1fd0029614e899e75c76f3e668718aa4050a2",),
        "public_split": ("e58a640ef589c77e7bdc246ac4a731152a60450172ebd4a4be4cbbdc8ffc17f6",),
        "official_splits": ("b83316f6bf83ba1ad9807cb475f771ff54920c177eb7e93c59ba317d32d210d0",),
    },
    "citeseer": {
        "edges": ("a8dd06131a3a38276c1afab069caf757e615e67d69651942730335bbaf51324b",),
        "features": ("0b988f6b968ad90339fbbbbd1d16ef172a61dc1dcf5745f1aef07ed6343e3240",),
        "labels": ("f1655ef806cdf540e7a6b298fbc62ff423ffda97951877edf057bee1b543a716",),
        "authors_labels": ("06302421fc12d4fdda6d07c7096380d3b12afe5bc31f6bc6a4631878b4d54895",),
        "public_split": ("5e26ca00b7b75589d948b74fdec92ba40d2ed2f395771eda21bab5f276f41ecc",),
        "official_splits": ("7c45516df1ac5ce58925af77cf337dc1cecfb566f1a7afbb60860527efc0b6b7",),
    },
    "pubmed": {
        "edges": ("30a79d393e03aee2fcee161fbbaa84b8a3d6f91a291ec20863f5e38dd07bd697",),
        "features": ("54e839f4e96c46d27b3ac1ba5407596df6d7d7778292d7bac213b2fd4bdfb34f",),
        "labels": ("a99fc99f3914b850ff07e4ce97787281f77e5cb1e66db304b2b4e301a615a724",),
        "authors_labels": ("a99fc99f3914b850ff07e4ce97787281f77e5cb1e66db304b2b4e301a615a724",),
        "public_split": ("c2a6975998266f2998b62bc72cd1499886ea0af2ff597d5f746401485e28c43b",),
        "official_splits": ("12cd677a012d3cfa4fa5b5ac844a8e08468fef0aade0035087a55e7506343ac2",),
    },
    "cs": {
        "edges": ("870795f32891bbea1fa07823addcb07e3e029293e144904d6d81efae54712a56",),
        "features": ("609227a1ed1ccf24e505feb4510a08ea85dce853f79bdac363851c6905ebcae8",),
        "labels": ("b2e0f8296903f6fa797821f2bfaa3c71d99602909d0e865ef3f23b5c3a575bb2",),
        "official_splits": ("2a8671e12c3f20eff28c6e1eeb8bc4e9a238428b02e950c674746d4bbd7e3150",),
    },
    "physics": {
        "edges": ("f7608edfe6851de12e6026b0d1c9fb572ee6edc457a08c7e463c991a95546a6a",),
        "features": ("9e5cf14268b2394e37e6041df4e7a06d4bf7075a8b70697770debee375ee7d31",),
        "labels": ("ed4b6c4b67fb95ef4f2733413a295ea6b6f52abd94a68c86b3d5b58a460b8573",),
        "official_splits": ("d8b5bbb98eb09d4adf8a617b834fd5b1d6e2bc39497c4704fb1c037bffd174a6",),
    },
    "computers": {
        "edges": ("c3111919c5979b378978faae4cc6e9d374fcb47685de63db345d6163ce3b3410",),
        "features": ("8629be99f4e12c0458bc28f3f9e50ce91493660a70b19cb81768a5885d5543b4",),
        "labels": ("c2b62488054ee2b9d5fce8d2b053ee28aa3eecb37ae8e2562b1010f48419223a",),
        "official_splits": ("74ca80a6d15bbff1ebc51e8d9187e8378f1be1af563e43c62cf92008e675a137",),
    },
    "photo": {
        "edges": ("503643d88298b57a382f5b0bedcb6fb20f2886846fb5755c213b8ec352ba8970",),
        "features": ("882ed372f9c4103e09667e4d621ad7a8d5423d31865db15cefbd6dc0388b7917",),
        "labels": ("626eacbf9bcd7aa8956dab9f95e659d4d378de49b417eecb7486aa2544ec1639",),
        "official_splits": ("61f12fb920697969c976b2f2f9f3c5170277bdd020e868798eeb358cf01946f3",),
    },
    "actor": {
        "edges": ("6015e0972a506b4cbabd464e08b3aa44c9037f9bc1dab38d038ff066144cdd2a",),
        "features": ("08a2739f9644795b5f0ec438cc0005698836af0e5b8d590ef4f9eb6f28098027",),
        "labels": ("4610b4ce9b05258425c4a62d3ea08729811864408d17ca05e7e191e58a549bc7",),
        "official_splits": ("e12c2475af5c8d8be43d342db2f56f88390ff6fea71d35493bc80b1bb6f7f1cc",),
    },
    "chameleon-filtered": {
        "edges": ("d4b82d059315c2d34fce44d50cf833e87de5989f82208fc39f55f2d407195bc2",),
        "features": ("dd72e1691a4c4f101d402e826b3b6c45ac74b06025a451923c46a904fba34604",),
        "labels": ("6a056d1611bb4b4578e74be73aed5a474b2bb3abf51938f88dea322f1aa1ffe2",),
        "official_splits": ("96e075f410e1d3163571522b3ba204da91ee64dfa2faeab1ab856353ba14496f",),
    },
    "squirrel-filtered": {
        "edges": ("082bd60bfe829cc98a03ed1904885d1a2af8175ee9e7fb10c1b9e3a82b4151ab",),
        "features": ("db44f815d75beb58d27470cfd91fd39ae64cac594c4d4f6c6bb864d3d6064c56",),
        "labels": ("623693238cb1b6debdfeda9b942170416f4eb4579ec6756a027cab8a3662b819",),
        "official_splits": ("3bb789817a2f2feb1e181458c3b06ecac14db48463f87edc3b4d4a8b85c2612e",),
    },
    "minesweeper": {
        "edges": ("55a90747dccddef3524fc7e21e0c7ae33d2724e8ad7604003d604165881b4c05",),
        "features": ("9afd2d5c1eaf9ac045c16c47b0d6d1233210bb7f4ac34f95e6fe351e7d1dc1d8",),
        "labels": ("30407347f4300955544bde880dbc9d413e7f4a6737bcc8cc737200545bc88997",),
        "official_splits": ("12bf4f2b023d90f4ba52f9c329ab4cea31128381213d71c34e7d263719cfcccc",),
    },
    "tolokers": {
        "edges": ("b4a17674fbc4c02bcafac64aa7b210c7f44d7d1606d3fb6067385266baef5d1c",),
        "features": ("8bf6e2191aba157698fdedde8f9ce4874a78a384361ed3fe1411759dba37e5eb",),
        "labels": ("7dee3599dc66c78c60bded4e73669f6522aca820ea47484f5001571b662b1d06",),
        "official_splits": ("5f77d2354cea696f1a7354483167692ac716eaf78973f0190e9b9d7c116f38ff",),
    },
    "blogcatalog": {
        "edges": ("257c3b54c5716e80c1baee9433467039e5ad551e70e625a15c660996ebbb3c95",),
        "features": ("6e55b0d1aec8ed95c34b8bdbaea819d9a75f7e375082ee99b1bcb62dca3f5842",),
        "labels": ("fe2f7f06ec40940d2331ca38cc42f4333c67c654f858ec441ce703473969565f",),
        "official_splits": ("0e843ef58eabf90fe4f2215bbb0c7116d34f5d931e9e40205f0d75f6511c4286",),
    },
    "flickr": {
        "edges": ("060a6aba803148fc8b7b7d5f0e9f7599da87619d6d9490ce72516ed9b75bf517",),
        "features": ("957de1f668e8c03348c93344a9a99ac60972efd657c16c8cb50a7d6733b9e44e",),
        "labels": ("8cb166bbdf3a7b12fd590c1fad3766c3f38618c3ba6d00346a7cd5d5d2586f98",),
        "official_splits": ("5fbfd4c11bd0cb5a957a4d0dcc1bb06a292ef79c4f650fca1861442f25939590",),
    },
    "acm": {
        "edges": ("057d40dcca4b95a4c2dc7e4e84ecacec0537f9875bd1cea8baa32e617786694b",),
        "features": ("ea9728dac6e470cd5b87fba064b5f5168f808c6e2b08a6f8588644abed5bc11f",),
        "labels": ("d972289e1f94f2d265aa6ff32224f24cbfe28d7fcf6adb13fabd839d58e3c837",),
        "official_splits": ("2f7c70e1b51e3bf5ff12861188b8e1a592fa6b1ea5046b04b4c496102368171f",),
    },
    "ogbg-moltox21": {
        "smiles": ("a6a310d2dc56336122add225c40047924ba530e29f6a06aaa9b9968c9f24a99f",),
        "labels": ("2ee9ede9eec43fe7aba40f9622c83002fd76c2d00fb58ea7cfbb376867156c17",),
        "splits": ("0082f4b14c0ee8f6d6a62bd8c41432bad0d2ce40d66271cba299bbce34235922",),
        "bonds": ("7884be13931558f8a7934c07ac663347559057f82ed317ac9740d6c24a61d12b",),
        "atom_features": ("b5b271a61e0ccdf4abb225f88d927666f84b34b8d0159bac73925b1d8e588c5d",),
        "bond_features": ("a646d0f4b749716e622bed8c12a290ebb0d7a6e2b3a39fd5828cdabab925284d",),
    },
    "ogbg-molhiv": {
        "smiles": ("f636229f16df29ebeedfeb43d357e1e15978693091c2c050d42000439ae50f6b",),
        "labels": ("e10b026dcb50d3bc7fa21856e79b82bc9b36a13a8f4fd0e7edb25f5ab817ccaf",),
        "splits": ("efcb1e4714d54db1118a959c28a858719f4b0c7d4450b8c16e5baf78080c0bdc",),
        "bonds": ("f5d632670ac606681577954a1e7934990d58bf490d110ef162eea9ed38734b17",),
        "atom_features": ("15c236c8557ff813cbf7eedf17ed7b05a9d5829991589066b5e519c1925b5ba4",),
        "bond_features": ("289ed4771bdee568417cb18d57adc7bd192cdfb16a178561ea58fbd33da89fcc",),
    },
    "ogbg-molbbbp": {
        "smiles": ("f777bb77a94ca06381e88c51e68e1cf5ee9c502d689992b217594be8ff5ed004",),
        "labels": ("ff5898476caaa3136e8ab0728aea7b4b3da6096e3f1761ac1be08d2214628c23",),
        "splits": ("41724780b8ddfc6f15ce2e89cdfa0855d3383ac0c5be8ee0881ab1f9c9e4da29",),
        "bonds": ("88c7a205c40a69782cb5e4d6520013539b5578293151ca6d4323a417b253a556",),
        "atom_features": ("cd05a98b715f93cbb410824984e9fe1ee305f88caa86c37ea8af78974f815f2a",),
        "bond_features": ("26140dcf3cff820eca5e5898d3aaaf41c039d08745932e3656e92d2d8a09551d",),
    },
    "ogbg-molesol": {
        "smiles": ("842e2d149362ab987076b226a72ab3034314e34096edfc7e75c8e3a278e95161",),
        "labels": ("3957764d6de21d45ffda1a124585e25b6096e8dc25a9d34ee693c09a5aaab418",),
        "splits": ("ccd7a748709fdff829048004243487113493d46b6a8e603d9bd9ed024c281959",),
        "bonds": ("292f64c185025dfec7334f4eb94a98f8af022ad3ca5133681193f6a3b6efa106",),
        "atom_features": ("6d08d7dee5fc569f8d8e18c94ad5dcd499230b9ae4c6ee52b2716e39cbefd838",),
        "bond_features": ("e3302649b17500228ed45717e340d7caf2fda99ff18ad10157a006fed6ff3447",),
    },
    "ogbg-molfreesolv": {
        "smiles": ("bb80390eac72884a117434a0619230f2a2443a7d0e8ef9eff853db5ede3792a0",),
        "labels": ("12a0e5cbf396955fa01771d56e1b0f196c10386a3853a34a46579154c3e5e3d2",),
        "splits": ("86b81aa4dc851c40cd3e15f55159e61b6b6a2b0ffc9fb5a2340c1bc40abf388d",),
        "bonds": ("7b5b5198721a0274fa2f787f4bb3b9ad536c4598c59c99ae91f05a2dcdfc41ce",),
        "atom_features": ("7d68db322e8d88446d179f0405e8dd850b6c41fa8dbbffad105f54ef27df94ba",),
        "bond_features": ("15ba881fa43ff16e66b7cbc532626d5170a5fa8a4a3c12026feafd2ee3e4c42f",),
    },
}

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
