"""The real benchmark files: published counts, PyG's own readers, the official splits. Skipped where they are not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_npz, read_planetoid_data

import propreg
from data.counts import Facts, check_counts
from data.raw_files import ogb_tables, write_benchmark, write_mask, write_ogb, write_planetoid
from propreg.data.benchmarks.catalog import NODE_SETS
from propreg.data.benchmarks.load import load_molecules, load_node_graph, read_entry
from propreg.data.benchmarks.masks import read_mask
from propreg.data.benchmarks.molecules import digest_molecules
from propreg.data.benchmarks.ogb import read_ogb
from propreg.data.benchmarks.planetoid import read_planetoid
from propreg.data.benchmarks.verify import verify_nodes
from propreg.data.digests import digest_splits
from propreg.data.graph import Graph
from propreg.data.splits import grow_train, official_splits

pytestmark = pytest.mark.usefixtures("benchmarks")

PUBLISHED = {
    "cora": Facts(2708, 5278, 1433, 7, 0, 49216, 0.810, "351 217 418 818 426 298 180"),
    "citeseer": Facts(3327, 4552, 3703, 6, 48, 105165, 0.736, "264 590 668 701 596 508"),
    "pubmed": Facts(19717, 44324, 500, 3, 0, 988031, 0.802, "4103 7739 7875"),
    "cs": Facts(18333, 81894, 6805, 15, 0, 1092079, 0.808,
           "708 462 2050 429 1394 2193 371 924 775 118 1444 2033 420 4136 876"),
    "physics": Facts(34493, 247962, 8415, 5, 0, 1137311, 0.931, "5750 5045 17426 2753 3519"),
    "computers": Facts(13752, 245861, 767, 10, 281, 3675081, 0.777, "436 2142 1414 542 5158 308 487 818 2156 291"),
    "photo": Facts(7650, 119081, 745, 8, 115, 1979909, 0.827, "369 1686 703 915 882 823 1941 331"),
}  # fmt: skip
# Graphs, tasks, split, atoms, bonds, positives per split (or mean and deviation of the label), missing labels.
MOLECULES = {
    "ogbg-moltox21": (7831, 12, (6264, 783, 784), 145459, 151095, (4500, 687, 675), 16026),
    "ogbg-molhiv": (41127, 1, (32901, 4113, 4113), 1049163, 1129688, (1232, 81, 130), 0),
    "ogbg-molbbbp": (2039, 1, (1631, 204, 204), 49068, 52921, (1369, 83, 108), 0),
    "ogbg-molesol": (1128, 1, (902, 113, 113), 14991, 15428, (-3.050, 2.096), 0),
    "ogbg-molfreesolv": (642, 1, (513, 64, 65), 5600, 5385, (-3.803, 3.845), 0),
}
PLANETOID = ("cora", "citeseer", "pubmed")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name: str) -> None:
    check_counts(load_node_graph(name), PUBLISHED[name], valued=name == "pubmed")


@pytest.mark.parametrize("name", MOLECULES)
def test_published_molecule_counts(name: str) -> None:
    data = load_molecules(name)
    graphs, tasks, split, atoms, bonds, labels, missing = MOLECULES[name]
    assert (len(data), data.y.shape[1], len(data.atom_features), len(data.bond_features)) == (
        graphs,
        tasks,
        atoms,
        bonds,
    )
    assert tuple(len(data.split[part]) for part in ("train", "valid", "test")) == split
    assert int(np.isnan(data.y).sum()) == missing
    if len(labels) == 3:
        assert tuple(int(np.nansum(data.y[data.split[part]])) for part in ("train", "valid", "test")) == labels
    else:
        assert (round(float(data.y.mean()), 3), round(float(data.y.std()), 3)) == labels


@pytest.mark.filterwarnings("ignore:.*scipy.sparse.csr:DeprecationWarning")
@pytest.mark.parametrize("name", PLANETOID)
def test_planetoid_equals_pyg_from_raw_files(name: str, tmp_path: Path) -> None:
    """Raw files made anew from the stored arrays: PyG's reader, ours, and what the package loads all agree."""
    entry = NODE_SETS[name]
    write_planetoid(tmp_path, read_entry(entry), dtype="<f8" if name == "pubmed" else "<f4")
    theirs, data = read_planetoid_data(str(tmp_path), name), propreg.load_dataset(name)
    for key in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(data[key], theirs[key]), key
    verify_nodes(read_planetoid(tmp_path, name), entry, "raw")


@pytest.mark.parametrize("name", ["photo", "computers", pytest.param("cs", marks=pytest.mark.slow)])
def test_benchmark_equals_pyg_from_raw_files(name: str, tmp_path: Path) -> None:
    """Physics is left out: PyG would make it dense twice, 2.4 GB; its reader is the same."""
    write_benchmark(tmp_path / "raw.npz", read_entry(NODE_SETS[name]))
    theirs, data = read_npz(str(tmp_path / "raw.npz"), to_undirected=True), propreg.load_dataset(name)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(data[key], theirs[key]), key
    assert "train_mask" not in data


@pytest.mark.parametrize("name", ["ogbg-molesol", "ogbg-molfreesolv", "ogbg-moltox21"])
def test_ogb_archives_give_the_same_molecules(name: str, tmp_path: Path) -> None:
    data = load_molecules(name)
    write_ogb(tmp_path / "raw.zip", ogb_tables(data))
    assert digest_molecules(read_ogb(tmp_path / "raw.zip", name)) == data.digests


@pytest.mark.parametrize("name", PUBLISHED)
def test_official_splits_have_20_and_30_per_class(name: str, tmp_path: Path) -> None:
    classes = PUBLISHED[name].classes
    splits = official_splits(name)
    assert len({split.train.tobytes() for split in splits}) == 10
    for i, split in enumerate(splits):
        y = load_node_graph(name, split=i).y if name == "citeseer" else load_node_graph(name).y
        assert (split.train ^ split.val ^ split.test).all()
        assert np.bincount(y[split.train], minlength=classes).tolist() == [20] * classes
        assert np.bincount(y[split.val], minlength=classes).tolist() == [30] * classes
        if i and name != "citeseer":
            break  # the labels are the same; the digest covers the other splits
    for i, split in enumerate(splits):
        write_mask(tmp_path / f"{i}.mask", split)
    assert digest_splits([read_mask(tmp_path / f"{i}.mask") for i in range(10)]) == digest_splits(splits)


def test_citeseer_labels_of_the_fifteen() -> None:
    entry = NODE_SETS["citeseer"]
    nodes = read_entry(entry).extra["unlabeled"]
    assert len(nodes) == 15

    def labels(**options: object) -> set[int]:
        return set(propreg.load_dataset("citeseer", features="sparse", **options).y[nodes].tolist())  # type: ignore[arg-type]

    assert labels() == labels(split="public") == labels(labels="pyg") == labels(split=3, labels="pyg") == {0}
    assert labels(split=3) == labels(split="official") == labels(labels="authors") == {5}
    plain, authors = load_node_graph("citeseer"), load_node_graph("citeseer", labels="authors")
    assert plain.digests["labels"] != authors.digests["labels"]
    assert plain.digests["features"] == authors.digests["features"]


@pytest.mark.parametrize("name", PLANETOID)
def test_public_splits(name: str) -> None:
    graph = load_node_graph(name)
    assert graph.split is not None
    classes = PUBLISHED[name].classes
    assert np.bincount(graph.y[graph.split.train]).tolist() == [20] * classes
    assert (int(graph.split.val.sum()), int(graph.split.test.sum())) == (500, 1000)


def test_more_training_nodes_on_cora() -> None:
    """The paper's Fig. 2a: 1,208 nodes are neither for validation nor for testing."""
    graph = load_node_graph("cora")
    assert graph.split is not None
    assert grow_train(graph.split, graph.y, total=1208).train.sum() == 1208
    with pytest.raises(propreg.DataError, match="only 1208"):
        grow_train(graph.split, graph.y, total=1209)
    assert not (graph.split.train & ~grow_train(graph.split, graph.y, total=140).train).any()


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "computers", "photo"])
def test_sparse_features_are_the_dense_ones(name: str) -> None:
    sparse = propreg.load_dataset(name, features="sparse").x
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(sparse.to_dense(), propreg.load_dataset(name).x)


def test_row_normalization_is_the_official_one() -> None:
    x = propreg.load_dataset("photo").x
    expected = x / x.sum(dim=1, keepdim=True).clamp(min=1)
    assert torch.allclose(propreg.load_dataset("photo", normalize_features=True).x, expected, atol=1e-7)


def test_molecules_are_as_ogb_has_them() -> None:
    dataset = propreg.load_dataset("ogbg-molesol")
    first = dataset[0]
    assert first.x.dtype == first.edge_index.dtype == first.edge_attr.dtype == torch.int64
    assert first.y.shape == (1, 1)
    assert torch.equal(first.edge_index[:, ::2], first.edge_index[:, 1::2].flip(0))
    assert torch.equal(first.edge_attr[::2], first.edge_attr[1::2])
    assert len(dataset[dataset.split["test"]]) == 113
    assert dataset.get_idx_split()["train"].tolist() == dataset.arrays.split["train"].tolist()


def test_a_changed_label_is_refused() -> None:
    entry = NODE_SETS["cora"]
    graph = read_entry(entry)
    y = graph.y.copy()
    y[100] = (y[100] + 1) % 7
    with pytest.raises(propreg.DataError, match="the labels are not those of cora"):
        verify_nodes(replace(graph, y=y), entry, "cora.npz")
    assert isinstance(graph, Graph)
